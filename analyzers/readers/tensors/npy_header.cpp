// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/npy_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "analyzers/frames/message.hpp"
#include "analyzers/readers/tensors/python_literal.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

using log::BadInput;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kShortPreamble = 10;  // version 1 has a length of 16 bits
/// Longest header in bytes. The default limit of numpy is 10,000; structured dtypes can be longer.
constexpr std::uint64_t kLongestHeader = std::uint64_t{1} << 20;

std::uint64_t byte_at(std::span<const std::byte> bytes, std::size_t i) {
  return std::to_integer<std::uint64_t>(bytes[i]);
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

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

}  // namespace

std::uint64_t npy_data_offset(std::span<const std::byte> start, std::uint64_t stream_bytes,
                              const std::string& place) {
  if (!text_of(start).starts_with(kMagic)) {
    throw BadInput(
        fmt::format("{} begins with '{}', expected an NPY stream's \\x93NUMPY; write it with "
                    "numpy.save",
                    place, log::printable(text_of(start).substr(0, kMagic.size()))));
  }
  const std::uint64_t version = start.size() > 6 ? byte_at(start, 6) : 0;
  const std::size_t preamble = version == 1 ? kShortPreamble : kNpyPreamble;
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
  if (preamble == kNpyPreamble) length |= byte_at(start, 10) << 16 | byte_at(start, 11) << 24;
  if (length > kLongestHeader || length > stream_bytes - preamble) {
    throw BadInput(
        fmt::format("{} names an NPY header of {} bytes, expected at most {} ({}); the file is "
                    "damaged or cut short, write it again",
                    place, length, std::min(kLongestHeader, stream_bytes - preamble),
                    "what follows, and 1 MiB"));
  }
  return preamble + length;
}

NpyArray read_npy_header(std::span<const std::byte> header, std::uint64_t stream_bytes,
                         const std::string& place, std::optional<Dtype> as) {
  const std::size_t preamble = byte_at(header, 6) == 1 ? kShortPreamble : kNpyPreamble;
  RawHeader raw = parse(text_of(header.subspan(preamble)), place);
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
  array.count = *log::element_count(array.shape);
  array.first_axis_fastest = raw.fortran_order && array.shape.size() > 1 && array.count > 1;
  return array;
}

}  // namespace halfscope::analyzers::readers::tensors
