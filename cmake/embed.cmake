# Turns files into std::string_view constants, so that the program needs no file beside it.
# dz_embed(TARGET HEADER NAMESPACE NAME PATH [NAME PATH]...): TARGET gets one generated source that defines NAMESPACE::NAME
# for each pair; HEADER, which is written by hand, declares them.
function(dz_embed target header namespace)
  set(text "#include \"${header}\"\n\nnamespace ${namespace} {\n")
  while(ARGN)
    list(POP_FRONT ARGN name path)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    file(READ ${path} hex HEX)
    string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
    string(APPEND text "\nstatic constexpr char ${name}Bytes[] = {${bytes}};\n"
      "const std::string_view ${name}(${name}Bytes, sizeof(${name}Bytes));\n")
  endwhile()
  string(APPEND text "\n}  // namespace ${namespace}\n")
  set(file ${PROJECT_BINARY_DIR}/embedded/${target}.cpp)
  file(CONFIGURE OUTPUT ${file} CONTENT "${text}" @ONLY)
  target_sources(${target} PRIVATE ${file})
endfunction()

# The report's pages, and Chart.js from libjs-chart.js: a build that is complete in itself, in one file, for a plain <script>.
function(dz_embed_report)
  find_file(DZ_CHART_JS NAMES chart.umd.js chart.min.js chart.js
    PATHS /usr/share/nodejs/chart.js/dist /usr/share/javascript/chart.js NO_DEFAULT_PATH)
  if(NOT DZ_CHART_JS)
    message(FATAL_ERROR "Chart.js not found; tools/setup.sh installs it (libjs-chart.js)")
  endif()
  set(page ${PROJECT_SOURCE_DIR}/src/track/page)
  dz_embed(dz_track track/page.h dz::track kChartJs ${DZ_CHART_JS}
    kPageHtml ${page}/report.html kPageCss ${page}/report.css kPageJs ${page}/report.js)
endfunction()
