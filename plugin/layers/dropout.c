/* The [dropout] layer. It works out of place; Darknet's own works in place, in the previous layer's buffers.
 *
 * In training, forward draws one number per element, in NCHW order, from the host's generator, so that the
 * same seed drops the same elements as in stock Darknet. */
#include "layer.h"

static amp_status plan(amp_node *node, amp_call *call, amp_arena *arena, int forward_time, int backward_time,
                       amp_error *error)
{
    if (!call->keeps_state) return AMP_OK; /* without training nothing is dropped */
    amp_arena_keep_bytes(arena, amp_shape_count(node->output->shape), forward_time, backward_time,
                         &node->kept);
    return AMP_OK;
}

/* Draws the mask of one image into `keep`, in NHWC order. numbers: scratch of the same length. */
static void draw_image(const amp_node *node, const amp_host *host, float *numbers, uint8_t *keep)
{
    amp_shape s = node->output->shape;
    size_t plane = (size_t)s.h * s.w, channels = (size_t)s.c;
    host->random_uniform(host->context, numbers, channels * plane);
    for (size_t c = 0; c < channels; c++)
        for (size_t p = 0; p < plane; p++)
            keep[p * channels + c] = !(numbers[c * plane + p] < node->desc.dropout.probability);
}

static amp_status draw(amp_node *node, amp_call *call, amp_error *error)
{
    amp_backend *b = call->backend;
    amp_shape s = node->output->shape;
    size_t image = amp_shape_image(s), count = amp_shape_count(s);
    void *keep;
    AMP_TRY(b->stage(b, node->kept, count, &keep, error));
    float *numbers = amp_allocated(malloc(image * sizeof *numbers));
    for (int n = 0; n < s.n; n++) draw_image(node, call->host, numbers, (uint8_t *)keep + n * image);
    free(numbers);
    return b->upload_later(b, node->kept, keep, count, error);
}

static amp_status map(amp_node *node, amp_call *call, const amp_tensor *x, const amp_tensor *y,
                      amp_error *error)
{
    if (!call->training) return call->backend->channels(call->backend, x, 0, y, 0, x->shape.c, 1, 0, error);
    if (!call->again) AMP_TRY(draw(node, call, error));
    return call->backend->dropout(call->backend, x, y, node->kept, node->desc.dropout.scale, 0, error);
}

static amp_status map_delta(amp_node *node, amp_call *call, const amp_tensor *dy, const amp_tensor *dx,
                            int accumulate, amp_error *error)
{
    if (!call->training)
        return call->backend->channels(call->backend, dy, 0, dx, 0, dx->shape.c, 1, accumulate, error);
    return call->backend->dropout(call->backend, dy, dx, node->kept, node->desc.dropout.scale, accumulate,
                                  error);
}

const amp_layer_ops amp_dropout_ops = { .class = AMP_CLASS_FOLLOWS, .plan = plan, .map = map,
                                        .map_delta = map_delta, .draws_numbers = 1 };
