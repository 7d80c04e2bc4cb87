// SPDX-License-Identifier: Apache-2.0
// Data inside a page: islands of text that scripts read and browsers never run.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace halfscope::reports::page {

/// <script type="application/json" id=ID data-encoding="gzip+base64">...</script>, which
/// assets/loader.js unpacks. No text in the data can end the element: base64 has no "<". Bytes of
/// strings that are no UTF-8 become U+FFFD. Rows are packed as columns(), and assets/data.js makes
/// them rows again.
std::string json_island(std::string_view id, const nlohmann::ordered_json& value);

/// Every list of objects that have the same fields as {"@columns": {field: list}}: equal values
/// come to lie beside one another, and gzip makes a third less of it.
nlohmann::ordered_json columns(const nlohmann::ordered_json& value);

/// gzip (RFC 1952) in base64 (RFC 4648).
std::string gzip_base64(std::string_view bytes);

}  // namespace halfscope::reports::page
