/* Types that forks have under other names. */
#ifndef AMP_HOST_PJREDDIE_TYPES_H
#define AMP_HOST_PJREDDIE_TYPES_H

typedef network amp_pass; /* what a layer's function is given: the network, as that layer is to see it */

/* Types of a last layer that `detector train` and `classifier train` take. */
#define AMP_OWN_DETECTORS YOLO: case REGION
#define AMP_OWN_CLASSIFIERS SOFTMAX: case COST: case LOGXENT

#endif
