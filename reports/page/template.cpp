// SPDX-License-Identifier: Apache-2.0
#include "reports/page/template.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "halfscope/log/output_file.hpp"
#include "reports/answer/text.hpp"
#include "reports/export/json.hpp"

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

using json = nlohmann::ordered_json;

namespace {

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int kGzip = 16;  // added to the window bits: selects gzip's header
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib: deflateInit2 failed");
  }
  // zlib counts input bytes in unsigned int; passing parts allows more than 4 GiB.
  constexpr std::size_t kPart = std::size_t{1} << 24;
  std::string out;
  std::string buffer(std::size_t{1} << 16, '\0');
  bool last = false;
  while (!last) {
    const std::size_t part = std::min(kPart, bytes.size());
    last = part == bytes.size();
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib does not write to it
    stream.avail_in = static_cast<uInt>(part);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
      out.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
    bytes.remove_prefix(part);
  }
  deflateEnd(&stream);
  return out;
}

std::string base64(std::string bytes) {
  using namespace boost::archive::iterators;
  using Encoder = base64_from_binary<transform_width<std::string::const_iterator, 6, 8>>;
  const std::size_t missing = (3 - bytes.size() % 3) % 3;
  bytes.append(missing, '\0');  // full groups: the iterators would read beyond the end
  std::string out(Encoder(bytes.cbegin()), Encoder(bytes.cend()));
  return out.replace(out.size() - missing, missing, missing, '=');
}

/// Returns true if all elements are objects with the fields of the first, in the same order.
bool are_rows(const json& list) {
  if (list.size() < 2 || !list.front().is_object() || list.front().empty()) return false;
  const auto same_field = [](const auto& a, const auto& b) { return a.key() == b.key(); };
  return std::all_of(list.begin(), list.end(), [&](const json& row) {
    if (!row.is_object() || row.size() != list.front().size()) return false;
    const auto fields = list.front().items(), own = row.items();
    return std::equal(fields.begin(), fields.end(), own.begin(), same_field);
  });
}

}  // namespace

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

json columns(const json& value) {
  json out = value.is_array() ? json::array() : json::object();
  if (value.is_array() && are_rows(value)) {
    json& lists = out = json::object();
    for (const auto& [field, first] : value.front().items()) {
      json list = json::array();
      for (const json& row : value) list.push_back(row[field]);
      lists["@columns"][field] = columns(list);
    }
    return out;
  }
  if (value.is_array()) {
    for (const json& element : value) out.push_back(columns(element));
  } else if (value.is_object()) {
    for (const auto& [field, element] : value.items()) out[field] = columns(element);
  } else {
    return value;
  }
  return out;
}

std::string gzip_base64(std::string_view bytes) { return base64(gzip(bytes)); }

std::string json_island(std::string_view id, const json& value) {
  return fmt::format(
      "<script type=\"application/json\" id=\"{}\" data-encoding=\"gzip+base64\">{}</script>\n",
      answer::html_escape(id), gzip_base64(exports::json_text(columns(value))));
}

}  // namespace halfscope::reports::page
