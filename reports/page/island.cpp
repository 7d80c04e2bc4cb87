// SPDX-License-Identifier: Apache-2.0
#include "reports/page/island.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <boost/archive/iterators/base64_from_binary.hpp>
#include <boost/archive/iterators/transform_width.hpp>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "reports/answer/text.hpp"

#include "reports/export/json.hpp"

namespace halfscope::reports::page {

namespace {

std::string gzip(std::string_view bytes) {
  z_stream stream{};
  constexpr int kGzip = 16;  // added to the window bits: a gzip header in place of zlib's
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + kGzip, 8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("zlib: deflateInit2 failed");
  }
  // zlib counts input in unsigned int: fed in parts, for islands above 4 GiB too.
  constexpr std::size_t kPart = std::size_t{1} << 24;
  std::string out;
  std::string buffer(std::size_t{1} << 16, '\0');
  bool last = false;
  while (!last) {
    const std::size_t part = std::min(kPart, bytes.size());
    last = part == bytes.size();
    stream.next_in =
        reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));  // zlib never writes
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
  bytes.append(missing, '\0');  // whole groups: the iterators would read beyond the end
  std::string out(Encoder(bytes.cbegin()), Encoder(bytes.cend()));
  return out.replace(out.size() - missing, missing, missing, '=');
}

std::string without_markup(const std::string& json_text) {
  std::string out;
  out.reserve(json_text.size());
  for (const char c : json_text) {
    if (c == '<') {
      out += "\\u003c";  // in JSON "<" occurs inside strings only
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string gzip_base64(std::string_view bytes) { return base64(gzip(bytes)); }

std::string json_island(std::string_view id, const nlohmann::ordered_json& value) {
  const std::string text = exports::json_text(value);
  const bool packed = text.size() > kLongestPlainIsland;
  return fmt::format("<script type=\"application/json\" id=\"{}\"{}>{}</script>\n",
                     answer::html_escape(id), packed ? " data-encoding=\"gzip+base64\"" : "",
                     packed ? gzip_base64(text) : without_markup(text));
}

std::string text_island(std::string_view id, std::string_view text) {
  return json_island(id, nlohmann::ordered_json(text));
}

}  // namespace halfscope::reports::page
