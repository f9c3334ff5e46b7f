# A room is a directory under src/ and a static library dz_NAME; a room without sources yet is an interface library.

function(dz_room name)
  cmake_parse_arguments(ARG "" "" "ROOMS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  dz_room_library(${name} "${sources}" "${ARG_ROOMS}" "${ARG_LIBRARIES}")
endfunction()

function(dz_room_library name sources rooms libraries)
  list(TRANSFORM rooms PREPEND dz_)
  if(sources)
    add_library(dz_${name} STATIC ${sources})
    target_include_directories(dz_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(dz_${name} PUBLIC ${rooms} ${libraries})
  else()
    add_library(dz_${name} INTERFACE)
    target_include_directories(dz_${name} INTERFACE ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(dz_${name} INTERFACE ${rooms} ${libraries})
  endif()
endfunction()

# Kernels: files beside table.h and in ref/ are plain code; each other directory is compiled with its own instruction set.
# simd/ holds the ops written once over 16 lanes and is compiled for AVX2, AVX-512 and AVX512_BF16 (DZ_SIMD names the namespace).
# GCC 12's own AVX-512 headers start from a self-initialised register and set off the two warnings wherever they are inlined.
set(DZ_AVX512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512 -Wno-uninitialized -Wno-maybe-uninitialized)

function(dz_kernels)
  cmake_parse_arguments(ARG "" "" "ROOMS" ${ARGN})
  set(root ${PROJECT_SOURCE_DIR}/src/kernels)
  file(GLOB sources CONFIGURE_DEPENDS ${root}/*.cpp ${root}/ref/*.cpp)
  dz_room_library(kernels "${sources}" "${ARG_ROOMS}" "")
  dz_isa_files(avx2 simd -DDZ_SIMD=avx2)
  dz_isa_files(avx512 simd -DDZ_SIMD=avx512 ${DZ_AVX512})
  dz_isa_files(avx512_bf16 simd -DDZ_SIMD=avx512_bf16 ${DZ_AVX512} -mavx512bf16)
  dz_isa_files(avx2 avx2 -DDZ_SIMD=avx2)
  dz_isa_files(avx512 avx512 -DDZ_SIMD=avx512 ${DZ_AVX512})
  dz_isa_files(avx512_bf16 avx512_bf16 ${DZ_AVX512} -mavx512bf16)
  dz_isa_files(amx amx ${DZ_AVX512} -mavx512bf16 -mamx-tile -mamx-bf16)
endfunction()

function(dz_isa_files isa directory)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/${directory}/*.cpp)
  if(NOT sources)
    return()
  endif()
  set(target dz_kernels_${directory}_${isa})
  add_library(${target} OBJECT ${sources})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  # -O3 unrolls the short loops over vectors and rows, so that their arrays become registers.
  target_compile_options(${target} PRIVATE ${ARGN} $<$<CONFIG:Release>:-O3>)
  target_sources(dz_kernels PRIVATE $<TARGET_OBJECTS:${target}>)
endfunction()

# tests/NAME/*.cpp become the program test_NAME, run as one CTest test; DZ_GOLDEN is the folder of recorded numbers.
function(dz_tests name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(test_${name} PRIVATE
    DZ_GOLDEN="${PROJECT_SOURCE_DIR}/tests/golden" DZ_SOURCE="${PROJECT_SOURCE_DIR}" DZ_BINARY="$<TARGET_FILE:deltazero>"
    DZ_SANITIZED=$<BOOL:${DZ_SANITIZE}>)
  target_link_libraries(test_${name} PRIVATE dz_cli nlohmann_json::nlohmann_json GTest::gtest_main)
  if(name STREQUAL cli OR name STREQUAL train)
    add_dependencies(test_${name} deltazero)
  endif()
  if(name STREQUAL kernels)
    # The AMX form over emulated tiles, in its own object so that nothing else here is AVX-512 code.
    add_library(test_kernels_emulated OBJECT ${PROJECT_SOURCE_DIR}/tests/kernels/emulated/amx_gemm.cpp)
    target_include_directories(test_kernels_emulated PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
    target_compile_options(test_kernels_emulated PRIVATE ${DZ_AVX512})
    target_sources(test_kernels PRIVATE $<TARGET_OBJECTS:test_kernels_emulated>)
  endif()
  add_test(NAME ${name} COMMAND test_${name})
endfunction()

# tests/fuzz/NAME_fuzz.cpp feeds damaged inputs to a parser; as a test it runs over the given directory of tests/golden.
function(dz_fuzz name room directory)
  add_executable(fuzz_${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/${name}_fuzz.cpp)
  target_link_libraries(fuzz_${name} PRIVATE dz_${room})
  add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${PROJECT_SOURCE_DIR}/tests/golden/${directory})
endfunction()

function(dz_benches)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(bench_${name} ${source})
    target_link_libraries(bench_${name} PRIVATE dz_cli benchmark::benchmark)
  endforeach()
endfunction()
