// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/npy_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "analyzers/frames/message.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

using log::BadInput;

constexpr std::string_view kMagic = "\x93NUMPY";
/// Largest size in bytes of the part before the dict literal: magic, version and header length.
constexpr std::size_t kPreamble = 12;
constexpr std::size_t kShortPreamble = 10;  // version 1 has a length of 16 bits
/// Longest header in bytes. The default limit of numpy is 10,000; structured dtypes can be longer.
constexpr std::uint64_t kLongestHeader = std::uint64_t{1} << 20;

std::uint64_t byte_at(std::span<const std::byte> bytes, std::size_t i) {
  return std::to_integer<std::uint64_t>(bytes[i]);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Parses Python literals from the front of a text, one per call. All functions throw log::BadInput
/// at the first byte that does not fit.
class PythonLiteral {
 public:
  PythonLiteral(std::string_view text, std::string_view place) : text_(text), place_(place) {}

  /// Skips blanks. Returns true if `c` is next.
  bool next_is(char c) {
    skip_blanks();
    return at_ < text_.size() && text_[at_] == c;
  }

  /// Skips blanks, and `c` if it is next. Returns true if it was.
  bool accept(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  /// Skips blanks and `c`, which must be next.
  void expect(char c) {
    if (!accept(c)) refuse(fmt::format("'{}'", c));
  }

  /// A string in single or double quotes. Escapes are refused, because numpy writes none here.
  std::string string() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') refuse("a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) refuse("a string that ends");
    const std::string_view inside = text_.substr(at_ + 1, end - at_ - 1);
    if (inside.find('\\') != inside.npos) refuse("a string without escapes");
    at_ = end + 1;
    return std::string(inside);
  }

  bool boolean() {
    skip_blanks();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true},
                                      std::pair<std::string_view, bool>{"False", false}}) {
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    refuse("True or False");
  }

  /// A tuple of non-negative integers: (), (3,), (3, 4); also Python 2's 3L.
  std::vector<std::uint64_t> tuple() {
    std::vector<std::uint64_t> numbers;
    expect('(');
    while (!accept(')')) {
      numbers.push_back(number());
      if (accept(',')) continue;
      if (numbers.size() == 1) refuse("','");  // (3) is a number in brackets
      expect(')');
      break;
    }
    return numbers;
  }

  /// The text of a list in square brackets. Only strings and brackets inside it are parsed.
  std::string_view list() {
    skip_blanks();
    const std::size_t start = at_;
    expect('[');
    for (std::size_t open = 1; open > 0;) {
      skip_blanks();
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      if (c == '\'' || c == '"') {
        (void)string();
        continue;
      }
      if (c == '\0') refuse("a list that ends");
      if (c == '[') ++open;
      if (c == ']') --open;
      ++at_;
    }
    return text_.substr(start, at_ - start);
  }

  /// Throws unless only blanks follow.
  void end() {
    skip_blanks();
    if (at_ != text_.size()) refuse("the header's end");
  }

  /// Throws log::BadInput: `wanted` was expected at the current position.
  [[noreturn]] void refuse(std::string_view wanted) const {
    const std::string found =
        at_ < text_.size() ? fmt::format("'{}'", log::printable(text_.substr(at_, 1))) : "the end";
    throw log::BadInput(fmt::format(
        "{}: the NPY header holds {} at byte {} of {}, expected {}; the file is damaged, write "
        "it again",
        place_, found, at_, text_.size(), wanted));
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }

  std::uint64_t number() {
    skip_blanks();
    std::uint64_t value = 0;
    const char* const start = text_.data() + at_;
    const auto [stop, error] = std::from_chars(start, text_.data() + text_.size(), value);
    if (error != std::errc()) refuse("a whole number from 0 to 2^64 - 1");
    at_ += static_cast<std::size_t>(stop - start);
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string_view place_;
};

/// The values of the header's dict, not yet interpreted.
struct RawHeader {
  std::string descr;  ///< the dtype; for a structured dtype, the text of its list
  bool structured = false;
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;
};

/// Reads the value of one key. Returns the key's bit in a set of keys.
unsigned read_value(PythonLiteral& literal, std::string_view key, RawHeader& raw) {
  if (key == "descr") {
    raw.structured = literal.next_is('[');
    raw.descr = raw.structured ? std::string(literal.list()) : literal.string();
    return 1;
  }
  if (key == "fortran_order") {
    raw.fortran_order = literal.boolean();
    return 2;
  }
  if (key != "shape") literal.refuse("the keys descr, fortran_order and shape alone before this");
  raw.shape = literal.tuple();
  return 4;
}

RawHeader parse(std::string_view text, const std::string& place) {
  PythonLiteral literal(text, place);
  RawHeader raw;
  unsigned seen = 0;
  literal.expect('{');
  while (!literal.accept('}')) {
    const std::string key = literal.string();
    literal.expect(':');
    const unsigned bit = read_value(literal, key, raw);
    if ((seen & bit) != 0) literal.refuse(fmt::format("{} once before this", key));
    seen |= bit;
    if (literal.accept(',')) continue;
    literal.expect('}');
    break;
  }
  literal.end();
  if (seen == 7) return raw;
  throw BadInput(
      fmt::format("{}: the NPY header lacks {}, expected descr, fortran_order and shape; the "
                  "file is damaged, write it again",
                  place,
                  (seen & 1) == 0   ? "descr"
                  : (seen & 2) == 0 ? "fortran_order"
                                    : "shape"));
}

/// Throws log::BadInput for object arrays: they are pickled, and unpickling would run code.
void refuse_objects(const RawHeader& raw, const std::string& place) {
  const bool objects = raw.structured ? raw.descr.find("|O") != std::string::npos
                                      : raw.descr.find('O') != std::string::npos;
  if (!objects) return;
  throw BadInput(
      fmt::format("{} holds pickled Python objects (dtype {}), expected numbers; nothing is "
                  "ever unpickled, save it as numbers: array.astype(numpy.float32)",
                  place, log::printable(raw.descr.substr(0, 64))));
}

/// Throws for arrays of ml_dtypes types, which numpy saves as bytes without a type.
void refuse_opaque(std::string_view kind, const RawHeader& raw, const std::string& place) {
  if (kind != "V1" && kind != "V2") return;
  const bool two = kind == "V2";
  const std::string found = fmt::format(
      "{} holds elements of {} without a type (dtype {}), expected f2, f4 or f8; NPY has no name "
      "for ",
      place, two ? "2 bytes" : "1 byte", log::printable(raw.descr.substr(0, 64)));
  if (!two) throw BadInput(found + "8-bit floats, save the tensor as safetensors or as float32");
  throw frames::InputNeedsOption(found + "bfloat16: if they are that, say so with " +
                                 frames::as_bf16());
}

/// Returns the type of a structured dtype's only field: "<V2" in [('name', '<V2')]; else empty.
std::string_view only_field(std::string_view descr) {
  const std::size_t comma = descr.find(',');
  if (comma == std::string_view::npos || descr.find(',', comma + 1) != std::string_view::npos) {
    return {};
  }
  const std::size_t begin = descr.find_first_of("'\"", comma);
  if (begin == std::string_view::npos) return {};
  const std::size_t end = descr.find(descr[begin], begin + 1);
  if (end == std::string_view::npos || descr.substr(end + 1) != ")]") return {};
  return descr.substr(begin + 1, end - begin - 1);
}

std::string skip_reason(std::string_view kind, const RawHeader& raw) {
  const std::string dtype = log::printable(raw.descr.substr(0, 64));
  if (raw.structured) return fmt::format("dtype {} is structured, expected f2, f4 or f8", dtype);
  const char letter = kind.empty() ? '\0' : kind[0];
  if (letter == 'c') return fmt::format("dtype {} is complex, expected f2, f4 or f8", dtype);
  if (letter == 'f') return fmt::format("dtype {} is not supported, expected f2, f4 or f8", dtype);
  if (std::string_view("biuSUMmV").find(letter) != std::string_view::npos) {
    return fmt::format("dtype {} is not a floating-point type", dtype);
  }
  return fmt::format("dtype {} is unknown, expected f2, f4 or f8", dtype);
}

std::optional<Dtype> dtype_of(std::string_view kind, std::optional<Dtype> as) {
  if (as && (kind == "V2" || kind == "u2")) return as;
  if (kind == "f2") return Dtype::f16;
  if (kind == "f4") return Dtype::f32;
  if (kind == "f8") return Dtype::f64;
  return std::nullopt;
}

/// Throws log::BadInput unless shape and dtype need exactly the bytes after the header (`held`).
void check_size(const NpyArray& array, std::string_view descr, std::uint64_t held,
                const std::string& place) {
  const auto width = static_cast<std::uint64_t>(format_of(array.dtype).width / 8);
  const auto count = log::element_count(array.shape);
  std::uint64_t wanted = 0;
  if (!count || __builtin_mul_overflow(*count, width, &wanted)) {
    throw BadInput(
        fmt::format("{} holds {} bytes, but its shape {} needs more than any file can hold; the "
                    "file is damaged, write it again",
                    place, held, log::shape_text(array.shape)));
  }
  if (held == wanted) return;
  throw BadInput(fmt::format(
      "{} holds {} bytes, expected {} for shape {} of {}; {}", place, held, wanted,
      log::shape_text(array.shape), descr,
      held < wanted ? "the file is cut short, copy or write it again"
                    : "the file is damaged or holds several arrays, write one array a file"));
}

/// Returns the offset of the data in a stream that begins with `start`: kPreamble bytes, or fewer
/// if the stream is shorter.
std::uint64_t data_offset_of(std::span<const std::byte> start, std::uint64_t stream_bytes,
                             const std::string& place) {
  if (!text_of(start).starts_with(kMagic)) {
    throw BadInput(
        fmt::format("{} begins with '{}', expected an NPY stream's \\x93NUMPY; write it with "
                    "numpy.save",
                    place, log::printable(text_of(start).substr(0, kMagic.size()))));
  }
  const std::uint64_t version = start.size() > 6 ? byte_at(start, 6) : 0;
  const std::size_t preamble = version == 1 ? kShortPreamble : kPreamble;
  if (start.size() < std::max(preamble, kShortPreamble)) {
    throw BadInput(
        fmt::format("{} holds {} bytes, expected at least {} (the start of an NPY stream); the "
                    "file is cut short, copy or write it again",
                    place, start.size(), preamble));
  }
  if (version < 1 || version > 3) {
    throw BadInput(fmt::format(
        "{} is of NPY version {}, expected 1, 2 or 3; write it with numpy.save", place, version));
  }
  std::uint64_t length = byte_at(start, 8) | byte_at(start, 9) << 8;
  if (preamble == kPreamble) length |= byte_at(start, 10) << 16 | byte_at(start, 11) << 24;
  if (length > kLongestHeader || length > stream_bytes - preamble) {
    throw BadInput(
        fmt::format("{} names an NPY header of {} bytes, expected at most {} ({}); the file is "
                    "damaged or cut short, write it again",
                    place, length, std::min(kLongestHeader, stream_bytes - preamble),
                    "what follows, and 1 MiB"));
  }
  return preamble + length;
}

}  // namespace

NpyArray read_npy_header(const NpyBeginning& beginning, std::uint64_t stream_bytes,
                         const std::string& place, std::optional<Dtype> as) {
  const std::vector<std::byte> start = beginning(kPreamble);
  const std::uint64_t data_offset = data_offset_of(start, stream_bytes, place);
  const std::vector<std::byte> header = beginning(static_cast<std::size_t>(data_offset));
  const std::size_t preamble = byte_at(header, 6) == 1 ? kShortPreamble : kPreamble;
  RawHeader raw = parse(text_of(header).substr(preamble), place);
  refuse_objects(raw, place);
  std::string_view kind = raw.structured ? only_field(raw.descr) : raw.descr;
  const char order = kind.empty() ? '\0' : kind[0];
  const bool named_order = std::string_view("<>=|").find(order) != std::string_view::npos;
  if (named_order) kind.remove_prefix(1);
  if (raw.structured && kind != "V2") kind = {};  // other structured dtypes are skipped
  const auto dtype = dtype_of(kind, as);
  if (!dtype) refuse_opaque(kind, raw, place);

  NpyArray array;
  array.shape = std::move(raw.shape);
  array.data_offset = header.size();
  if (!dtype) {
    array.skip = skip_reason(kind, raw);
    array.may_be_bfloat16 = !raw.structured && kind == "u2";
    return array;
  }
  array.dtype = *dtype;
  array.big_endian = order == '>';
  check_size(array, raw.descr, stream_bytes - header.size(), place);
  array.first_axis_fastest = raw.fortran_order;
  return array;
}

}  // namespace halfscope::analyzers::readers::tensors
