/* The version of Darknet AMP: CMake reads it here, so that it is the same with `make AMP=1`. */
#ifndef AMP_HOST_VERSION_H
#define AMP_HOST_VERSION_H

#define AMP_VERSION "0.1.0"

#endif
