# Darknet with GPU=1 and AMP=1 on the CPU, for whole trainings (host.c): its C files and the plugin's
# folder for this fork as a GPU build has them, doubles of its kernels and of CUDA's libraries; what a
# step asks of CUDA (step.c); and ranks on GPUs (ranks.c). Only with a whole CUDA backend
# (doubles.cmake), and where Darknet's own build has no GPU.
if(NOT cuda_double_whole OR DARKNET_AMP_CUDA OR DARKNET_AMP_SANITIZE STREQUAL "thread")
    return()
endif()

file(GLOB gpu_sources ${DARKNET_PATCHED}/src/*.c)
list(FILTER gpu_sources EXCLUDE REGEX "/compare\\.c$")
add_library(gpu_double_darknet OBJECT ${gpu_sources} ${DARKNET_PATCHED}/examples/detector.c
    ${DARKNET_PATCHED}/examples/classifier.c)
target_compile_definitions(gpu_double_darknet PRIVATE AMP GPU)
target_include_directories(gpu_double_darknet PRIVATE ${DARKNET_PATCHED}/include ${DARKNET_PATCHED}/src
    ${CMAKE_SOURCE_DIR}/plugin/include)
target_include_directories(gpu_double_darknet SYSTEM PRIVATE ${CUDA_HEADERS})
target_compile_options(gpu_double_darknet PRIVATE -w) # stock's C files include what only its kernels use
darknet_flags_for(gpu_double_darknet)
target_compile_options(gpu_double_darknet PRIVATE -O1) # a third of the time that -Ofast takes to compile

file(GLOB host_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/plugin/host/darknet/*.c
    ${CMAKE_SOURCE_DIR}/plugin/host/pjreddie/*.c)
add_library(gpu_double_host OBJECT ${host_sources} doubles/darknet_gpu_double.cc)
target_link_libraries(gpu_double_host PRIVATE cuda_double_settings)
target_compile_definitions(gpu_double_host PRIVATE AMP GPU)
target_include_directories(gpu_double_host SYSTEM PRIVATE ${DARKNET_PATCHED}/include ${DARKNET_PATCHED}/src)
set_target_properties(gpu_double_host PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)

set(rooms)
foreach(room files image backend_cpu layers comm amp host_program host_data host_network host_training)
    list(APPEND rooms $<TARGET_OBJECTS:amp_room_${room}>)
endforeach()
function(gpu_double_program name)
    add_executable(${name} ${ARGN} ${rooms})
    target_compile_definitions(${name} PRIVATE AMP GPU)
    target_include_directories(${name} SYSTEM PRIVATE ${DARKNET_PATCHED}/include ${DARKNET_PATCHED}/src)
    target_link_libraries(${name} PRIVATE gpu_double_darknet gpu_double_host ${cuda_double} amp_libraries)
    # Kernels of Darknet's that have no double: who calls one crashes.
    target_link_options(${name} PRIVATE -Wl,--unresolved-symbols=ignore-all -Wl,--wrap=free -no-pie)
    set_target_properties(${name} PROPERTIES C_STANDARD 11 LINKER_LANGUAGE CXX
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endfunction()
set(command_line ${CMAKE_SOURCE_DIR}/plugin/commands/command_line.c)
gpu_double_program(cuda_host_double cuda/host.c ${command_line})
gpu_double_program(test_cuda_step cuda/step.c ${command_line} ${CMAKE_SOURCE_DIR}/bench/gpu_parts.c
                   ${CMAKE_SOURCE_DIR}/bench/fork.c)
target_link_options(test_cuda_step PRIVATE -Wl,--wrap=clock_gettime) # the benchmark's clock is the test's
gpu_double_program(test_cuda_ranks cuda/ranks.c doubles/nccl_double.cc
    $<TARGET_OBJECTS:amp_room_commands> $<TARGET_OBJECTS:amp_room_commands_map>
    ${CMAKE_SOURCE_DIR}/plugin/comm/nccl/nccl.c)
target_link_options(test_cuda_ranks PRIVATE -Wl,--wrap=dlopen -Wl,--wrap=dlsym # libnccl.so.2 is the double
    -Wl,--wrap=amp_fork_use_device -Wl,--wrap=amp_comm_threads -Wl,--wrap=pthread_create) # threads take turns
# Darknet's main, for what it says of machines that it cannot compute on, and for `amp selftest` of layers
# whose kernels have doubles.
gpu_double_program(darknet-gpu-double ${DARKNET_PATCHED}/examples/darknet.c cuda/any_stream.c
    $<TARGET_OBJECTS:amp_room_commands> $<TARGET_OBJECTS:amp_room_commands_map>
    $<TARGET_OBJECTS:amp_room_commands_plan> $<TARGET_OBJECTS:amp_room_commands_probe>
    $<TARGET_OBJECTS:amp_room_commands_selftest>)

add_executable(cuda_host_cpu cuda/host.c)
target_include_directories(cuda_host_cpu PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/plugin)
target_include_directories(cuda_host_cpu SYSTEM PRIVATE ${DARKNET_PATCHED}/include ${DARKNET_PATCHED}/src)
target_link_libraries(cuda_host_cpu PRIVATE darknet_static amp_libraries)
target_link_options(cuda_host_cpu PRIVATE ${darknet_library_link_flags}) # sanitizers
set_target_properties(cuda_host_cpu PROPERTIES C_STANDARD 11 LINKER_LANGUAGE CXX
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)

add_test(NAME test_cuda_host COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/in_empty_folder.sh
    ${CMAKE_BINARY_DIR}/tests/cuda_host ${CMAKE_CURRENT_SOURCE_DIR}/cuda/host.sh)
set_tests_properties(test_cuda_host PROPERTIES TIMEOUT ${unit_timeout} DISABLED "${CMAKE_CROSSCOMPILING}"
    ENVIRONMENT
    "${environment};ON_CPU=$<TARGET_FILE:cuda_host_cpu>;ON_DOUBLES=$<TARGET_FILE:cuda_host_double>")

add_test(NAME test_cuda_step COMMAND test_cuda_step)
add_test(NAME test_cuda_ranks COMMAND test_cuda_ranks)
set_tests_properties(test_cuda_step test_cuda_ranks PROPERTIES TIMEOUT ${unit_timeout}
    ENVIRONMENT "${environment}")
