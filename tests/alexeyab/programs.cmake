# AlexeyAB's Darknet, beside the Darknet that is built: darknet-alexeyab and, as it is, darknet-alexeyab-
# stock, of the same rooms of the plugin where they name no Darknet. DARKNET_AMP_ALEXEYAB is its tree, or
# empty where there is none: no script gets it. It is looked for in the folders that DARKNET_AMP_TREES
# lists.
if(DEFINED ENV{XDG_CACHE_HOME})
    set(trees $ENV{XDG_CACHE_HOME})
else()
    set(trees $ENV{HOME}/.cache)
endif()
set(trees ${trees}/darknet-amp/trees)
if(DEFINED ENV{DARKNET_AMP_TREES})
    set(trees $ENV{DARKNET_AMP_TREES})
endif()
set(DARKNET_AMP_TREES ${trees} CACHE STRING
    "Folders with trees of other Darknets, which the tests compile as well: alexeyab/")

set(DARKNET_AMP_ALEXEYAB)
if(DARKNET_AMP_FORK STREQUAL "alexeyab")
    set(DARKNET_AMP_ALEXEYAB ${DARKNET_TREE})
    return()
endif()
foreach(folder ${DARKNET_AMP_TREES})
    if(NOT DARKNET_AMP_ALEXEYAB AND EXISTS ${folder}/alexeyab/include/darknet.h)
        set(DARKNET_AMP_ALEXEYAB ${folder}/alexeyab)
    endif()
endforeach()
if(NOT DARKNET_AMP_ALEXEYAB OR DARKNET_AMP_CUDA)
    return()
endif()

set(patched ${CMAKE_BINARY_DIR}/alexeyab/patched)
darknet_patch(${DARKNET_AMP_ALEXEYAB} ${patched})
set(DARKNET_AMP_ROOMS ${DARKNET_AMP_ANY_FORK})
plugin_fork(alexeyab alexeyab ${patched})
darknet_objects(alexeyab_host ${patched} AMP)
target_include_directories(alexeyab_host PRIVATE ${DARKNET_AMP_PLUGIN}/include)
darknet_targets(darknet-alexeyab ${patched}
    OBJECTS alexeyab_host ${DARKNET_AMP_ROOMS} ${DARKNET_AMP_LAUNCH}
    DEFINITIONS AMP
    INCLUDE ${DARKNET_AMP_PLUGIN}/include
    LINK amp_libraries ${DARKNET_AMP_LAUNCH_LIBRARY})
if(TARGET amp_room_comm_mpi AND NOT DARKNET_AMP_MPI)
    darknet_targets(darknet-alexeyab-mpi ${patched}
        OBJECTS alexeyab_host ${DARKNET_AMP_ROOMS} amp_room_comm_mpi
        DEFINITIONS AMP
        INCLUDE ${DARKNET_AMP_PLUGIN}/include
        LINK amp_libraries MPI::MPI_C)
endif()
if(DARKNET_AMP_BUILD_STOCK)
    darknet_objects(alexeyab_stock_host ${DARKNET_AMP_ALEXEYAB})
    darknet_targets(darknet-alexeyab-stock ${DARKNET_AMP_ALEXEYAB} OBJECTS alexeyab_stock_host)
endif()

# What its layers learn under AMP, by finite differences, and the workspace that they share; and tests of the
# engine that hold for any Darknet (docs/behaviours.md), with its networks.
function(alexeyab_test name)
    add_executable(${name} ${ARGN})
    set_target_properties(${name} PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF LINKER_LANGUAGE CXX
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
        ${CMAKE_CURRENT_SOURCE_DIR}/helpers ${CMAKE_SOURCE_DIR}/plugin)
    target_include_directories(${name} SYSTEM PRIVATE ${CMAKE_BINARY_DIR}/alexeyab/patched/src
        ${CMOCKA_INCLUDE_DIR})
    target_compile_definitions(${name} PRIVATE _POSIX_C_SOURCE=200809L)
    target_compile_options(${name} PRIVATE ${plugin_flags} ${test_flags} ${wextra})
    target_link_libraries(${name} PRIVATE darknet-alexeyab_static amp_libraries ${CMOCKA_LIBRARY})
    target_link_options(${name} PRIVATE ${darknet_link_flags})
    add_test(NAME ${name} COMMAND ${launcher} $<TARGET_FILE:${name}>)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}" TIMEOUT ${unit_timeout})
endfunction()
alexeyab_test(test_alexeyab_gradients alexeyab/test_gradients.c)
target_link_options(test_alexeyab_gradients PRIVATE -Wl,--wrap=get_convolutional_workspace_size)
foreach(test amp/test_behaviours amp/test_casting host/test_cfg_fuzz amp/test_engine
        amp/test_optimizer_steps)
    string(REGEX REPLACE ".*/test_" "" name ${test})
    alexeyab_test(test_alexeyab_${name} ${test}.c)
    target_compile_options(test_alexeyab_${name} PRIVATE
        -include ${CMAKE_CURRENT_SOURCE_DIR}/alexeyab/by_pointer.h)
endforeach()
target_link_options(test_alexeyab_casting PRIVATE ${counts_requests})
