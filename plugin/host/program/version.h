/* The version of Darknet AMP. CMake reads it from here too, so that it is the same with `make AMP=1`. */
#pragma once

#define AMP_VERSION "0.1.0"
