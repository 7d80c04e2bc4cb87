// SPDX-License-Identifier: Apache-2.0
#include "reports/page/template.hpp"

#include "halfscope/log/output_file.hpp"

#if HALFSCOPE_HAS_VEGA
// Embeds the assembled pages as bytes.
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

namespace halfscope::reports::page {

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

std::string filled(std::string_view page, const Parts& parts) {
  constexpr std::string_view kOpen = "<!--halfscope:", kClose = "-->";
  std::string out;
  for (std::size_t at = page.find(kOpen); at != page.npos; at = page.find(kOpen)) {
    out += page.substr(0, at);
    page.remove_prefix(at + kOpen.size());
    const std::size_t end = page.find(kClose);
    out += parts.at(std::string(page.substr(0, end)));
    page.remove_prefix(end + kClose.size());
  }
  return out += page;
}

void write_page(std::string_view html, const std::filesystem::path& out) {
  log::OutputFile file(out);
  file.write(html);
  file.commit();
}

}  // namespace halfscope::reports::page
