/* The version of Darknet AMP. CMake reads it from here too. */
#pragma once

#define AMP_VERSION "0.1.0"
