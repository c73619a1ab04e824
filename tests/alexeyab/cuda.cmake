# AlexeyAB's Darknet with GPU=1 and AMP=1 on the CPU: as cuda/host.cmake, whose `rooms` it takes.
if(NOT TARGET darknet-alexeyab OR NOT TARGET cuda_host_double)
    return()
endif()
set(tree ${CMAKE_BINARY_DIR}/alexeyab/patched)
file(GLOB sources ${tree}/src/*.c ${tree}/src/*.cpp)
list(FILTER sources EXCLUDE REGEX "/(darknet\\.c|yolo_console_dll\\.cpp|gettimeofday\\.c)$")
add_library(alexeyab_gpu_double_darknet OBJECT ${sources} ${tree}/src/network_kernels.cu)
cuda_on_the_cpu(${tree}/src/network_kernels.cu)
set_target_properties(alexeyab_gpu_double_darknet PROPERTIES CXX_STANDARD 17)
target_compile_definitions(alexeyab_gpu_double_darknet PRIVATE AMP GPU)
target_include_directories(alexeyab_gpu_double_darknet PRIVATE ${tree}/include ${tree}/src
    ${tree}/3rdparty/stb/include ${CMAKE_SOURCE_DIR}/plugin/include ${CMAKE_CURRENT_SOURCE_DIR}/doubles)
target_include_directories(alexeyab_gpu_double_darknet SYSTEM PRIVATE ${CUDA_HEADERS})
target_compile_options(alexeyab_gpu_double_darknet PRIVATE -w)
darknet_flags_for(alexeyab_gpu_double_darknet)
target_compile_options(alexeyab_gpu_double_darknet PRIVATE -O1)

file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/plugin/host/darknet/*.c
    ${CMAKE_SOURCE_DIR}/plugin/host/family/*.c ${CMAKE_SOURCE_DIR}/plugin/host/alexeyab/*.c)
add_library(alexeyab_gpu_double_host OBJECT ${sources} doubles/alexeyab_gpu_double.cc)
target_link_libraries(alexeyab_gpu_double_host PRIVATE cuda_double_settings)
add_executable(alexeyab_cuda_host_double cuda/host.c ${command_line} ${rooms})
add_executable(alexeyab_cuda_host_cpu cuda/host.c)
# `detector train` of a program for GPUs, one or two.
add_executable(alexeyab_train_on_gpus alexeyab/train_on_gpus.c doubles/nccl_double.cc ${rooms}
    $<TARGET_OBJECTS:amp_room_commands> $<TARGET_OBJECTS:amp_room_commands_map>
    ${CMAKE_SOURCE_DIR}/plugin/comm/nccl/nccl.c)
set(programs alexeyab_cuda_host_double alexeyab_train_on_gpus)
foreach(program ${programs} alexeyab_cuda_host_cpu alexeyab_gpu_double_host)
    target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
        ${CMAKE_CURRENT_SOURCE_DIR}/helpers ${CMAKE_SOURCE_DIR}/plugin)
    target_include_directories(${program} SYSTEM PRIVATE ${tree}/include ${tree}/src
        ${tree}/3rdparty/stb/include)
    set_target_properties(${program} PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF LINKER_LANGUAGE CXX
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()
target_compile_definitions(alexeyab_gpu_double_host PRIVATE AMP GPU)
foreach(program ${programs})
    target_compile_definitions(${program} PRIVATE AMP GPU)
    target_link_libraries(${program} PRIVATE alexeyab_gpu_double_darknet alexeyab_gpu_double_host
        ${cuda_double} amp_libraries)
    target_link_options(${program} PRIVATE -Wl,--unresolved-symbols=ignore-all -Wl,--wrap=free -no-pie)
endforeach()
target_link_options(alexeyab_train_on_gpus PRIVATE -Wl,--wrap=dlopen -Wl,--wrap=dlsym
    -Wl,--wrap=amp_comm_threads -Wl,--wrap=pthread_create # as test_cuda_ranks
    -Wl,--wrap=amp_ranks_await_end)
target_link_libraries(alexeyab_cuda_host_cpu PRIVATE darknet-alexeyab_static amp_libraries)
target_link_options(alexeyab_cuda_host_cpu PRIVATE ${darknet_library_link_flags}) # sanitizers
add_test(NAME test_alexeyab_cuda_host COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/in_empty_folder.sh
    ${CMAKE_BINARY_DIR}/tests/alexeyab_cuda_host ${CMAKE_CURRENT_SOURCE_DIR}/cuda/host.sh)
set_tests_properties(test_alexeyab_cuda_host PROPERTIES TIMEOUT ${unit_timeout}
    ENVIRONMENT "${environment};ALEXEYAB=1;ON_CPU=$<TARGET_FILE:alexeyab_cuda_host_cpu>;\
ON_DOUBLES=$<TARGET_FILE:alexeyab_cuda_host_double>")

# Its streams and handles, which only CUDNN=1 has: one of its files, over the doubles.
add_executable(test_alexeyab_streams alexeyab/test_streams.c ${tree}/src/dark_cuda.c)
set_source_files_properties(${tree}/src/dark_cuda.c PROPERTIES COMPILE_OPTIONS -w)
target_compile_definitions(test_alexeyab_streams PRIVATE AMP GPU CUDNN)
target_include_directories(test_alexeyab_streams SYSTEM PRIVATE ${tree}/include ${tree}/src)
target_link_libraries(test_alexeyab_streams PRIVATE ${cuda_double})
target_link_options(test_alexeyab_streams PRIVATE -Wl,--unresolved-symbols=ignore-all -no-pie)
set_target_properties(test_alexeyab_streams PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF LINKER_LANGUAGE CXX
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME test_alexeyab_streams COMMAND test_alexeyab_streams)
set_tests_properties(test_alexeyab_streams PROPERTIES TIMEOUT ${unit_timeout} ENVIRONMENT "${environment}")
