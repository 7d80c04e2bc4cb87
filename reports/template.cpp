// SPDX-License-Identifier: Apache-2.0
#include "reports/template.hpp"

#if HALFSCOPE_HAS_VEGA
// The assembled page, byte for byte.
__asm__(
    ".pushsection .rodata\n"
    ".global halfscope_page_begin, halfscope_page_end\n"
    "halfscope_page_begin: .incbin \"" HALFSCOPE_PAGE
    "\"\n"
    "halfscope_page_end: .byte 0\n"
    ".popsection\n");
extern "C" const char halfscope_page_begin[];
extern "C" const char halfscope_page_end[];
#endif

namespace halfscope::reports {

std::string_view page_template() {
#if HALFSCOPE_HAS_VEGA
  return {halfscope_page_begin, halfscope_page_end};
#else
  return {};
#endif
}

}  // namespace halfscope::reports
