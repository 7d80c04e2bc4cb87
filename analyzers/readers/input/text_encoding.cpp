// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/input/text_encoding.hpp"

#include <iconv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>

namespace halfscope::analyzers::readers::input {
namespace {

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";
constexpr std::size_t kPiece = std::size_t{1} << 18;

bool is_plain(char c) { return (c >= ' ' && c <= '~') || (c >= '\t' && c <= '\r') || c == '\x1b'; }

/// Returns true if 90% of the 16-bit units, and half of the first 16 (after its header, a file of
/// FP16 ones looks like text too), have ASCII in byte `low` and zero in the other.
bool alternates(std::string_view text, std::size_t low) {
  constexpr std::size_t kFirst = 16;
  const std::size_t units = text.size() / 2;
  if (units < kFirst) return false;
  std::size_t fit = 0;
  for (std::size_t i = 0; i < units; ++i) {
    fit += is_plain(text[2 * i + low]) && text[2 * i + 1 - low] == '\0' ? 1 : 0;
    if (i == kFirst && fit < kFirst / 2) return false;
  }
  return fit * 10 >= units * 9;
}

/// Returns true if one of the first four 16-bit units is zero. This excludes UTF-32, and binary
/// lengths that happen to begin like a byte order mark.
bool begins_with_zero_unit(std::string_view text) {
  constexpr std::size_t kLooked = 8;
  for (std::size_t i = 0; i + 1 < std::min(text.size(), kLooked); i += 2) {
    if (text[i] == '\0' && text[i + 1] == '\0') return true;
  }
  return false;
}

/// Converts UTF-16 with the C library's iconv.
class Converter {
 public:
  explicit Converter(Encoding encoding)
      : with_(::iconv_open("UTF-8", encoding == Encoding::utf16_le ? "UTF-16LE" : "UTF-16BE")) {}
  ~Converter() {
    if (fine()) ::iconv_close(with_);
  }
  Converter(const Converter&) = delete;
  Converter& operator=(const Converter&) = delete;
  bool fine() const { return with_ != reinterpret_cast<::iconv_t>(-1); }

  /// Removes complete characters from the front of `text` and appends them to `out`.
  void convert(std::string_view& text, std::string& out) {
    while (text.size() >= 2) {
      std::string piece(2 * kPiece, '\0');
      char *from = const_cast<char*>(text.data()), *to = piece.data();
      std::size_t left = text.size(), room = piece.size();
      const bool stopped = ::iconv(with_, &from, &left, &to, &room) == static_cast<std::size_t>(-1);
      const int why = stopped ? errno : 0;
      out.append(piece, 0, piece.size() - room);
      text.remove_prefix(text.size() - left);
      if (why == EINVAL) return;  // ends with the first half of a surrogate pair
      if (why == EILSEQ) {
        out += "\xEF\xBF\xBD";
        text.remove_prefix(2);
      }
    }
  }

 private:
  ::iconv_t with_;
};

bool from_utf16(const log::OpenFile& file, Encoding encoding, std::uint64_t at, const Sink& sink) {
  Converter converter(encoding);
  if (!converter.fine()) return false;
  std::string in, out;
  while (true) {
    const std::size_t kept = in.size();
    in.resize(kept + kPiece);
    const std::size_t got = file.read(at, in.data() + kept, kPiece);
    in.resize(kept + got);
    at += got;
    std::string_view rest = in;
    converter.convert(rest, out);
    if (got == 0 && !rest.empty()) out += "\xEF\xBF\xBD";  // the file ends in half a character
    if (!out.empty() && !sink(out)) return true;
    if (got == 0) return true;
    in = std::string(rest);
    out.clear();
  }
}

}  // namespace

Encoding encoding_of(std::string_view beginning) {
  if (beginning.starts_with(kUtf8Mark) && is_text(beginning)) return Encoding::utf8_bom;
  if (!begins_with_zero_unit(beginning)) {
    if (beginning.starts_with("\xFF\xFE")) return Encoding::utf16_le;
    if (beginning.starts_with("\xFE\xFF")) return Encoding::utf16_be;
  }
  if (alternates(beginning, 0)) return Encoding::utf16_le;
  return alternates(beginning, 1) ? Encoding::utf16_be : Encoding::plain;
}

bool to_utf8(const log::OpenFile& file, Encoding encoding, const Sink& sink) {
  if (encoding != Encoding::utf8_bom) {
    std::string mark(2, '\0');
    mark.resize(file.read(0, mark.data(), mark.size()));
    const bool has_mark = mark == "\xFF\xFE" || mark == "\xFE\xFF";
    return from_utf16(file, encoding, has_mark ? 2 : 0, sink);
  }
  std::string piece(kPiece, '\0');
  for (std::uint64_t at = kUtf8Mark.size();;) {
    const std::size_t got = file.read(at, piece.data(), piece.size());
    if (got == 0 || !sink(std::string_view(piece).substr(0, got))) return true;
    at += got;
  }
}

std::string_view without_zeros(std::string_view text) {
  static constexpr std::array<char, 4096> kZeros = {};
  while (text.size() >= kZeros.size() &&
         std::memcmp(text.data(), kZeros.data(), kZeros.size()) == 0) {
    text.remove_prefix(kZeros.size());
  }
  return text.substr(std::min(text.size(), text.find_first_not_of('\0')));
}

bool is_text(std::string_view beginning) {
  // An NPY file with elements that are all zero would pass the check below.
  if (beginning.starts_with("\x93NUMPY")) return false;
  std::size_t controls = 0, others = 0;
  for (const char c : beginning) {
    if (c == '\0') continue;
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == '\x7F';
    const bool of_text = is_plain(c) || c == '\a' || c == '\b';
    (control && !of_text ? controls : others) += 1;
  }
  return others > 0 && controls * 100 <= others;
}

}  // namespace halfscope::analyzers::readers::input
