/* Finds the first non-finite tensor with the backend's own finite check. */
#include "anomaly.h"

#include <string.h>

amp_status amp_array_found_inf(amp_backend *b, const float *array, size_t count, int *found_inf,
                               amp_error *error)
{
    double squares;
    amp_param as_param = { .grad = (float *)array, .count = count };
    *found_inf = 0;
    return count ? b->check_gradients(b, &as_param, 1, 1, found_inf, &squares, error) : AMP_OK;
}

/* Counts the images with inf or NaN, and records the first one's index. Images are contiguous in any
 * layout. */
static amp_status find_images(amp_anomaly *anomaly, amp_backend *b, const float *wide, amp_shape shape,
                              amp_error *error)
{
    size_t image = amp_shape_image(shape);
    for (int n = 0; n < shape.n; n++) {
        int found_inf;
        AMP_TRY(amp_array_found_inf(b, wide + (size_t)n * image, image, &found_inf, error));
        if (found_inf && !anomaly->bad_images++) anomaly->image = n;
    }
    return AMP_OK;
}

static amp_status look(amp_anomaly *anomaly, amp_backend *b, const amp_seen *seen, const float *wide,
                       amp_error *error)
{
    int found_inf, forward = amp_seen_in_forward(seen->kind), gradient = seen->kind == AMP_SEEN_GRADIENT;
    AMP_TRY(amp_array_found_inf(b, wide, amp_shape_count(seen->tensor.shape), &found_inf, error));
    if (!found_inf) return AMP_OK;
    *anomaly = (amp_anomaly){ .found = 1, .is_first = 1, .layer = seen->layer,
                              .pass = forward ? "forward" : "backward", .tensor = seen->name,
                              .is_gradient = gradient };
    return gradient ? AMP_OK : find_images(anomaly, b, wide, seen->tensor.shape, error);
}

amp_status amp_anomaly_look(amp_anomaly *anomaly, amp_backend *b, const amp_seen *seen, amp_error *error)
{
    const amp_tensor *t = &seen->tensor;
    if (anomaly->found) return AMP_OK;
    if (t->dtype == AMP_FP32) return look(anomaly, b, seen, t->data, error);
    amp_tensor wide = { .dtype = AMP_FP32, .layout = t->layout, .shape = t->shape };
    AMP_TRY(b->allocate(b, amp_tensor_bytes(&wide), &wide.data, error));
    amp_status status = b->cast(b, t, &wide, 0, error);
    if (status == AMP_OK) status = look(anomaly, b, seen, wide.data, error);
    b->release(b, wide.data);
    return status;
}

const char *amp_anomaly_text(const amp_anomaly *a, const char *type, char text[AMP_ANOMALY_TEXT])
{
    const char *what = a->is_gradient ? "gradient of " : "", *pass = strcmp(a->pass, "update") ? " pass" : "";
    if (a->layer < 0) snprintf(text, AMP_ANOMALY_TEXT, "in the %s (%s%s)", a->tensor, a->pass, pass);
    else snprintf(text, AMP_ANOMALY_TEXT, "in the %s%s of layer %d [%s] (%s%s)", what, a->tensor, a->layer,
                  type, a->pass, pass);
    return text;
}
