/* How the tables of native.c are written: what a fork's native_tables.c begins with. */
#pragma once

#include "own.h"

#include <stddef.h>

#define OWN "Darknet's own fp32 code"
#define LOSS "fp32 loss"

#define BIT(KIND) (1u << AMP_LAYER_##KIND)
enum {
    NONE = 0,
    ALL = -1,
    WINDOWS = BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(LOCAL) | BIT(MAXPOOL),
    ACTIVATED = BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(CONNECTED) | BIT(LOCAL) | BIT(ACTIVATION)
        | BIT(SHORTCUT),
    NORMALIZED = BIT(CONVOLUTIONAL) | BIT(DECONVOLUTIONAL) | BIT(CONNECTED)
};

#define OPTION(field, kinds) \
    { #field " is set", offsetof(layer, field), sizeof(((layer *)0)->field), (unsigned)(kinds) }

#define ROWS(table) (sizeof(table) / sizeof *(table))
