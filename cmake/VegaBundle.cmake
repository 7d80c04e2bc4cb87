# SPDX-License-Identifier: Apache-2.0
# The pages of `halfscope report` and `compare` with the Vega bundle inside, which the Python package
# vl-convert-python carries. Without that package the program builds and
# `report` says what it lacks.
set(HALFSCOPE_VEGA_PYTHON "" CACHE FILEPATH
    "Python with vl-convert-python, for reports; empty: the package's, .venv/bin/python, then python3")

# halfscope_find_vega_python(VAR): the first interpreter that has the package, or nothing.
function(halfscope_find_vega_python result)
  set(candidates ${HALFSCOPE_VEGA_PYTHON})
  if(NOT candidates)
    find_program(HALFSCOPE_PYTHON3 python3)
    mark_as_advanced(HALFSCOPE_PYTHON3)
    set(candidates ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/.venv/bin/python ${HALFSCOPE_PYTHON3} /usr/bin/python3)
  endif()
  foreach(python IN LISTS candidates)
    execute_process(COMMAND ${python} -c "import vl_convert; vl_convert.javascript_bundle"
                    RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(failed STREQUAL "0")
      set(${result} ${python} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${result} "" PARENT_SCOPE)
endfunction()

# halfscope_embed_page(): puts the pages into page/template.cpp of the directory, where it can be made.
function(halfscope_embed_page)
  halfscope_find_vega_python(python)
  if(NOT python)
    message(WARNING "No Python with vl-convert-python was found: `halfscope report` will exit 3. "
                    "Install it (pip install vl-convert-python) or set HALFSCOPE_VEGA_PYTHON.")
    set_source_files_properties(page/template.cpp PROPERTIES COMPILE_DEFINITIONS HALFSCOPE_HAS_VEGA=0)
    return()
  endif()
  message(STATUS "Vega bundle for reports: by ${python}")
  set(assets ${CMAKE_CURRENT_SOURCE_DIR}/assets)
  file(GLOB charts CONFIGURE_DEPENDS ${assets}/charts/*/*.json)
  foreach(name page compare)
    set(${name} ${CMAKE_CURRENT_BINARY_DIR}/${name}.html)
    add_custom_command(
      OUTPUT ${${name}}
      COMMAND ${python} ${assets}/assemble.py ${assets} ${name} ${${name}}
      DEPENDS ${assets}/assemble.py ${assets}/${name}.html ${assets}/page.css ${assets}/${name}.js
              ${assets}/charts.js ${assets}/draw.js ${assets}/tables.js ${assets}/csv.js ${assets}/data.js ${assets}/loader.js
              ${assets}/vega-license.txt ${charts}
      COMMENT "Assembling the page ${name}.html" VERBATIM)
  endforeach()
  set_source_files_properties(page/template.cpp PROPERTIES
    OBJECT_DEPENDS "${page};${compare}"
    COMPILE_DEFINITIONS
    "HALFSCOPE_HAS_VEGA=1;HALFSCOPE_PAGE=\"${page}\";HALFSCOPE_COMPARE_PAGE=\"${compare}\"")
endfunction()
