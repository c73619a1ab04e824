/* Taking AMP's section and keys out of the list that Darknet's read_cfg made. */
#include "room.h"

#include <stdlib.h>
#include <string.h>

#include "list.h"
#include "option_list.h"

/* parser.c keeps this struct to itself; the list holds pointers to it. */
typedef struct section { char *type; list *options; } section;

static void unlink_node(list *l, node *n)
{
    if (n->prev) n->prev->next = n->next;
    else l->front = n->next;
    if (n->next) n->next->prev = n->prev;
    else l->back = n->prev;
    l->size--;
    free(n);
}

static void remove_options(list *options, int (*is_ours)(const char *key))
{
    for (node *n = options->front, *next; n; n = next) {
        next = n->next;
        kvp *pair = n->val;
        if (is_ours && !is_ours(pair->key)) continue;
        free(pair->key); /* the value lies in the same line */
        free(pair);
        unlink_node(options, n);
    }
}

static int is_layer_key(const char *key) { return !strcmp(key, "amp"); }

void darknet_amp_strip(struct darknet_amp_options *options, void *sections)
{
    (void)options;
    list *all = sections;
    for (node *n = all->front, *next; n; n = next) {
        next = n->next;
        section *s = n->val;
        if (!strcmp(s->type, "[amp]")) {
            remove_options(s->options, NULL);
            free(s->options);
            free(s->type);
            free(s);
            unlink_node(all, n);
        } else if (!strcmp(s->type, "[net]") || !strcmp(s->type, "[network]")) {
            remove_options(s->options, amp_config_is_key);
        } else {
            remove_options(s->options, is_layer_key);
        }
    }
}
