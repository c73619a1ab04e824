# cuDNN 8.9 or 9, with the CUDA toolkit that its headers need: the target cuDNN, which is there only if both
# were found. CUDNN_VERSION_TEXT is its version then.
#
# If it is in an unusual place, the environment variable CUDNN_ROOT names the folder with
# its include/ and lib/. A folder is searched for all names before the next one is: a Python package has
# libcudnn.so.9 alone, and the toolkit's libcudnn.so would not fit its headers.
find_package(CUDAToolkit QUIET)
find_path(CUDNN_INCLUDE_DIR cudnn_backend.h HINTS $ENV{CUDNN_ROOT} ${CUDAToolkit_INCLUDE_DIRS}
    PATH_SUFFIXES include
    DOC "The folder that holds cudnn.h and cudnn_backend.h")
find_library(CUDNN_LIBRARY NAMES cudnn libcudnn.so.9 libcudnn.so.8 NAMES_PER_DIR
    HINTS $ENV{CUDNN_ROOT} ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib lib64 DOC "cuDNN's library")
mark_as_advanced(CUDNN_INCLUDE_DIR CUDNN_LIBRARY)

if(CUDAToolkit_FOUND AND CUDNN_INCLUDE_DIR AND CUDNN_LIBRARY)
    file(STRINGS ${CUDNN_INCLUDE_DIR}/cudnn_version.h lines
        REGEX "#define CUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]+")
    string(REGEX REPLACE ".*MAJOR +([0-9]+).*MINOR +([0-9]+).*PATCHLEVEL +([0-9]+).*" "\\1.\\2.\\3"
        CUDNN_VERSION_TEXT "${lines}")
    message(STATUS "Found cuDNN: ${CUDNN_LIBRARY} (version ${CUDNN_VERSION_TEXT})")
    add_library(cuDNN INTERFACE)
    target_include_directories(cuDNN SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS} ${CUDNN_INCLUDE_DIR})
    target_link_libraries(cuDNN INTERFACE ${CUDNN_LIBRARY} ${CMAKE_DL_LIBS})
endif()
