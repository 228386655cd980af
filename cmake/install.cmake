# What `cmake --install` puts under a prefix, and the packages that `cpack` makes of it: the program,
# the configs with their corpora (which the quickstart's finds beside it), the documents as they lie
# in the source, so that their links hold.
install(TARGETS fathom RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/fathom)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES checkpoint/FORMAT.md DESTINATION ${CMAKE_INSTALL_DOCDIR}/checkpoint)

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_CONTACT "the Fathom maintainers")
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR}/packages)
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# dpkg-shlibdeps sees what the program is linked with. OpenBLAS is opened at run time (blas_cpu.h),
# and mpirun starts the ranks.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libopenblas0-pthread, openmpi-bin")
include(CPack)
