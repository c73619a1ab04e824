# test_cuda_stack_<name>: everything compiles and links with another CUDA toolkit and cuDNN than this
# machine's own. Each folder in DARKNET_AMP_CUDA_STACKS holds both, as scripts/cuda_stack.sh (which
# fetches some) leaves them.
set(DARKNET_AMP_CUDA_STACKS "" CACHE STRING
    "Folders of CUDA toolkits with cuDNN to compile and link against in the tests")
if(NOT DARKNET_AMP_CUDA_STACKS)
    add_test(NAME test_cuda_stacks COMMAND sh -c "echo 'skipped: DARKNET_AMP_CUDA_STACKS names no other \
CUDA toolkit (scripts/cuda_stack.sh gets some)'; exit 77")
    set_tests_properties(test_cuda_stacks PROPERTIES SKIP_RETURN_CODE 77)
endif()
foreach(stack ${DARKNET_AMP_CUDA_STACKS})
    get_filename_component(name ${stack} NAME)
    add_test(NAME test_cuda_stack_${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/in_empty_folder.sh
        ${CMAKE_BINARY_DIR}/tests/cuda_stack_${name} ${CMAKE_CURRENT_SOURCE_DIR}/cuda/stack.sh)
    set_tests_properties(test_cuda_stack_${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800
        ENVIRONMENT "STACK=${stack};SOURCE_DIR=${CMAKE_SOURCE_DIR};DARKNET_TREE=${DARKNET_TREE}")
endforeach()
