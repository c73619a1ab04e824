# Darknet's programs whose CPU backend computes one thing wrong (fault_in_backend.h), for tests of what must
# find it.
if(DARKNET_AMP_CUDA)
    return()
endif()
add_library(fault_in_backend OBJECT faults/fault_in_backend.c faults/darknet_with_fault.c)
set_target_properties(fault_in_backend PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)
target_compile_definitions(fault_in_backend PRIVATE _POSIX_C_SOURCE=200809L)
target_compile_options(fault_in_backend PRIVATE ${plugin_flags} ${wextra})
target_include_directories(fault_in_backend PRIVATE ${CMAKE_SOURCE_DIR}/plugin)
foreach(program darknet darknet-alexeyab)
    if(TARGET ${program})
        add_executable(${program}-with-fault $<TARGET_OBJECTS:${program}> $<TARGET_OBJECTS:fault_in_backend>)
        get_target_property(language ${program} LINKER_LANGUAGE)
        set_target_properties(${program}-with-fault PROPERTIES LINKER_LANGUAGE ${language}
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
        target_link_libraries(${program}-with-fault PRIVATE ${program}_static amp_libraries)
        target_link_options(${program}-with-fault PRIVATE ${darknet_link_flags}
            -Wl,--wrap=amp_cpu_backend_create)
    endif()
endforeach()
