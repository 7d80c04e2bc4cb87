# SPDX-License-Identifier: Apache-2.0
# halfscope_missing(NEED WHAT): ends with how to get what ./run NEED would have installed.
function(halfscope_missing need what)
  file(STRINGS ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../tools/debian-packages.txt packages REGEX "^${need}: ")
  string(REPLACE "${need}: " "" packages "${packages}")
  message(FATAL_ERROR "${what} was not found. On Debian 12, ./run ${need} installs all that is "
                      "needed, or by hand: apt-get install --no-install-recommends ${packages}. "
                      "Elsewhere install its like; CMAKE_PREFIX_PATH names folders to look in.")
endfunction()
