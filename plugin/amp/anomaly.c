/* Finding the first non-finite tensor, with the backend's own finite check. */
#include "anomaly.h"

amp_status amp_anomaly_look_array(amp_anomaly *anomaly, amp_backend *b, const float *array, size_t count, int layer,
                                  const char *pass, const char *tensor, amp_error *error)
{
    int found_inf = 0;
    double squares;
    if (anomaly->found || !count) return AMP_OK;
    amp_param as_param = { .grad = (float *)array, .count = count };
    AMP_TRY(b->check_gradients(b, &as_param, 1, 1, &found_inf, &squares, error));
    if (found_inf) *anomaly = (amp_anomaly){ 1, layer, pass, tensor };
    return AMP_OK;
}

amp_status amp_anomaly_look(amp_anomaly *anomaly, amp_backend *b, const amp_tensor *t, int layer, const char *pass,
                            const char *tensor, amp_error *error)
{
    if (anomaly->found) return AMP_OK;
    if (t->dtype == AMP_FP32) return amp_anomaly_look_array(anomaly, b, t->data, amp_shape_count(t->shape), layer, pass, tensor, error);
    amp_tensor wide = { .dtype = AMP_FP32, .layout = t->layout, .shape = t->shape };
    AMP_TRY(b->allocate(b, amp_tensor_bytes(&wide), &wide.data, error));
    amp_status status = b->cast(b, t, &wide, 0, error);
    if (status == AMP_OK)
        status = amp_anomaly_look_array(anomaly, b, wide.data, amp_shape_count(t->shape), layer, pass, tensor, error);
    b->release(b, wide.data);
    return status;
}
