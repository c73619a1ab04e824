# The plugin: an object library per room, all of them in DARKNET_AMP_ROOMS. Only host and commands see Darknet's
# headers, and only the backends those of their libraries.

# plugin_room(<room> [libraries...])
function(plugin_room room)
    file(GLOB sources CONFIGURE_DEPENDS plugin/${room}/*.c)
    if(NOT sources)
        return()
    endif()
    string(REPLACE "/" "_" target "amp_room_${room}")
    add_library(${target} OBJECT ${sources})
    set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
    target_compile_definitions(${target} PRIVATE _POSIX_C_SOURCE=200809L)
    target_compile_options(${target} PRIVATE ${plugin_flags} -Wall -Wextra)
    target_include_directories(${target} PRIVATE plugin plugin/include)
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

add_library(darknet_headers INTERFACE)
target_include_directories(darknet_headers SYSTEM INTERFACE ${DARKNET_PATCHED}/include ${DARKNET_PATCHED}/src)
target_compile_definitions(darknet_headers INTERFACE AMP)
target_link_libraries(darknet_headers INTERFACE darknet_configuration)

set(DARKNET_AMP_ROOMS)
plugin_room(tensor)
plugin_room(backend)
plugin_room(backend/cpu oneDNN)
plugin_room(layers)
plugin_room(amp)
plugin_room(host darknet_headers)
plugin_room(commands darknet_headers)
