// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/coded_tensors.hpp"

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/log/safetensors.hpp"
#include "temp_folder.hpp"
#include "tensors_of.hpp"

namespace test_coded_tensors {

using namespace halfscope;
using boost::multiprecision::cpp_rational;
using log::Safetensors;
using test::little_endian;
using test::message_of;
using test::TempFolder;

std::string row(const std::string& name, const std::string& dtype, const std::string& shape,
                std::size_t begin, std::size_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

std::string file_of(const std::string& rows, const std::string& data) {
  const std::string header = "{" + rows + "}";
  return little_endian(header.size(), 8) + header + data;
}

std::vector<float> floats_of(const Safetensors& file, const std::string& name) {
  const auto tensor = file.tensor(name);
  REQUIRE(tensor);
  REQUIRE(tensor->view.dtype == Dtype::f32);
  std::vector<float> out(tensor->view.count);
  if (!out.empty()) std::memcpy(out.data(), tensor->view.data, tensor->view.bytes());
  return out;
}

/// Codes 0, 1, 2, ... of some bits each, one after the other from the low bits on.
std::string all_codes(unsigned bits) {
  std::string out(bits << bits >> 3, '\0');
  for (unsigned code = 0, at = 0; code < 1U << bits; ++code) {
    for (unsigned bit = 0; bit < bits; ++bit, ++at) {
      if ((code >> bit & 1U) != 0) out[at / 8] = static_cast<char>(out[at / 8] | 1 << at % 8);
    }
  }
  return out;
}

cpp_rational power_of_2(int k) {
  const cpp_rational one(boost::multiprecision::cpp_int(1) << std::abs(k));
  return k < 0 ? 1 / one : one;
}

struct SmallType {
  const char* dtype;
  int exponent_bits, fraction_bits, bias;
  bool fnuz;  ///< the code of -0 is NaN
};

/// The number of a code by its definition: sign, exponent, fraction.
cpp_rational number_of(const SmallType& type, unsigned code) {
  const unsigned fraction = code & ((1U << type.fraction_bits) - 1);
  const unsigned exponent = code >> type.fraction_bits & ((1U << type.exponent_bits) - 1);
  const unsigned sign = code >> (type.fraction_bits + type.exponent_bits);
  const cpp_rational significand =
      cpp_rational(exponent == 0 ? 0 : 1) + cpp_rational(fraction, 1U << type.fraction_bits);
  const cpp_rational magnitude =
      significand * power_of_2(static_cast<int>(exponent == 0 ? 1 : exponent) - type.bias);
  return sign == 0 ? magnitude : -magnitude;
}

TEST_CASE("every code of the small types has its number", "[log][safetensors][oracle]") {
  const TempFolder folder;
  for (const SmallType& type : {SmallType{"F4", 2, 1, 1, false},
                                {"F6_E2M3", 2, 3, 1, false},
                                {"F6_E3M2", 3, 2, 3, false},
                                {"F8_E4M3FNUZ", 4, 3, 8, true},
                                {"F8_E5M2FNUZ", 5, 2, 16, true}}) {
    const auto bits = static_cast<unsigned>(1 + type.exponent_bits + type.fraction_bits);
    const std::string shape = "[" + std::to_string(1U << bits) + "]";
    const std::string data = all_codes(bits);
    const Safetensors file(
        folder.write("g.safetensors", file_of(row("w", type.dtype, shape, 0, data.size()), data)));
    const std::vector<float> found = floats_of(file, "w");
    REQUIRE(found.size() == 1U << bits);
    const unsigned sign = 1U << (bits - 1);
    unsigned wrong = 0;
    for (unsigned code = 0; code < found.size(); ++code) {
      const bool right = type.fnuz && code == sign
                             ? std::isnan(found[code])
                             : cpp_rational(found[code]) == number_of(type, code) &&
                                   std::signbit(found[code]) == ((code & sign) != 0);
      wrong += right ? 0 : 1;
    }
    INFO(type.dtype);
    CHECK(wrong == 0);
  }
}

TEST_CASE("E8M0 is read as powers of two", "[log][safetensors][oracle]") {
  const TempFolder folder;
  const Safetensors file(
      folder.write("g.safetensors", file_of(row("w", "F8_E8M0", "[256]", 0, 256), all_codes(8))));
  const std::vector<float> found = floats_of(file, "w");
  for (unsigned code = 0; code < 255; ++code) {
    REQUIRE(cpp_rational(found[code]) == power_of_2(static_cast<int>(code) - 127));
  }
  CHECK(std::isnan(found[255]));
}

TEST_CASE("tensors of small types have their place in the file", "[log][safetensors]") {
  const TempFolder folder;
  const Safetensors file(folder.write(
      "g.safetensors",
      file_of(row("none", "F4", "[0,2]", 0, 0) + "," + row("empty", "F6_E2M3", "[0]", 0, 0) + "," +
                  row("a", "F4", "[2]", 0, 1) + "," + row("b", "F16", "[1]", 1, 3) + "," +
                  row("c", "F6_E3M2", "[4]", 3, 6) + "," + row("d", "U8", "[1]", 6, 7),
              std::string("\x72\x00\x3C\x0C\x00\x00\x09", 7))));
  CHECK(file.names() == std::vector<std::string>{"empty", "none", "a", "b", "c"});
  CHECK(floats_of(file, "none").empty());
  CHECK(floats_of(file, "a") == std::vector<float>{1, 6});
  CHECK(floats_of(file, "c") == std::vector<float>{1, 0, 0, 0});
  CHECK(file.skipped().size() == 1);
  CHECK(file.blocks("a") == nullptr);
  CHECK(file.blocks("b") == nullptr);
  REQUIRE(file.raw("a"));
  CHECK(file.raw("a")->dtype == "F4");
  CHECK(file.raw("a")->values.bytes.size() == 1);
}

/// Codes 1, 2 | 3, 4 in blocks of one row of a tensor of 2 x 2: 0.5, 1 | 1.5, 2.
const std::string kCodes = "\x21\x43";

TEST_CASE("codes with scales are one tensor", "[log][safetensors]") {
  const TempFolder folder;
  // Scales 2 and 448 in E4M3; the tensor scale 4.
  const std::string data = kCodes + "\x40\x7E" + std::string("\x00\x00\x80\x40", 4) + "\x07\x08";
  const auto path = folder.write(
      "g.safetensors", file_of(row("l.weight_packed", "U8", "[2,1]", 0, 2) + "," +
                                   row("l.weight_scale", "F8_E4M3", "[2,1]", 2, 4) + "," +
                                   row("l.weight_global_scale", "F32", "[1]", 4, 8) + "," +
                                   row("m_scale", "F8_E4M3", "[2]", 8, 10),
                               data));
  Safetensors file(path);
  CHECK(file.names() == std::vector<std::string>{"l.weight", "m_scale"});
  CHECK(floats_of(file, "l.weight") == std::vector<float>{0.25, 0.5, 168, 224});
  CHECK(file.tensor("l.weight")->shape == std::vector<std::uint64_t>{2, 2});
  const auto blocks = file.blocks("l.weight");
  REQUIRE(blocks);
  CHECK(blocks->factors == std::vector<float>{0.5, 112});
  CHECK(blocks->largest == 6);
  CHECK(blocks->clipped_above == 7);
  CHECK(file.raw("l.weight_scale")->values.bytes.size() == 2);
  CHECK_FALSE(file.raw("l.weight"));
  file.keep_only({"l.weight_packed", "l.weight_scale", "l.weight_global_scale"});
  CHECK(file.names() == std::vector<std::string>{"l.weight"});
}

TEST_CASE("scales that do not fit are refused", "[log][safetensors][table]") {
  const TempFolder folder;
  struct Row {
    const char* what;
    std::string rows, message, data = "\x21\x43\x7F\x7F";
  };
  const std::string codes = row("w_packed", "U8", "[2,1]", 0, 2);
  for (const Row& one : {
           Row{"none", codes + "," + row("x", "U16", "[1]", 2, 4),
               "tensor 'w_packed' holds codes, but the file has no scales 'w_scale', expected "
               "both"},
           Row{"other size", codes + "," + row("w_scale", "U8", "[4]", 2, 6),
               "tensor 'w_scale' has dtype U8 and shape [4], expected [2, 1] or [1, 1] for the "
               "values [2, 2] of 'w_packed'",
               "\x21\x43\x7F\x7F\x7F\x7F"},
           Row{"other type", codes + "," + row("w_scale", "BF16", "[1]", 2, 4),
               "tensor 'w_scale' has dtype BF16 and shape [1], expected F8_E4M3 or F8_E8M0 for the "
               "values [2, 2] of 'w_packed'"},
           Row{"no tensor scale", codes + "," + row("w_scale", "F8_E4M3", "[2,1]", 2, 4),
               "tensor 'w_packed' has block scales in E4M3, but the file has no tensor scale "
               "'w_global_scale', expected F32 with 1 element"},
           Row{"one dimension",
               row("w_blocks", "U8", "[2]", 0, 2) + "," + row("w_scales", "U8", "[2]", 2, 4),
               "tensor 'w_blocks' holds codes in shape [2], expected more dimensions"},
       }) {
    INFO(one.what);
    const auto path = folder.write("g.safetensors", file_of(one.rows, one.data));
    CHECK(message_of([&] { Safetensors file(path); }) ==
          path.string() + ": " + one.message + "; write the file again");
  }
}

TEST_CASE("blocks cover each element once, the last ones cut at the edge", "[log][safetensors]") {
  for (const bool transposed : {false, true}) {
    log::TensorBlocks blocks;
    blocks.layers = 2, blocks.rows = 5, blocks.columns = 7;
    blocks.block_rows = 2, blocks.block_columns = 3;
    blocks.transposed = transposed;
    std::set<std::uint64_t> codes, values;
    for (std::uint64_t block = 0; block < 2 * 3 * 3; ++block) {
      blocks.for_each_element(block, [&](std::uint64_t code, std::uint64_t value) {
        const std::uint64_t layer = code / 35, r = code % 35 / 7, c = code % 7;
        CHECK(block == (layer * 3 + r / 2) * 3 + c / 3);
        CHECK(value == (transposed ? layer * 35 + c * 5 + r : code));
        codes.insert(code);
        values.insert(value);
      });
    }
    CHECK(codes.size() == 70);
    CHECK(values.size() == 70);
  }
}

}  // namespace test_coded_tensors
