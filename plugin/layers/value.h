/* A value: what one layer produces, with its delta, in up to three forms.
 *
 * The producer writes its home form. When a consumer asks for another form, the value is cast once and the
 * cast is kept: at most one cast per producer and form in a step. Consumers add their parts of the delta in
 * their own form; before the producer's backward the parts are summed in the home form. */
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
    int index;           /* of the producing layer, -1 for the image */
    amp_shape shape;
    amp_form home;
    amp_dtype low_dtype;
    int wants_delta;     /* backward continues into the producer */
    int delta_parts;     /* how many inputs of consumers contribute to its delta */
    void *data[AMP_FORMS], *delta[AMP_FORMS];
    void *data_again[AMP_FORMS]; /* activation checkpointing: where backward recomputes the data; while
                                    that is in use, this and data are exchanged (amp_value_exchange) */
    char data_valid[AMP_FORMS], delta_valid[AMP_FORMS];
} amp_value;

struct amp_call;

amp_tensor amp_value_data(const amp_value *, amp_form);
amp_tensor amp_value_delta(const amp_value *, amp_form);

/* Where the producer writes its home form. */
amp_tensor amp_value_write(amp_value *);

/* Activation checkpointing: switches between the data's two buffers. The data there is not valid yet. */
void amp_value_exchange(amp_value *);

/* The value in a consumer's form; casts it if necessary. */
amp_status amp_value_read(struct amp_call *, amp_value *, amp_form, amp_tensor *out, amp_error *);

/* Where a consumer writes its part of the delta, and whether it must add to existing numbers. Only with
 * wants_delta. */
amp_tensor amp_value_delta_target(amp_value *, amp_form, int *accumulate);

/* Sums all parts into the home form. *any is 0 if no consumer contributed. */
amp_status amp_value_settle_delta(struct amp_call *, amp_value *, int *any, amp_error *);
