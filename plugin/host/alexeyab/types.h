/* Types that forks have under other names. */
#ifndef AMP_HOST_ALEXEYAB_TYPES_H
#define AMP_HOST_ALEXEYAB_TYPES_H

/* What a layer's function is given: its input and delta, and a copy of the network. */
typedef network_state amp_pass;

/* Types of a last layer that `detector train` and `classifier train` take. */
#define AMP_OWN_DETECTORS YOLO: case GAUSSIAN_YOLO: case REGION
#define AMP_OWN_CLASSIFIERS SOFTMAX: case COST

#endif
