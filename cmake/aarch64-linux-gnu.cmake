# Cross-compiles for 64-bit ARM (aarch64, armv8-a) on Debian, with its gcc-aarch64-linux-gnu:
#
#   cmake -S . -B build/arm -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64-linux-gnu.cmake -DAMP_SYSROOT=FOLDER
#
# FOLDER holds usr/include and usr/lib/aarch64-linux-gnu with oneDNN (and CMocka for the tests), as Debian's
# packages for arm64 unpack to; tests/arm.sh makes one. The C library is the cross compiler's own. Where
# qemu-aarch64 is installed, CTest runs the tests in it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

set(AMP_SYSROOT "" CACHE PATH "The folder with usr/ of Debian's packages for arm64")
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES AMP_SYSROOT)
set(CMAKE_FIND_ROOT_PATH ${AMP_SYSROOT} /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

find_program(AMP_QEMU NAMES qemu-aarch64 qemu-aarch64-static DOC "Runs programs for aarch64")
if(AMP_QEMU)
    set(CMAKE_CROSSCOMPILING_EMULATOR ${AMP_QEMU} -L /usr/aarch64-linux-gnu)
endif()
