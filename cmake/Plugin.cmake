# The plugin: an object library per room, all of them in DARKNET_AMP_ROOMS. Only host/darknet, host/family and
# the fork's own folder see Darknet's headers, and only the backends those of their libraries.
#
# In: DARKNET_AMP_PLUGIN, the plugin's folder; DARKNET_AMP_FORK and DARKNET_PATCHED, a Darknet's name and
# its patched tree; plugin_flags, and the target darknet_configuration, what its headers need.

# Many functions ignore some of the arguments that their table or their hook passes to all of them. Calling a
# function of Darknet's without its header, or with another fork's signature, is an error.
set(wextra -Wall -Wextra -Wno-unused-parameter)
set(wall ${wextra} -Werror=implicit-function-declaration -Werror=incompatible-pointer-types
    -Werror=int-conversion)

# plugin_room(<room> [libraries...])
macro(plugin_room)
    plugin_room_as(amp ${ARGV})
endmacro()

# plugin_room_as(<prefix of the target's name> <room> [libraries...])
function(plugin_room_as prefix room)
    file(GLOB sources CONFIGURE_DEPENDS ${DARKNET_AMP_PLUGIN}/${room}/*.c ${DARKNET_AMP_PLUGIN}/${room}/*.cpp)
    if(DARKNET_AMP_CUDA)
        file(GLOB kernels CONFIGURE_DEPENDS ${DARKNET_AMP_PLUGIN}/${room}/*.cu)
        list(APPEND sources ${kernels})
    endif()
    if(NOT sources)
        return()
    endif()
    string(REPLACE "/" "_" target "${prefix}_room_${room}")
    add_library(${target} OBJECT ${sources})
    set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
        CXX_STANDARD 17 INTERPROCEDURAL_OPTIMIZATION OFF CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON
        C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden)
    target_compile_definitions(${target} PRIVATE _POSIX_C_SOURCE=200809L)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C>:${plugin_flags};${wall}>"
        "$<$<COMPILE_LANGUAGE:CXX>:${plugin_flags};-Wall>")
    if(DARKNET_AMP_CUDA)
        string(REPLACE ";" "," host_flags "${plugin_flags};${wextra}")
        target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-O3;-Xcompiler=${host_flags}>")
    endif()
    target_include_directories(${target} PRIVATE ${DARKNET_AMP_PLUGIN} ${DARKNET_AMP_PLUGIN}/include)
    target_link_libraries(${target} PRIVATE OpenMP::OpenMP_C ${ARGN})

    # Files for one kind of CPU; whoever calls them asks the CPU first.
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        foreach(source ${sources})
            if(source MATCHES "_avx2\\.c$")
                set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
            elseif(source MATCHES "_avx512\\.c$")
                set_source_files_properties(${source} PROPERTIES
                    COMPILE_OPTIONS "-march=x86-64-v4;-mprefer-vector-width=512")
            endif()
        endforeach()
    endif()
    set(DARKNET_AMP_ROOMS ${DARKNET_AMP_ROOMS} ${target} PARENT_SCOPE)
endfunction()

# plugin_hank_ai(<target> <patched tree>): what C11 sees of hank-ai's headers, which are C++: structs.h,
# printed from them, and headers by AlexeyAB's names
function(plugin_hank_ai target patched)
    set(own ${DARKNET_AMP_PLUGIN}/host/hank_ai)
    set(printed ${CMAKE_CURRENT_BINARY_DIR}/${target})
    set(headers)
    foreach(header darknet.h darknet_internal.hpp darknet_enums.hpp darknet_layers.hpp darknet_network.hpp)
        list(APPEND headers ${patched}/src-lib/${header})
    endforeach()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${headers} ${own}/structs.awk)
    execute_process(COMMAND awk -f ${own}/structs.awk ${headers} OUTPUT_VARIABLE structs
        COMMAND_ERROR_IS_FATAL ANY)
    file(CONFIGURE OUTPUT ${printed}/structs.h CONTENT "@structs@" @ONLY)
    # Each field and its place mean what they mean in these two revisions.
    file(SHA256 ${printed}/structs.h sum)
    if(NOT sum STREQUAL "8d16479387cca54360a4a43e098c2d201035f82aae23d493486899428d7ee99f")
        message(FATAL_ERROR "Darknet AMP: the structs of ${patched}/src-lib differ from those of hank-ai's "
            "f684e1d7: use an unchanged checkout. ${printed}/structs.h shows the structs (${sum}).")
    endif()
    foreach(header activations blas box convolutional_layer dark_cuda data image network parser tree utils)
        file(CONFIGURE OUTPUT ${printed}/${header}.h CONTENT "#include \"darknet.h\"\n" @ONLY)
    endforeach()
    target_include_directories(${target} SYSTEM INTERFACE ${own} ${printed}
        $<$<COMPILE_LANGUAGE:CXX>:${patched}/src-lib>)
    target_compile_definitions(${target} INTERFACE DARKNET_AMP_HANK_AI OPENCV)
endfunction()

# plugin_fork(<prefix> <fork> <patched tree>): the rooms that are compiled against a Darknet
macro(plugin_fork prefix fork patched)
    add_library(${prefix}_headers INTERFACE)
    if(${fork} STREQUAL "hank_ai")
        plugin_hank_ai(${prefix}_headers ${patched})
    else()
        target_include_directories(${prefix}_headers SYSTEM INTERFACE
            ${patched}/include ${patched}/src ${patched}/3rdparty/stb/include)
    endif()
    target_compile_definitions(${prefix}_headers INTERFACE AMP)
    target_link_libraries(${prefix}_headers INTERFACE darknet_configuration)
    set(fork_rooms darknet ${fork})
    if(NOT ${fork} STREQUAL "pjreddie") # what AlexeyAB's and hank-ai's have alike
        list(APPEND fork_rooms family)
    endif()
    foreach(room ${fork_rooms})
        plugin_room_as(${prefix} host/${room} ${prefix}_headers)
    endforeach()
    if(NOT DARKNET_AMP_CPU)
        target_compile_definitions(${prefix}_room_host_darknet PRIVATE AMP_NO_CPU_BACKEND)
    endif()
endmacro()

# libjpeg-turbo decodes JPEGs where it is installed; other libjpegs are slower than stb_image.
set(DARKNET_AMP_JPEG AUTO CACHE STRING
    "Decode JPEGs by libjpeg-turbo, not by Darknet's stb_image: ON; OFF; AUTO: where it is installed")
set(jpeg)
if(DARKNET_AMP_JPEG)
    find_package(JPEG QUIET)
    if(JPEG_FOUND)
        include(CheckSymbolExists)
        set(CMAKE_REQUIRED_INCLUDES ${JPEG_INCLUDE_DIRS})
        check_symbol_exists(LIBJPEG_TURBO_VERSION "stdio.h;jpeglib.h" DARKNET_AMP_JPEG_IS_TURBO)
        unset(CMAKE_REQUIRED_INCLUDES)
    endif()
    if(DARKNET_AMP_JPEG_IS_TURBO)
        set(jpeg JPEG::JPEG)
    elseif(DARKNET_AMP_JPEG STREQUAL "AUTO")
        message(STATUS "libjpeg-turbo was not found: stb_image decodes JPEGs, which takes twice the time")
    else()
        message(FATAL_ERROR "libjpeg-turbo was not found: install Debian's or Ubuntu's package libjpeg-dev, "
            "or set DARKNET_AMP_JPEG=OFF")
    endif()
endif()

# What whoever links the plugin's objects links too.
add_library(amp_libraries INTERFACE)
target_link_libraries(amp_libraries INTERFACE oneDNN OpenMP::OpenMP_C ${jpeg})
if(jpeg)
    target_compile_definitions(amp_libraries INTERFACE AMP_JPEG)
endif()

set(DARKNET_AMP_ROOMS)
plugin_room(files)
plugin_room(image amp_libraries)
plugin_room(backend)
if(DARKNET_AMP_CPU)
    plugin_room(backend/cpu oneDNN)
endif()
if(DARKNET_AMP_CUDA)
    plugin_room(backend/cuda cuDNN CUDA::cudart CUDA::cublas)
    plugin_room(comm/nccl CUDA::cudart)
endif()
plugin_room(layers)
plugin_room(comm)
plugin_room(amp)
foreach(room host/program host/data host/network host/training)
    plugin_room(${room})
endforeach()
set(page ${DARKNET_AMP_PLUGIN}/commands/report/report.html)
set_source_files_properties(${DARKNET_AMP_PLUGIN}/commands/report/report_html.c PROPERTIES
    COMPILE_DEFINITIONS AMP_REPORT_PAGE="${page}" OBJECT_DEPENDS ${page})
foreach(room commands commands/bench commands/compare commands/log commands/map commands/plan
        commands/probe commands/report commands/selftest)
    plugin_room(${room})
endforeach()
# Ranks started by mpirun: DARKNET_AMP_LAUNCH, the room that a program is linked with, and what that takes.
option(DARKNET_AMP_MPI "Train with several ranks that mpirun starts: docs/parallel.md" OFF)
set(rooms ${DARKNET_AMP_ROOMS})
plugin_room(comm/none)
if(DARKNET_AMP_MPI OR DARKNET_AMP_BUILD_TESTS)
    find_package(MPI COMPONENTS C)
    if(DARKNET_AMP_MPI AND NOT MPI_C_FOUND)
        message(FATAL_ERROR "MPI was not found, but DARKNET_AMP_MPI=ON needs it: install libopenmpi-dev or "
            "libmpich-dev, or set MPI_C_COMPILER to the mpicc to use")
    endif()
    if(MPI_C_FOUND)
        plugin_room(comm/mpi MPI::MPI_C)
    endif()
endif()
set(DARKNET_AMP_ROOMS ${rooms})
set(DARKNET_AMP_LAUNCH amp_room_comm_none)
set(DARKNET_AMP_LAUNCH_LIBRARY)
if(DARKNET_AMP_MPI)
    set(DARKNET_AMP_LAUNCH amp_room_comm_mpi)
    set(DARKNET_AMP_LAUNCH_LIBRARY MPI::MPI_C)
endif()
set(DARKNET_AMP_ANY_FORK ${DARKNET_AMP_ROOMS}) # these name no Darknet
plugin_fork(amp ${DARKNET_AMP_FORK} ${DARKNET_PATCHED})
