# hank-ai's Darknet with CUDA, on doubles of a GPU: as alexeyab/cuda.cmake, where programs.cmake has found a
# tree. The plugin's files are compiled against its headers as a GPU build has them, with cuDNN and without,
# so that structs which differ stop the build. Whole trainings take a program that the user has built for the
# CPU, whose libdarknet.so they are compared with.
if(NOT cuda_double_whole OR DARKNET_AMP_CUDA OR DARKNET_AMP_SANITIZE STREQUAL "thread")
    return()
endif()
add_library(hank_ai_gpu INTERFACE)
target_link_libraries(hank_ai_gpu INTERFACE hank_ai_headers cuda_double_settings)
target_compile_definitions(hank_ai_gpu INTERFACE AMP GPU DARKNET_GPU DARKNET_GPU_CUDA)
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/plugin/host/darknet/*.c
    ${CMAKE_SOURCE_DIR}/plugin/host/family/*.c ${CMAKE_SOURCE_DIR}/plugin/host/hank_ai/*.c
    ${CMAKE_SOURCE_DIR}/plugin/host/hank_ai/*.cpp)
add_library(hank_ai_gpu_host OBJECT ${sources})
add_library(hank_ai_gpu_cudnn OBJECT ${CMAKE_SOURCE_DIR}/plugin/host/hank_ai/layout.cpp)
target_compile_definitions(hank_ai_gpu_cudnn PRIVATE CUDNN CUDNN_HALF)
foreach(library hank_ai_gpu_host hank_ai_gpu_cudnn)
    target_link_libraries(${library} PRIVATE hank_ai_gpu)
    set_target_properties(${library} PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF CXX_STANDARD 17)
endforeach()

if(NOT library_of_user)
    add_test(NAME test_hank_ai_cuda_host COMMAND sh -c "echo 'skipped: there is no program of that Darknet: \
give cmake -DDARKNET_AMP_HANK_AI=PATH'; exit 77")
    set_tests_properties(test_hank_ai_cuda_host PROPERTIES SKIP_RETURN_CODE 77)
    return()
endif()
file(GLOB sources ${patched}/src-lib/*.cpp)
list(FILTER sources EXCLUDE REGEX "/yolo_v2_class\\.cpp$")
add_library(hank_ai_gpu_darknet OBJECT ${sources})
add_library(hank_ai_gpu_kernels OBJECT ${patched}/src-lib/network_kernels.cu) # which holds no kernels
set_source_files_properties(${patched}/src-lib/network_kernels.cu PROPERTIES LANGUAGE CXX)
foreach(library hank_ai_gpu_darknet hank_ai_gpu_kernels)
    target_compile_definitions(${library} PRIVATE AMP DARKNET_GPU DARKNET_GPU_CUDA)
    target_compile_options(${library} PRIVATE -w -O1 -fPIC)
    target_include_directories(${library} SYSTEM PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/doubles
        ${patched}/src-lib ${OpenCV_INCLUDE_DIRS} ${CUDA_HEADERS})
    set_target_properties(${library} PROPERTIES CXX_STANDARD 17)
endforeach()
target_precompile_headers(hank_ai_gpu_darknet PRIVATE ${patched}/src-lib/darknet_internal.hpp)

add_executable(hank_ai_cuda_host_double cuda/host.c ${command_line} ${rooms})
# All of its program.
file(GLOB main ${patched}/src-cli/*.cpp)
set(commands)
foreach(room "" _bench _compare _log _map _plan _probe _report _selftest)
    list(APPEND commands $<TARGET_OBJECTS:amp_room_commands${room}>)
endforeach()
add_executable(hank_ai_on_gpus alexeyab/train_on_gpus.c ${main} doubles/nccl_double.cc ${rooms} ${commands}
    ${CMAKE_SOURCE_DIR}/plugin/comm/nccl/nccl.c)
set_source_files_properties(${main} PROPERTIES COMPILE_OPTIONS -w)
target_link_options(hank_ai_on_gpus PRIVATE -Wl,--wrap=dlopen -Wl,--wrap=dlsym # as alexeyab_train_on_gpus
    -Wl,--wrap=amp_comm_threads -Wl,--wrap=amp_ranks_await_end -Wl,--wrap=cuda_set_device
    -Wl,--wrap=_Z13train_networkRN7Darknet7NetworkE4data)
foreach(program hank_ai_cuda_host_double hank_ai_on_gpus)
    target_sources(${program} PRIVATE doubles/family_gpu_double.cc)
    target_link_libraries(${program} PRIVATE hank_ai_gpu hank_ai_gpu_host hank_ai_gpu_darknet
        hank_ai_gpu_kernels cuda_double oneDNN OpenMP::OpenMP_C ${OpenCV_LIBS})
    target_link_options(${program} PRIVATE -Wl,--unresolved-symbols=ignore-all -Wl,--wrap=free -no-pie)
endforeach()
add_executable(hank_ai_cuda_host_cpu cuda/host.c)
target_include_directories(hank_ai_cuda_host_cpu PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
    ${CMAKE_CURRENT_SOURCE_DIR}/helpers ${CMAKE_SOURCE_DIR}/plugin)
target_link_libraries(hank_ai_cuda_host_cpu PRIVATE hank_ai_headers ${library_of_user} m)
foreach(program hank_ai_cuda_host_double hank_ai_cuda_host_cpu hank_ai_on_gpus)
    set_target_properties(${program} PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF LINKER_LANGUAGE CXX
        CXX_STANDARD 17 RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
endforeach()
add_test(NAME test_hank_ai_cuda_host COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/in_empty_folder.sh
    ${CMAKE_BINARY_DIR}/tests/hank_ai_cuda_host ${CMAKE_CURRENT_SOURCE_DIR}/cuda/host.sh)
set_tests_properties(test_hank_ai_cuda_host PROPERTIES TIMEOUT ${unit_timeout} ENVIRONMENT
    "${environment};FAMILY=1;ON_CPU=$<TARGET_FILE:hank_ai_cuda_host_cpu>;\
ON_DOUBLES=$<TARGET_FILE:hank_ai_cuda_host_double>")
