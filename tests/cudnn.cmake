# The tests of the CUDA backend's convolutions, wherever cuDNN is found, whatever Darknet is built for. None needs a GPU.
#   test_cuda_plans   the real cuDNN makes plans
#   test_cuda_graph   a stand-in for cuDNN is given plans to run
if(NOT TARGET cuDNN)
    include(${CMAKE_SOURCE_DIR}/cmake/cuDNN.cmake)
endif()
if(NOT TARGET cuDNN)
    foreach(name test_cuda_plans test_cuda_graph)
        add_test(NAME ${name} COMMAND sh -c "echo 'skipped: there is no cuDNN with a CUDA toolkit'; exit 77")
        set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
    endforeach()
    return()
endif()

set(cuda_room ${CMAKE_SOURCE_DIR}/plugin/backend/cuda)
foreach(test cuda_plans cuda_graph)
    set(name test_${test})
    add_executable(${name} ${test}.c ${cuda_room}/conv_plan.c ${cuda_room}/cudnn_graph.c)
    set_target_properties(${name} PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/plugin ${CMAKE_CURRENT_SOURCE_DIR})
    target_include_directories(${name} SYSTEM PRIVATE ${CMOCKA_INCLUDE_DIR})
    target_compile_options(${name} PRIVATE ${plugin_flags} -Wall -Wextra)
    target_compile_definitions(${name} PRIVATE _POSIX_C_SOURCE=200809L
        CONV_SHAPES="${CMAKE_CURRENT_SOURCE_DIR}/golden/conv_shapes.txt")
    target_link_libraries(${name} PRIVATE ${CMOCKA_LIBRARY} ${CMAKE_DL_LIBS})
    target_link_options(${name} PRIVATE ${darknet_link_flags})
    add_test(NAME ${name} COMMAND ${name})
endforeach()
target_link_libraries(test_cuda_plans PRIVATE cuDNN)
target_include_directories(test_cuda_graph SYSTEM PRIVATE $<TARGET_PROPERTY:cuDNN,INTERFACE_INCLUDE_DIRECTORIES>)

# Engines compiled at run time ask for a driver's library; the toolkit's stub will do, and makes the test the same on
# machines with a driver.
set(no_driver ${CMAKE_BINARY_DIR}/tests/no_driver)
find_library(CUDA_STUB_LIBRARY cuda HINTS ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES stubs NO_DEFAULT_PATH
    DOC "The CUDA toolkit's stub of the driver's library")
mark_as_advanced(CUDA_STUB_LIBRARY)
if(CUDA_STUB_LIBRARY)
    file(MAKE_DIRECTORY ${no_driver})
    file(CREATE_LINK ${CUDA_STUB_LIBRARY} ${no_driver}/libcuda.so.1 SYMBOLIC)
endif()
set_tests_properties(test_cuda_plans test_cuda_graph PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600
    ENVIRONMENT "${environment};LD_LIBRARY_PATH=${no_driver}:$ENV{LD_LIBRARY_PATH}")
