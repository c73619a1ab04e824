/* Casts values lazily, and sums the parts of deltas: see value.h. */
#include "value.h"

#include "layer.h"

static amp_tensor in_form(const amp_value *value, amp_form form, void *data)
{
    return (amp_tensor){ .data = data, .shape = value->shape,
                         .dtype = form == AMP_FORM_HALF ? value->low_dtype : AMP_FP32,
                         .layout = form == AMP_FORM_PLAIN ? AMP_NCHW : AMP_NHWC };
}

amp_tensor amp_value_data(const amp_value *value, amp_form form)
{
    return in_form(value, form, value->data[form]);
}
amp_tensor amp_value_delta(const amp_value *value, amp_form form)
{
    return in_form(value, form, value->delta[form]);
}

amp_tensor amp_value_write(amp_value *value)
{
    for (int form = 0; form < AMP_FORMS; form++) value->data_valid[form] = form == (int)value->home;
    return amp_value_data(value, value->home);
}

void amp_value_exchange(amp_value *value)
{
    for (int form = 0; form < AMP_FORM_PLAIN; form++) {
        void *other = value->data_again[form];
        value->data_again[form] = value->data[form];
        value->data[form] = other;
        value->data_valid[form] = 0;
    }
}

amp_status amp_value_read(amp_call *call, amp_value *value, amp_form form, amp_tensor *out, amp_error *error)
{
    *out = amp_value_data(value, form);
    if (value->data_valid[form]) return AMP_OK;
    amp_tensor home = amp_value_data(value, value->home);
    AMP_TRY(call->backend->cast(call->backend, &home, out, 0, error));
    value->data_valid[form] = 1;
    return AMP_OK;
}

amp_tensor amp_value_delta_target(amp_value *value, amp_form form, int *accumulate)
{
    *accumulate = value->delta_valid[form];
    value->delta_valid[form] = 1;
    return amp_value_delta(value, form);
}

amp_status amp_value_settle_delta(amp_call *call, amp_value *value, int *any, amp_error *error)
{
    amp_tensor home = amp_value_delta(value, value->home);
    for (int form = 0; form < AMP_FORMS; form++) {
        if (form == (int)value->home || !value->delta_valid[form]) continue;
        amp_tensor part = amp_value_delta(value, (amp_form)form);
        AMP_TRY(call->backend->cast(call->backend, &part, &home, value->delta_valid[value->home], error));
        value->delta_valid[value->home] = 1;
        value->delta_valid[form] = 0;
    }
    *any = value->delta_valid[value->home];
    return AMP_OK;
}
