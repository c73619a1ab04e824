# Darknet's source: DARKNET_TREE, which is left as it is, DARKNET_PATCHED, a copy in the build folder, and
# DARKNET_STOCK, what darknet-stock is built from. DARKNET_AMP_FORK says whose Darknet it is: pjreddie or
# alexeyab, which are also the names of folders in patches/ and plugin/host/. patches/fetch.sh and
# patches/apply.sh do the work and say what went wrong.

set(DARKNET_STOCK ${DARKNET_SOURCE_DIR})
if(NOT DARKNET_STOCK)
    set(DARKNET_STOCK ${CMAKE_BINARY_DIR}/darknet/source)
    if(NOT EXISTS ${DARKNET_STOCK}/Makefile)
        execute_process(COMMAND ${CMAKE_SOURCE_DIR}/patches/fetch.sh ${DARKNET_STOCK} RESULT_VARIABLE failed)
        if(failed)
            message(FATAL_ERROR
                "Darknet's source could not be fetched; the lines above say why and what to do.")
        endif()
    endif()
endif()

set(DARKNET_TREE ${DARKNET_STOCK})
if(EXISTS ${DARKNET_TREE}/src-lib/darknet_layers.hpp)
    message(FATAL_ERROR "${DARKNET_TREE} is hank-ai's Darknet, which its own CMake builds: see "
        "docs/guide.md#hank-ais-darknet")
endif()
set(DARKNET_AMP_FORK pjreddie)
if(EXISTS ${DARKNET_TREE}/include/darknet.h)
    # As patches/apply.sh tells them apart.
    file(STRINGS ${DARKNET_TREE}/include/darknet.h state REGEX "struct network_state")
    if(state)
        set(DARKNET_AMP_FORK alexeyab)
    endif()
endif()

# darknet_patch(<tree> <destination> [options of apply.sh...])
function(darknet_patch tree destination)
    execute_process(
        COMMAND ${CMAKE_SOURCE_DIR}/patches/apply.sh --sources-only ${ARGN} ${tree} ${destination}
        WORKING_DIRECTORY ${CMAKE_BINARY_DIR} RESULT_VARIABLE failed)
    if(failed)
        message(FATAL_ERROR
                "Darknet's source could not be patched; the lines above say why and what to do.")
    endif()
endfunction()

set(DARKNET_PATCHED ${CMAKE_BINARY_DIR}/darknet/patched)
darknet_patch(${DARKNET_TREE} ${DARKNET_PATCHED})
# Darknet as it is does not compile with today's CUDA, nor pjreddie's with today's OpenCV.
set(compiles)
if(DARKNET_AMP_CUDA)
    set(compiles "cuda-toolkit.patch cuda-math.patch")
endif()
if(DARKNET_OPENCV AND DARKNET_AMP_FORK STREQUAL "pjreddie")
    string(APPEND compiles " opencv.patch")
endif()
if(compiles AND DARKNET_AMP_BUILD_STOCK)
    darknet_patch(${DARKNET_TREE} ${CMAKE_BINARY_DIR}/darknet/stock --only "${compiles}")
    set(DARKNET_STOCK ${CMAKE_BINARY_DIR}/darknet/stock)
endif()

file(GLOB inputs CONFIGURE_DEPENDS patches/*.sh patches/*/*)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs})
