/* The version of Darknet AMP. CMake reads it from here too, so that a build with CMake and one with `make
 * AMP=1` have the same version. */
#pragma once

#define AMP_VERSION "0.1.0"
