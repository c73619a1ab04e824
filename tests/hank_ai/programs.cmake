# hank-ai's Darknet. No script gets its tree or builds it: where a tree of the user's is in hank_ai/ of the
# folders that DARKNET_AMP_TREES lists, the plugin's files are compiled against its patched headers, and that
# alone finds a struct that has changed. DARKNET_AMP_HANK_AI names a program that the user has built as the
# guide says, and DARKNET_AMP_HANK_AI_STOCK one of the unpatched tree, for e2e_hank_ai_training. The
# libdarknet.so beside it is linked with test_hank_ai_gradients.
set(DARKNET_AMP_HANK_AI "" CACHE FILEPATH "A darknet of hank-ai's that was built with AMP, for the tests")
set(DARKNET_AMP_HANK_AI_STOCK "" CACHE FILEPATH "The same of the unpatched tree, with the same options")
set(hank_ai_tree)
foreach(folder ${DARKNET_AMP_TREES})
    if(NOT hank_ai_tree AND EXISTS ${folder}/hank_ai/src-lib/darknet_layers.hpp)
        set(hank_ai_tree ${folder}/hank_ai)
    endif()
endforeach()
find_package(OpenCV QUIET COMPONENTS core highgui imgcodecs imgproc videoio)
if(NOT hank_ai_tree OR NOT OpenCV_FOUND OR DARKNET_AMP_CUDA)
    message(STATUS "No tree of hank-ai's Darknet, or no OpenCV: what is compiled against it is not looked at")
    return()
endif()

set(patched ${CMAKE_BINARY_DIR}/hank_ai/patched)
darknet_patch(${hank_ai_tree} ${patched})
file(CREATE_LINK ${DARKNET_AMP_PLUGIN} ${patched}/amp SYMBOLIC)
set(DARKNET_VERSION_STRING v5.1-104-gf684e1d7) # which its CMake asks git for
configure_file(${patched}/src-lib/darknet_version.h.in ${patched}/src-lib/darknet_version.h)
set(DARKNET_AMP_ROOMS)
plugin_fork(hank_ai hank_ai ${patched})
target_include_directories(hank_ai_headers SYSTEM INTERFACE ${OpenCV_INCLUDE_DIRS})

include(hank_ai/cuda.cmake)

# What its layers learn under AMP, by finite differences.
get_filename_component(library "${DARKNET_AMP_HANK_AI}/../../src-lib/libdarknet.so" ABSOLUTE)
if(NOT DARKNET_AMP_HANK_AI OR NOT EXISTS ${library} OR DARKNET_AMP_SANITIZE)
    return()
endif()
add_executable(test_hank_ai_gradients alexeyab/test_gradients.c)
set_target_properties(test_hank_ai_gradients PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_include_directories(test_hank_ai_gradients PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/helpers)
target_include_directories(test_hank_ai_gradients SYSTEM PRIVATE ${CMOCKA_INCLUDE_DIR})
target_compile_definitions(test_hank_ai_gradients PRIVATE _POSIX_C_SOURCE=200809L)
target_compile_options(test_hank_ai_gradients PRIVATE ${plugin_flags} ${wextra}
    -include ${CMAKE_CURRENT_SOURCE_DIR}/hank_ai/by_reference.h)
target_link_libraries(test_hank_ai_gradients PRIVATE hank_ai_headers ${library} ${CMOCKA_LIBRARY} m)
add_test(NAME test_hank_ai_gradients COMMAND ${launcher} $<TARGET_FILE:test_hank_ai_gradients>)
set_tests_properties(test_hank_ai_gradients PROPERTIES ENVIRONMENT "${environment}" TIMEOUT ${unit_timeout})
