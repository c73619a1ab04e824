# The CUDA backend's own sources on the CPU: its .cu files compiled by the C++ compiler
# (doubles/cuda_shim.h), the libraries beneath replaced by doubles. It takes the CUDA toolkit's headers, and
# neither nvcc nor a library nor a GPU.
#
#   test_cuda_shim             the doubles themselves: each fault that they are there for is made, and seen
#   test_cuda_races            they see races, whether or not a result is right
#   test_cuda_library_doubles  that of cuBLAS sees misuse
#   test_cuda_graph            what the backend says to cuDNN, each call of its failing, and that its double
#                              sees a mistake in each attribute
#   test_cuda_double_*         the conformance tests, and the layers over the backend
#   test_cuda_contracted_*     of these the tests of kernels, with fma as nvcc makes it
#   test_cuda_double_partial   that a backend of one kernel links, as docs/extending.md promises
#   test_cuda_backend          the backend around its kernels, and each call beneath it failing
#   test_cuda_large            that the test of large tensors, for a GPU, is right
#   test_cuda_engines          that the one of cuDNN's engines is
#   darknet-on-doubles         Darknet's program over all of them, for e2e/cuda_doubles.sh
#   bench-step-on-doubles      and the benchmark's, for gpu/rehearse.sh
#   test_nccl_library          the NCCL of this machine, if there is one, has the functions that ranks call
#   test_cuda_update           what the end of a step costs there, and each call beneath it failing
#   test_cuda_compiles         nvcc takes every .cu file, for each generation of GPUs from 7.0 that it knows
find_package(CUDAToolkit QUIET)
find_path(CUDA_HEADERS cuda_fp16.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ENV CUDA_HOME
    PATHS /usr/local/cuda PATH_SUFFIXES include
    DOC "The folder that holds CUDA's headers")
mark_as_advanced(CUDA_HEADERS)
if(NOT CUDA_HEADERS)
    add_test(NAME test_cuda_doubles
        COMMAND sh -c "echo 'skipped: there are no CUDA headers (cuda_fp16.h)'; exit 77")
    set_tests_properties(test_cuda_doubles PROPERTIES SKIP_RETURN_CODE 77)
    return()
endif()

set(cuda_room ${CMAKE_SOURCE_DIR}/plugin/backend/cuda)
set(double_flags ${plugin_flags} ${wextra} -fno-strict-aliasing)
if(DARKNET_AMP_SANITIZE)
    list(APPEND double_flags -fsanitize-sections=amp_shared_*)
else()
    list(APPEND double_flags -O1 -g) # of what is a test's time, compiling is the larger part
endif()

# What all of these programs are compiled with.
add_library(cuda_double_settings INTERFACE)
target_compile_features(cuda_double_settings INTERFACE c_std_11 cxx_std_17)
target_compile_definitions(cuda_double_settings INTERFACE _POSIX_C_SOURCE=200809L)
target_compile_options(cuda_double_settings INTERFACE ${double_flags})
target_include_directories(cuda_double_settings INTERFACE
    ${CMAKE_SOURCE_DIR}/plugin ${CMAKE_SOURCE_DIR}/plugin/include
    ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/helpers ${CMAKE_CURRENT_SOURCE_DIR}/doubles)
target_include_directories(cuda_double_settings SYSTEM INTERFACE ${CUDA_HEADERS} ${CMOCKA_INCLUDE_DIR})
if(EXISTS ${CUDA_HEADERS}/cccl)
    target_include_directories(cuda_double_settings SYSTEM INTERFACE ${CUDA_HEADERS}/cccl)
endif()
target_link_libraries(cuda_double_settings INTERFACE ${CMOCKA_LIBRARY} Threads::Threads m)
if(DARKNET_AMP_SANITIZE)
    target_link_options(cuda_double_settings INTERFACE ${darknet_sanitizers})
endif()

# nvcc makes one fma of a product and the sum behind it, wherever the source does not say __fmul_rn or
# __fadd_rn. So does the C++ compiler for test_cuda_contracted_*, where the processor has the instruction: a
# kernel whose result is promised to equal two operations to the bit fails its test if it leaves that open.
set(contraction)
if(NOT CMAKE_CROSSCOMPILING AND NOT DARKNET_AMP_SANITIZE AND EXISTS /proc/cpuinfo)
    file(STRINGS /proc/cpuinfo fma REGEX "^flags.* fma( |$)" LIMIT_COUNT 1)
    if(fma)
        set(contraction -ffp-contract=fast -mfma -fexpensive-optimizations)
    endif()
endif()

# For all other programs a hook before each access of a kernel's memory, and for each that is not aligned:
# doubles/cuda_races.cc. (With hooks between them the compiler would not join operations.)
set(hooks -ffp-contract=off)
if(NOT DARKNET_AMP_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND hooks -fsanitize=thread -fsanitize=alignment --param=tsan-instrument-func-entry-exit=0)
    target_compile_definitions(cuda_double_settings INTERFACE AMP_SHIM_RACES=1)
endif()

if(NOT DARKNET_AMP_SANITIZE STREQUAL "ON")
    set(shared_memory -fdata-sections)
    target_link_options(cuda_double_settings INTERFACE -Wl,-T,${CMAKE_CURRENT_SOURCE_DIR}/doubles/shared.ld)
endif()

# CUDA C++ for the C++ compiler.
function(cuda_on_the_cpu)
    set(contracted $<BOOL:$<TARGET_PROPERTY:AMP_CONTRACTED>>)
    set(shim ${CMAKE_CURRENT_SOURCE_DIR}/doubles/cuda_shim.h)
    set(flags -include ${shim} -Wno-unknown-pragmas ${shared_memory}
        "$<IF:${contracted},${contraction},${hooks}>")
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX OBJECT_DEPENDS ${shim}
        COMPILE_OPTIONS "${flags}")
endfunction()

# cuda_double_objects(<library> <sources...>)
function(cuda_double_objects name)
    add_library(${name} OBJECT ${ARGN})
    set_target_properties(${name} PROPERTIES C_EXTENSIONS OFF CXX_EXTENSIONS ON)
    target_link_libraries(${name} PUBLIC cuda_double_settings)
endfunction()

# Without the headers of cuDNN the backend is its kernels. cuda_double: the object libraries that it is.
file(GLOB cuda_kernels CONFIGURE_DEPENDS ${cuda_room}/*.cu)
cuda_on_the_cpu(${cuda_kernels})
cuda_double_objects(cuda_double_kernels ${cuda_kernels})
cuda_double_objects(cuda_double_runtime doubles/cuda_shim.cc doubles/cuda_races.cc
    doubles/cuda_runtime_double.cc doubles/cuda_loans.cc)
foreach(lender scratch reserve allocate malloc spare_get)
    target_link_options(cuda_double_settings INTERFACE -Wl,--wrap=amp_cuda_${lender})
endforeach()
cuda_double_objects(cuda_double_machine conformance/machine_cuda_double.c)
set(cuda_double_but_kernels cuda_double_runtime)
if(CUDNN_INCLUDE_DIR)
    file(GLOB cuda_c CONFIGURE_DEPENDS ${cuda_room}/*.c)
    file(GLOB cuda_library_doubles CONFIGURE_DEPENDS doubles/cudnn*.cc doubles/cublas*.cc)
    target_include_directories(cuda_double_settings SYSTEM INTERFACE ${CUDNN_INCLUDE_DIR})
    cuda_double_objects(cuda_double_libraries ${cuda_c} ${cuda_library_doubles})
    list(APPEND cuda_double_but_kernels cuda_double_libraries)
    set(cuda_double_whole ON)
endif()
set(cuda_double ${cuda_double_but_kernels} cuda_double_kernels)
if(NOT DARKNET_AMP_SANITIZE)
    # Their sums take most of some tests' time.
    set_source_files_properties(
        doubles/cudnn_convolution.cc doubles/cudnn_execution.cc doubles/cublas_double.cc
        PROPERTIES COMPILE_OPTIONS "-O3;-ffp-contract=off")
    # So do its threads, and what is looked at.
    set_source_files_properties(doubles/cuda_shim.cc doubles/cuda_races.cc PROPERTIES COMPILE_OPTIONS -O3)
endif()

# cuda_double_program(<executable> <libraries...>): a test of what is linked to it
function(cuda_double_program name)
    set_target_properties(${name} PROPERTIES C_EXTENSIONS OFF CXX_EXTENSIONS ON LINKER_LANGUAGE CXX
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    target_link_libraries(${name} PRIVATE ${ARGN})
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${environment}" SKIP_RETURN_CODE 77
        TIMEOUT ${unit_timeout})
endfunction()

function(cuda_double_test name)
    add_executable(${name} ${ARGN})
    cuda_double_program(${name} ${cuda_double})
endfunction()

# A test for any machine of conformance/machine.h.
function(cuda_double_machine_test name)
    cuda_double_test(${name} ${ARGN})
    target_link_libraries(${name} PRIVATE cuda_double_machine)
endfunction()

foreach(test ${conformance_tests})
    string(REPLACE test_backend_ test_cuda_double_ name ${test})
    cuda_double_machine_test(${name} backend/${test}.c)
endforeach()

# AlexeyAB's rules of yolo are held to bounds that leave no room for fma.
if(contraction)
    cuda_double_objects(cuda_double_contracted ${cuda_kernels})
    set_target_properties(cuda_double_contracted PROPERTIES AMP_CONTRACTED ON)
    foreach(kernels cast kernels_move kernels_norm kernels_update yolo)
        set(name test_cuda_contracted_${kernels})
        add_executable(${name} backend/test_backend_${kernels}.c)
        cuda_double_program(${name} ${cuda_double_but_kernels} cuda_double_contracted cuda_double_machine)
    endforeach()
endif()

# A backend of one kernel, as one that is being written: all else stays NULL.
add_executable(test_cuda_double_partial backend/test_backend_cast.c ${cuda_room}/cast.cu)
cuda_double_program(test_cuda_double_partial cuda_double_runtime cuda_double_machine)

cuda_double_machine_test(test_cuda_double_unlisted cuda/kernels_move.c)
if(cuda_double_whole)
    cuda_double_machine_test(test_cuda_double_layers layers/test_backend_layers.c
        $<TARGET_OBJECTS:amp_room_layers>
        ${CMAKE_SOURCE_DIR}/plugin/amp/plan.c ${CMAKE_SOURCE_DIR}/plugin/amp/autocast.c)
endif()

cuda_double_machine_test(test_cuda_update cuda/update.c)
cuda_on_the_cpu(${CMAKE_CURRENT_SOURCE_DIR}/cuda/faults.cu ${CMAKE_CURRENT_SOURCE_DIR}/cuda/races.cu)
cuda_double_test(test_cuda_shim cuda/shim.c cuda/faults.cu)
cuda_double_test(test_cuda_races cuda/race_check.c cuda/faults.cu cuda/races.cu)
if(cuda_double_whole)
    cuda_double_test(test_cuda_library_doubles cuda/library_doubles.c)
    cuda_double_test(test_cuda_graph cuda/graph.c)
    target_link_options(test_cuda_graph PRIVATE -Wl,--wrap=cudnnBackendSetAttribute)
    cuda_double_test(test_cuda_backend cuda/backend.c)
    cuda_double_machine_test(test_cuda_large gpu/large.c)
    cuda_double_machine_test(test_cuda_engines gpu/engines.c)
    set_property(TEST test_cuda_large test_cuda_engines APPEND PROPERTY ENVIRONMENT AMP_TEST_SMALL=1)
    set(conv_shapes CONV_SHAPES="${CMAKE_CURRENT_SOURCE_DIR}/golden/conv_shapes.txt")
    target_compile_definitions(test_cuda_engines PRIVATE ${conv_shapes})
endif()

# The programs of tests/gpu, which no build for the CPU links: that one does not compile is seen here.
if(cuda_double_whole)
    set(gpu_sources_of_tests ${conformance_tests})
    list(TRANSFORM gpu_sources_of_tests REPLACE "(.+)" "backend/\\1.c")
    add_library(gpu_programs_compile OBJECT ${gpu_sources_of_tests} conformance/machine_cuda_device.c
        cuda/update.c cuda/kernels_move.c gpu/large.c gpu/engines.c gpu/device_properties.c)
    set_target_properties(gpu_programs_compile PROPERTIES C_STANDARD 11 C_EXTENSIONS OFF)
    target_compile_definitions(gpu_programs_compile PRIVATE _POSIX_C_SOURCE=200809L ON_DEVICE ${conv_shapes})
    target_compile_options(gpu_programs_compile PRIVATE ${plugin_flags} -O0 ${wextra})
    target_include_directories(gpu_programs_compile PRIVATE ${CMAKE_SOURCE_DIR}/plugin
        ${CMAKE_SOURCE_DIR}/plugin/include ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/helpers)
    target_include_directories(gpu_programs_compile SYSTEM PRIVATE ${CUDA_HEADERS} ${CUDNN_INCLUDE_DIR}
        ${CMOCKA_INCLUDE_DIR})
endif()

find_path(NCCL_HEADERS nccl.h HINTS ${CUDA_HEADERS} DOC "The folder that holds NCCL's header, for a test")
mark_as_advanced(NCCL_HEADERS)
add_executable(test_nccl_library cuda/nccl_library.c)
set_target_properties(test_nccl_library PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
target_link_libraries(test_nccl_library PRIVATE cuda_double_settings ${CMAKE_DL_LIBS})
if(NCCL_HEADERS)
    target_compile_definitions(test_nccl_library PRIVATE AMP_NCCL_HEADER)
    target_include_directories(test_nccl_library SYSTEM PRIVATE ${NCCL_HEADERS})
endif()
add_test(NAME test_nccl_library COMMAND test_nccl_library)
set_tests_properties(test_nccl_library PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${unit_timeout})

# Darknet as it is on the CPU, but that it gets the CUDA backend where it asks for the CPU's.
if(cuda_double_whole AND NOT DARKNET_AMP_CUDA)
    add_library(darknet_on_doubles OBJECT cuda/darknet_on_doubles.c faults/fault_in_backend.c)
    target_link_libraries(darknet_on_doubles PRIVATE cuda_double_settings)
    list(TRANSFORM cuda_double REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>" OUTPUT_VARIABLE on_doubles)
    function(program_on_doubles name)
        add_executable(${name} ${ARGN} ${on_doubles} $<TARGET_OBJECTS:darknet_on_doubles>)
        set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX
            RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
        target_link_libraries(${name} PRIVATE darknet_static amp_libraries)
        target_link_options(${name} PRIVATE
            $<TARGET_PROPERTY:cuda_double_settings,INTERFACE_LINK_OPTIONS> ${darknet_link_flags}
            -Wl,--wrap=amp_cpu_backend_create)
    endfunction()
    program_on_doubles(darknet-on-doubles $<TARGET_OBJECTS:darknet>)
    set(bench ${CMAKE_SOURCE_DIR}/bench)
    program_on_doubles(bench-step-on-doubles ${bench}/step.c ${bench}/fork.c ${bench}/gpu_parts.c
        ${bench}/costs.c)
    target_include_directories(bench-step-on-doubles SYSTEM PRIVATE
        $<TARGET_PROPERTY:darknet_host,INTERFACE_INCLUDE_DIRECTORIES>)
endif()

find_program(NVCC nvcc HINTS ${CUDAToolkit_BIN_DIR} ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin
    DOC "CUDA's compiler")
mark_as_advanced(NVCC)
add_test(NAME test_cuda_compiles COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/in_empty_folder.sh
    ${CMAKE_BINARY_DIR}/tests/cuda_compiles ${CMAKE_CURRENT_SOURCE_DIR}/cuda/compile.sh)
set_tests_properties(test_cuda_compiles PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${unit_timeout}
    ENVIRONMENT "NVCC=$<$<BOOL:${NVCC}>:${NVCC}>;SOURCE_DIR=${CMAKE_SOURCE_DIR}")
