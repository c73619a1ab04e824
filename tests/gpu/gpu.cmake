# What tests/gpu/run.sh runs on a GPU: the target gpu_tests. Not part of a build unless asked for.
#
#   gpu_backend_*, gpu_update   the conformance tests, over the CUDA backend as it is
#   gpu_unlisted                kernels that the list of operations does not name, and addresses of any
#                               alignment
#   gpu_large                   tensors of more than 2^31 elements
#   gpu_engines                 the engines of cuDNN that may be chosen, compared with each other
#   gpu_host                    whole trainings of small networks, and what compares them
#   gpu_properties, gpu_plans   the device as cuDNN describes it, and plans for a device so described
set(gpu_programs)
function(gpu_program name)
    add_executable(${name} EXCLUDE_FROM_ALL ${ARGN})
    set_target_properties(${name} PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF LINKER_LANGUAGE CXX
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/plugin ${CMAKE_SOURCE_DIR}/plugin/include
        ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/helpers)
    target_include_directories(${name} SYSTEM PRIVATE ${CMOCKA_INCLUDE_DIR})
    target_compile_definitions(${name} PRIVATE _POSIX_C_SOURCE=200809L ON_DEVICE)
    target_compile_options(${name} PRIVATE ${plugin_flags} ${wextra})
    target_link_libraries(${name} PRIVATE
        ${CMOCKA_LIBRARY} cuDNN CUDA::cudart CUDA::cublas Threads::Threads m)
    set(gpu_programs ${gpu_programs} ${name} PARENT_SCOPE)
endfunction()

set(gpu_backend $<TARGET_OBJECTS:amp_room_backend_cuda>)
foreach(test ${conformance_tests})
    string(REPLACE test_ gpu_ name ${test})
    gpu_program(${name} backend/${test}.c conformance/machine_cuda_device.c ${gpu_backend})
endforeach()
gpu_program(gpu_update cuda/update.c conformance/machine_cuda_device.c ${gpu_backend})
gpu_program(gpu_unlisted cuda/kernels_move.c conformance/machine_cuda_device.c ${gpu_backend})
gpu_program(gpu_large gpu/large.c conformance/machine_cuda_device.c ${gpu_backend})
gpu_program(gpu_engines gpu/engines.c conformance/machine_cuda_device.c ${gpu_backend})

gpu_program(gpu_host cuda/host.c)
target_compile_definitions(gpu_host PRIVATE AMP)
target_include_directories(gpu_host SYSTEM PRIVATE ${DARKNET_PATCHED}/include ${DARKNET_PATCHED}/src)
target_link_libraries(gpu_host PRIVATE darknet_static amp_libraries)

gpu_program(gpu_properties gpu/device_properties.c)
gpu_program(gpu_plans cuda/plans.c ${CMAKE_SOURCE_DIR}/plugin/backend/cuda/conv_plan.c
    ${CMAKE_SOURCE_DIR}/plugin/backend/cuda/cudnn_graph.c)
set(conv_shapes CONV_SHAPES="${CMAKE_CURRENT_SOURCE_DIR}/golden/conv_shapes.txt")
target_compile_definitions(gpu_plans PRIVATE ${conv_shapes})
target_compile_definitions(gpu_engines PRIVATE ${conv_shapes})

add_custom_target(gpu_tests DEPENDS ${gpu_programs} darknet shapes)
