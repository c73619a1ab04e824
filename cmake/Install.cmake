# cmake --install: a folder that works wherever it is moved.

# The header as it was built: users of the library see the same structs without having to know the flags.
set(darknet_h "#ifndef AMP\n#define AMP\n#endif\n#define DARKNET_AMP_INSTALLED\n")
if(DARKNET_AMP_CUDA)
    string(APPEND darknet_h "#ifndef GPU\n#define GPU\n#endif\n#ifndef CUDNN\n#define CUDNN\n#endif\n")
endif()
file(READ ${DARKNET_PATCHED}/include/darknet.h original)
file(CONFIGURE OUTPUT include/darknet.h CONTENT "@darknet_h@@original@" @ONLY)

file(RELATIVE_PATH DARKNET_AMP_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" DARKNET_AMP_PC_PREFIX ${DARKNET_AMP_PC_PREFIX})
configure_file(cmake/darknet-amp.pc.in darknet-amp.pc @ONLY)

install(TARGETS darknet darknet_shared darknet_static
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(FILES ${CMAKE_BINARY_DIR}/include/darknet.h plugin/include/darknet_amp.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# The scaler alone, for other programs: #include <darknet_amp/amp/scaler.h>. The tree's folders, since
# headers name each other.
install(FILES plugin/amp/scaler.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/darknet_amp/amp)
install(FILES plugin/tensor/status.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/darknet_amp/tensor)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES ${CMAKE_BINARY_DIR}/darknet-amp.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
