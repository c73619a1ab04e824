# cmake --install: a folder that works wherever it is moved. Its names are no other package's: the program is
# darknet-amp, and Darknet's own names are in folders of that name.

# The header as it was built: users of the library see the same structs without having to know the flags.
set(darknet_h "#ifndef AMP\n#define AMP\n#endif\n#define DARKNET_AMP_INSTALLED\n")
if(DARKNET_AMP_CUDA)
    string(APPEND darknet_h "#ifndef GPU\n#define GPU\n#endif\n#ifndef CUDNN\n#define CUDNN\n#endif\n")
endif()
file(READ ${DARKNET_PATCHED}/include/darknet.h original)
file(CONFIGURE OUTPUT include/darknet.h CONTENT "@darknet_h@@original@" @ONLY)

set(headers ${CMAKE_INSTALL_INCLUDEDIR}/darknet-amp)
set(own ${CMAKE_INSTALL_LIBDIR}/darknet-amp)
set(packages ${CMAKE_INSTALL_LIBDIR}/cmake/darknet-amp)

# For pkg-config and for CMake.
file(RELATIVE_PATH DARKNET_AMP_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" DARKNET_AMP_PC_PREFIX ${DARKNET_AMP_PC_PREFIX})
set(openmp_library -lgomp)
if(NOT CMAKE_C_COMPILER_ID STREQUAL "GNU") # clang's may be in a folder that linkers do not search
    string(REPLACE ";" " " openmp_library "${OpenMP_C_LIBRARIES}")
endif()
set(jpeg_library)
if(jpeg)
    set(jpeg_library -ljpeg)
endif()
configure_file(cmake/darknet-amp.pc.in darknet-amp.pc @ONLY)
include(CMakePackageConfigHelpers)
configure_package_config_file(cmake/darknet-amp-config.cmake.in darknet-amp-config.cmake
    INSTALL_DESTINATION ${packages} PATH_VARS own headers
    NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(darknet-amp-config-version.cmake COMPATIBILITY SameMinorVersion)

# The program lies beside its library, and a link to it where programs are. (The program is told where it lies
# itself; ldd takes the link's place for it.)
file(RELATIVE_PATH to_own /${CMAKE_INSTALL_BINDIR} /${own})
set_target_properties(darknet PROPERTIES INSTALL_RPATH "\$ORIGIN;\$ORIGIN/${to_own}")
install(TARGETS darknet darknet_shared darknet_static
    RUNTIME DESTINATION ${own} LIBRARY DESTINATION ${own} ARCHIVE DESTINATION ${own})
file(CREATE_LINK ${to_own}/darknet ${CMAKE_BINARY_DIR}/darknet-amp SYMBOLIC)
install(PROGRAMS ${CMAKE_BINARY_DIR}/darknet-amp DESTINATION ${CMAKE_INSTALL_BINDIR})

install(FILES ${CMAKE_BINARY_DIR}/include/darknet.h plugin/include/darknet_amp.h DESTINATION ${headers})
# The scaler alone, for other programs: #include <darknet_amp/amp/scaler.h>. The tree's folders, since
# headers name each other.
install(FILES plugin/amp/scaler.h DESTINATION ${headers}/darknet_amp/amp)
install(FILES plugin/tensor/status.h DESTINATION ${headers}/darknet_amp/tensor)
install(FILES ${CMAKE_BINARY_DIR}/darknet-amp.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${CMAKE_BINARY_DIR}/darknet-amp-config.cmake
    ${CMAKE_BINARY_DIR}/darknet-amp-config-version.cmake DESTINATION ${packages})

# install_packed(<file> <folder>): by gzip, as Debian has it
function(install_packed file folder)
    get_filename_component(name ${file} NAME)
    configure_file(${file} ${CMAKE_BINARY_DIR}/packed/${name} COPYONLY)
    execute_process(COMMAND gzip -9nf ${name} WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/packed
        COMMAND_ERROR_IS_FATAL ANY)
    install(FILES ${CMAKE_BINARY_DIR}/packed/${name}.gz DESTINATION ${folder})
endfunction()

install(FILES packaging/copyright README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY cfg/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)
install_packed(packaging/darknet-amp.1 ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES packaging/darknet-amp.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME darknet-amp)

if(DARKNET_AMP_CUDA OR NOT DARKNET_AMP_FORK STREQUAL "pjreddie")
    return() # NVIDIA's libraries are no packages of Debian's; packaging/copyright is about pjreddie's Darknet
endif()

# ---- cpack: a .deb for the Debian that this is ----
#
#     cmake --preset package && cmake --build --preset package
#
# takes dpkg-dev and file, which find the libraries' packages.

set(DARKNET_AMP_CONTACT "Darknet AMP authors <authors@darknet-amp.invalid>" CACHE STRING
    "Who makes the package")
# 1+debian12: a package made on a later Debian replaces the one of an earlier.
cmake_host_system_information(RESULT system QUERY DISTRIB_ID DISTRIB_VERSION_ID)
string(REPLACE ";" "" revision "1+${system}")
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(WRITE ${CMAKE_BINARY_DIR}/changelog.Debian
    "darknet-amp (${PROJECT_VERSION}-${revision}) unstable; urgency=medium\n\n"
    "  * Version ${PROJECT_VERSION}: see changelog.gz.\n\n"
    " -- ${DARKNET_AMP_CONTACT}  ${now}\n")
configure_file(CHANGELOG.md changelog COPYONLY)
install_packed(${CMAKE_BINARY_DIR}/changelog.Debian ${CMAKE_INSTALL_DOCDIR})
install_packed(${CMAKE_BINARY_DIR}/changelog ${CMAKE_INSTALL_DOCDIR})

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT ${DARKNET_AMP_CONTACT})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "neural networks (YOLO) in automatic mixed precision")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
    "Darknet, the C framework behind YOLO, with automatic mixed precision: most
of a training runs in bf16 or fp16, weights and losses stay in fp32, and the
loss is scaled so that small gradients survive. Without it, training is
Darknet's own, byte for byte.
The program is called darknet-amp. Library, headers, and files for pkg-config
and CMake are part of this package.")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_RELEASE ${revision})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_STRIP_FILES ON)
include(CPack)
