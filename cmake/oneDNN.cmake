# oneDNN, what the CPU backend computes with: the target oneDNN. Versions 2.6 and later, and 3.x.
#
# Its header and library are looked for by name: the package files that some distributions ship with it ask
# for OpenCL's headers too, which nothing here uses.
set(ONEDNN_ROOT "$ENV{ONEDNN_ROOT}" CACHE PATH
    "A folder with oneDNN's include/ and lib/, taken before the system's")
find_path(ONEDNN_INCLUDE_DIR dnnl.h HINTS ${ONEDNN_ROOT} PATH_SUFFIXES include oneapi/dnnl
    DOC "The folder that holds oneDNN's dnnl.h")
find_library(ONEDNN_LIBRARY dnnl HINTS ${ONEDNN_ROOT} PATH_SUFFIXES lib lib64 DOC "oneDNN's library")
string(CONCAT how "Install Debian's package libdnnl-dev (scripts/dependencies.sh does), or configure an "
    "empty build folder with -DONEDNN_ROOT=FOLDER, the folder with oneDNN's include/ and lib/.")
set(DARKNET_AMP_CPU AUTO CACHE STRING
    "The CPU backend, which takes oneDNN: ON; OFF (with DARKNET_AMP_CUDA only); \
AUTO: OFF where CUDA is and oneDNN is not")
if(NOT DARKNET_AMP_CPU AND NOT DARKNET_AMP_CUDA)
    message(FATAL_ERROR "DARKNET_AMP_CPU=OFF leaves no backend: set DARKNET_AMP_CUDA=ON too")
endif()
if(DARKNET_AMP_CPU STREQUAL "AUTO")
    set(DARKNET_AMP_CPU ON)
    if(DARKNET_AMP_CUDA AND NOT (ONEDNN_INCLUDE_DIR AND ONEDNN_LIBRARY))
        message(STATUS "oneDNN was not found: building without the CPU backend (DARKNET_AMP_CPU=OFF)")
        set(DARKNET_AMP_CPU OFF)
    endif()
endif()
if(NOT DARKNET_AMP_CPU)
    add_library(oneDNN INTERFACE)
    return()
endif()
if(NOT ONEDNN_INCLUDE_DIR OR NOT ONEDNN_LIBRARY)
    message(FATAL_ERROR "oneDNN was not found. ${how}")
endif()

set(oneDNN_version 0)
foreach(header oneapi/dnnl/dnnl_version.h dnnl_version.h)
    if(EXISTS ${ONEDNN_INCLUDE_DIR}/${header})
        file(STRINGS ${ONEDNN_INCLUDE_DIR}/${header} lines REGEX "#define DNNL_VERSION_(MAJOR|MINOR) +[0-9]+")
        string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*" "\\1.\\2" oneDNN_version "${lines}")
        break()
    endif()
endforeach()
if(oneDNN_version VERSION_LESS 2.6)
    message(FATAL_ERROR
        "oneDNN 2.6 or later is needed; ${ONEDNN_INCLUDE_DIR} holds ${oneDNN_version}. ${how}")
endif()
foreach(header oneapi/dnnl/dnnl_config.h dnnl_config.h)
    if(EXISTS ${ONEDNN_INCLUDE_DIR}/${header})
        file(STRINGS ${ONEDNN_INCLUDE_DIR}/${header} sycl REGEX "define DNNL_CPU_RUNTIME DNNL_RUNTIME_SYCL")
        if(sycl)
            message(FATAL_ERROR "${ONEDNN_LIBRARY} is oneDNN built for SYCL (as PyPI's package is), which "
                "has no plain CPU engine: use one built with ONEDNN_CPU_RUNTIME=OMP. ${how}")
        endif()
    endif()
endforeach()
message(STATUS "Found oneDNN: ${ONEDNN_LIBRARY} (version ${oneDNN_version})")

add_library(oneDNN INTERFACE)
target_include_directories(oneDNN INTERFACE ${ONEDNN_INCLUDE_DIR})
target_link_libraries(oneDNN INTERFACE ${ONEDNN_LIBRARY})
