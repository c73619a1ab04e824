# Darknet's targets, from a patched or an unpatched tree, with the flags of its Makefile.

if(DARKNET_AMP_SANITIZE STREQUAL "thread")
    set(darknet_sanitizers -fsanitize=thread -fno-omit-frame-pointer)
else()
    set(darknet_sanitizers -fsanitize=address,undefined -fno-omit-frame-pointer)
endif()
# As in its Makefile; -Wall says nothing new of old code.
set(darknet_warnings -Wno-unused-result -Wno-unknown-pragmas)
if(DARKNET_AMP_SANITIZE)
    # Darknet's recurrent layers step pointers that are NULL and that nobody reads.
    set(darknet_flags -O1 -g ${darknet_sanitizers} -fno-sanitize=pointer-overflow)
    set(darknet_link_flags ${darknet_sanitizers})
    set(darknet_library_link_flags ${darknet_sanitizers})
    set(plugin_flags -O1 -g ${darknet_sanitizers} -fno-sanitize-recover=undefined)
else()
    set(darknet_flags -Ofast)
    # Links start-up code into a program that sets flush-to-zero before main, and so for all of its threads,
    # as Darknet's Makefile does. The library goes without, since it would set it in any program that uses it.
    set(darknet_link_flags -Ofast)
    set(darknet_library_link_flags)
    set(plugin_flags -O3)
endif()

# What Darknet's own headers need to be read, in its files and in the plugin's host room.
add_library(darknet_configuration INTERFACE)
if(DARKNET_AMP_CUDA)
    if(NOT CMAKE_CUDA_ARCHITECTURES)
        set(CMAKE_CUDA_ARCHITECTURES all-major)
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    include(cmake/cuDNN.cmake)
    if(NOT TARGET cuDNN)
        message(FATAL_ERROR
            "cuDNN was not found. Install cuDNN 8 or 9 for CUDA ${CUDAToolkit_VERSION_MAJOR}; if it is in an "
            "unusual place, set the environment variable CUDNN_ROOT to the folder with its include/ and "
            "lib/.")
    endif()
    target_compile_definitions(darknet_configuration INTERFACE GPU CUDNN)
    target_link_libraries(darknet_configuration INTERFACE cuDNN CUDA::cudart CUDA::cublas CUDA::curand stdc++)
    if(DARKNET_AMP_FORK STREQUAL "alexeyab")
        target_link_libraries(darknet_configuration INTERFACE CUDA::cuda_driver)
    endif()
else()
    find_program(DARKNET_AMP_NVCC nvcc HINTS /usr/local/cuda/bin)
    mark_as_advanced(DARKNET_AMP_NVCC)
    if(DARKNET_AMP_NVCC)
        message(STATUS "CUDA is installed, but this build uses the CPU only. The preset `cuda`, or "
            "-DDARKNET_AMP_CUDA=ON, builds for NVIDIA GPUs: see docs/gpu.md")
    endif()
endif()
if(DARKNET_OPENCV)
    find_package(OpenCV QUIET COMPONENTS core highgui imgcodecs imgproc videoio)
    if(NOT OpenCV_FOUND)
        message(FATAL_ERROR "OpenCV was not found, but DARKNET_OPENCV=ON needs it: install libopencv-dev "
            "(scripts/dependencies.sh --opencv does), or set OpenCV_DIR to the folder of OpenCVConfig.cmake")
    endif()
    target_compile_definitions(darknet_configuration INTERFACE OPENCV)
    target_link_libraries(darknet_configuration INTERFACE ${OpenCV_LIBS})
endif()
target_link_libraries(darknet_configuration INTERFACE Threads::Threads m)

# darknet_look(<tree>): what its files say of a tree: sets program, the files of the program; include, the
# folders of headers; and language, what links it. Half of AlexeyAB's Darknet is in src/darknet.c's folder,
# and two of its files are C++.
function(darknet_look tree)
    if(EXISTS ${tree}/src/darknet.c)
        set(program ${tree}/src/darknet.c PARENT_SCOPE)
        set(include ${tree}/include ${tree}/src ${tree}/3rdparty/stb/include PARENT_SCOPE)
        set(language CXX PARENT_SCOPE)
        return()
    endif()
    set(examples)
    foreach(example captcha lsd super art tag cifar go rnn segmenter regressor classifier coco yolo detector
            nightmare
            instance-segmenter darknet)
        list(APPEND examples ${tree}/examples/${example}.c)
    endforeach()
    set(program ${examples} PARENT_SCOPE)
    set(include ${tree}/include ${tree}/src PARENT_SCOPE)
    set(language C PARENT_SCOPE)
endfunction()

# darknet_flags_for(<target>): compiles the target's files as Darknet's own
function(darknet_flags_for target)
    set(c_and_cxx "$<COMPILE_LANGUAGE:C,CXX>")
    target_compile_options(${target} PRIVATE "$<${c_and_cxx}:${darknet_warnings};${darknet_flags}>")
    if(DARKNET_AMP_CUDA)
        string(REPLACE ";" "," host_flags "${darknet_flags}")
        target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${host_flags}>")
    endif()
    target_link_libraries(${target} PRIVATE darknet_configuration)
    if(DARKNET_OPENMP)
        target_link_libraries(${target} PRIVATE OpenMP::OpenMP_C)
    endif()
endfunction()

# darknet_objects(<target> <tree> [definitions...]): Darknet's library, as objects
function(darknet_objects target tree)
    darknet_look(${tree})
    file(GLOB sources ${tree}/src/*.c ${tree}/src/*.cpp)
    if(language STREQUAL "CXX") # programs, and what Windows wants
        list(FILTER sources EXCLUDE REGEX "/(darknet\\.c|yolo_console_dll\\.cpp|gettimeofday\\.c)$")
    else() # compare.c is in no build of Darknet's
        list(FILTER sources EXCLUDE REGEX "/compare\\.c$")
    endif()
    if(DARKNET_AMP_CUDA)
        file(GLOB kernels ${tree}/src/*.cu)
        list(APPEND sources ${kernels})
    endif()
    add_library(${target} OBJECT ${sources})
    target_include_directories(${target} PUBLIC ${include})
    set_target_properties(${target} PROPERTIES CXX_STANDARD 11)
    target_compile_definitions(${target} PRIVATE ${ARGN})
    darknet_flags_for(${target})
endfunction()

# darknet_targets(<name> <tree> OBJECTS <object libraries> [DEFINITIONS ...] [INCLUDE ...] [LINK ...]):
# the program <name>, and <name>_shared and <name>_static, which are lib<name>.so and .a
function(darknet_targets name tree)
    cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "OBJECTS;DEFINITIONS;INCLUDE;LINK")
    darknet_look(${tree})
    set(objects)
    foreach(library ${arg_OBJECTS})
        list(APPEND objects $<TARGET_OBJECTS:${library}>)
    endforeach()
    foreach(kind shared static)
        string(TOUPPER ${kind} KIND)
        add_library(${name}_${kind} ${KIND} ${objects})
        set_target_properties(${name}_${kind} PROPERTIES OUTPUT_NAME ${name}
            LINKER_LANGUAGE ${language})
        target_include_directories(${name}_${kind} SYSTEM INTERFACE ${tree}/include ${arg_INCLUDE})
        target_compile_definitions(${name}_${kind} INTERFACE ${arg_DEFINITIONS})
        target_link_libraries(${name}_${kind} PUBLIC darknet_configuration PRIVATE ${arg_LINK})
        if(DARKNET_OPENMP)
            target_link_libraries(${name}_${kind} PRIVATE OpenMP::OpenMP_C)
        endif()
    endforeach()
    target_link_options(${name}_shared PRIVATE ${darknet_library_link_flags})

    add_executable(${name} ${program})
    target_include_directories(${name} PRIVATE ${include})
    target_link_libraries(${name} PRIVATE ${name}_shared)
    darknet_flags_for(${name})
    target_link_options(${name} PRIVATE ${darknet_link_flags})
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE ${language})
endfunction()
