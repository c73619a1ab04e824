# test_cuda_plans: the real cuDNN makes plans for the CUDA backend's convolutions, wherever it is found,
# whatever Darknet is built for, and without a GPU.
if(NOT TARGET cuDNN)
    include(${CMAKE_SOURCE_DIR}/cmake/cuDNN.cmake)
endif()
if(NOT TARGET cuDNN)
    add_test(NAME test_cuda_plans
        COMMAND sh -c "echo 'skipped: there is no cuDNN with a CUDA toolkit'; exit 77")
    set_tests_properties(test_cuda_plans PROPERTIES SKIP_RETURN_CODE 77)
    return()
endif()

set(cuda_room ${CMAKE_SOURCE_DIR}/plugin/backend/cuda)
add_executable(test_cuda_plans cuda/plans.c ${cuda_room}/conv_plan.c ${cuda_room}/cudnn_graph.c)
set_target_properties(test_cuda_plans PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_include_directories(test_cuda_plans PRIVATE ${CMAKE_SOURCE_DIR}/plugin ${CMAKE_CURRENT_SOURCE_DIR}
    ${CMAKE_CURRENT_SOURCE_DIR}/helpers)
target_include_directories(test_cuda_plans SYSTEM PRIVATE ${CMOCKA_INCLUDE_DIR})
target_compile_options(test_cuda_plans PRIVATE ${plugin_flags} ${wextra})
target_compile_definitions(test_cuda_plans PRIVATE _POSIX_C_SOURCE=200809L
    CONV_SHAPES="${CMAKE_CURRENT_SOURCE_DIR}/golden/conv_shapes.txt")
target_link_libraries(test_cuda_plans PRIVATE cuDNN ${CMOCKA_LIBRARY} ${CMAKE_DL_LIBS})
target_link_options(test_cuda_plans PRIVATE ${darknet_link_flags} # no_device.h's
    -Wl,--wrap=cudnnCreate,--wrap=cudnnSetStream,--wrap=cudnnDestroy,--wrap=cudnnBackendSetAttribute
    -Wl,--wrap=cudnnBackendFinalize,--wrap=cudnnBackendGetAttribute)
add_test(NAME test_cuda_plans COMMAND test_cuda_plans)

# Engines compiled at run time ask for a driver's library; the toolkit's stub will do, and makes the test the
# same on machines with a driver.
set(no_driver ${CMAKE_BINARY_DIR}/tests/no_driver)
find_library(CUDA_STUB_LIBRARY cuda HINTS ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES stubs NO_DEFAULT_PATH
    DOC "The CUDA toolkit's stub of the driver's library")
mark_as_advanced(CUDA_STUB_LIBRARY)
if(CUDA_STUB_LIBRARY)
    file(MAKE_DIRECTORY ${no_driver})
    file(CREATE_LINK ${CUDA_STUB_LIBRARY} ${no_driver}/libcuda.so.1 SYMBOLIC)
endif()
set_tests_properties(test_cuda_plans PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${unit_timeout}
    ENVIRONMENT "${environment};LD_LIBRARY_PATH=${no_driver}:$ENV{LD_LIBRARY_PATH}")
