# hank-ai's Darknet with CUDA: the plugin's files are compiled against its headers as a GPU build has them,
# with cuDNN and without, so that structs which differ stop the build. No test trains there: that would take
# its own files, which no script of the project builds (what was tried: docs/results/hank-ai.md).
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
