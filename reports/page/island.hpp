// SPDX-License-Identifier: Apache-2.0
// Data inside a page: islands of text that scripts read and browsers never run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace halfscope::reports::page {

/// Islands longer than this are compressed.
inline constexpr std::size_t kLongestPlainIsland = std::size_t{1} << 20;

/// <script type="application/json" id=ID>...</script>. Every "<" is written \u003c, so that no text
/// in the data can end the element or open a comment. A long island is gzip in base64 and says so
/// by data-encoding="gzip+base64". Bytes of strings that are no UTF-8 become U+FFFD.
std::string json_island(std::string_view id, const nlohmann::ordered_json& value);

/// The same for plain text: the island holds one JSON string.
std::string text_island(std::string_view id, std::string_view text);

/// gzip (RFC 1952) in base64 (RFC 4648).
std::string gzip_base64(std::string_view bytes);

}  // namespace halfscope::reports::page
