// SPDX-License-Identifier: Apache-2.0
#include "reports/page/marked_html.hpp"

#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/data_table.hpp"

namespace halfscope::reports::page {

std::string marked_html(std::string_view sentence) {
  std::string out;
  for (const answer::Piece& piece : answer::pieces(sentence)) {
    out += piece.code ? "<code>" + breakable_name(piece.text) + "</code>"
                      : answer::html_escape(piece.text);
  }
  return out;
}

}  // namespace halfscope::reports::page
