// SPDX-License-Identifier: Apache-2.0
#include "reports/template.hpp"

#if HALFSCOPE_HAS_VEGA
// The assembled pages, byte for byte.
__asm__(
    ".pushsection .rodata\n"
    ".global halfscope_page_begin, halfscope_page_end\n"
    "halfscope_page_begin: .incbin \"" HALFSCOPE_PAGE
    "\"\n"
    "halfscope_page_end: .byte 0\n"
    ".global halfscope_compare_begin, halfscope_compare_end\n"
    "halfscope_compare_begin: .incbin \"" HALFSCOPE_COMPARE_PAGE
    "\"\n"
    "halfscope_compare_end: .byte 0\n"
    ".popsection\n");
extern "C" const char halfscope_page_begin[];
extern "C" const char halfscope_page_end[];
extern "C" const char halfscope_compare_begin[];
extern "C" const char halfscope_compare_end[];
#endif

namespace halfscope::reports {

std::string_view page_template() {
#if HALFSCOPE_HAS_VEGA
  return {halfscope_page_begin, halfscope_page_end};
#else
  return {};
#endif
}

std::string_view compare_template() {
#if HALFSCOPE_HAS_VEGA
  return {halfscope_compare_begin, halfscope_compare_end};
#else
  return {};
#endif
}

}  // namespace halfscope::reports
