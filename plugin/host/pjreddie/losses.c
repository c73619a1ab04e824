/* See losses.h. */
#include "losses.h"

#include <stdio.h>

#include "device.h"
#include "links.h"

const float *amp_host_labels(network *net, int index)
{
    int truth = amp_host_truth_layer(net, index);
    return truth < 0 ? amp_host_truth(net) : *amp_host_output_of(&net->layers[truth], amp_host_on_gpu(net));
}

/* Without a label in this head the means are of nothing, and are printed as Darknet prints them. */
void amp_host_print_yolo_stats(const layer *l, int index, const amp_yolo_result *r)
{
    float count = (float)r->labels, boxes = (float)l->w * (float)l->h * (float)l->n * (float)l->batch;
    *l->cost = (float)r->cost;
    printf("Region %d Avg IOU: %f, Class: %f, Obj: %f, No Obj: %f, .5R: %f, .75R: %f,  count: %d\n", index, (float)r->iou / count,
           (float)r->category / count, (float)r->object / count, (float)r->any_object / boxes, (float)r->above_50 / count,
           (float)r->above_75 / count, (int)r->labels);
}
