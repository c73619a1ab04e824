/* A value is the output of one layer, with its delta, in up to three forms.
 *
 * The producer writes the value in its home form. When a consumer asks for another form, the value is cast,
 * and the cast is kept for later consumers. Each consumer adds its part of the delta in its own form; before
 * the producer's backward, the parts are summed in the home form. */
#pragma once

#include "../tensor/status.h"
#include "../tensor/tensor.h"

typedef enum amp_form {
    AMP_FORM_HALF,  /* fp16 or bf16, NHWC */
    AMP_FORM_WIDE, /* fp32, NHWC */
    AMP_FORM_PLAIN, /* fp32, NCHW, in the host's buffers */
    AMP_FORMS
} amp_form;

typedef struct amp_value {
    int index;           /* index of the producing layer; -1: the image */
    amp_shape shape;
    amp_form home;
    amp_dtype low_dtype;
    int wants_delta;     /* 1: backward continues into the producer */
    int delta_parts;     /* number of parts of the delta; each input of a consumer adds its own part */
    void *data[AMP_FORMS], *delta[AMP_FORMS];
    void *data_again[AMP_FORMS]; /* buffers into which backward recomputes the data (activation
                                    checkpointing); while backward uses them, they are swapped with `data` */
    char data_valid[AMP_FORMS], delta_valid[AMP_FORMS];
} amp_value;

struct amp_call;

amp_tensor amp_value_data(const amp_value *, amp_form);
amp_tensor amp_value_delta(const amp_value *, amp_form);

/* Returns where the producer writes the home form, and marks only that form as valid. */
amp_tensor amp_value_write(amp_value *);

/* Activation checkpointing: swaps data and data_again, and marks the data as not valid. Leaves the plain form
 * as it is, because that form has only one buffer. */
void amp_value_exchange(amp_value *);

/* Sets *out to the value in a consumer's form. Casts the value if necessary. */
amp_status amp_value_read(struct amp_call *, amp_value *, amp_form, amp_tensor *out, amp_error *);

/* Returns where a consumer writes its part of the delta. Call it only if value->wants_delta. *accumulate: 1
 * if the consumer must add its part to those already there. */
amp_tensor amp_value_delta_target(amp_value *, amp_form, int *accumulate);

/* Sums all parts of the delta in the home form. *any: 0 if no consumer contributed. */
amp_status amp_value_settle_delta(struct amp_call *, amp_value *, int *any, amp_error *);
