// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/coded_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <unordered_map>

#include "halfscope/log/error.hpp"
#include "halfscope/log/tensor_file.hpp"
#include "halfscope/number/convert.hpp"

namespace halfscope::log {
namespace {

using Shape = std::vector<std::uint64_t>;
constexpr std::string_view kE8m0 = "F8_E8M0";
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A dtype of codes. A number is `unit` times the format's.
struct Codes {
  std::string_view dtype, element;
  Format format;
  float unit = 1;
  bool read_alone = true;  ///< a tensor without scales is read by this table
};
// FNUZ formats (arXiv 2206.02915) have one more exponent than IEEE's and a bias one larger: all
// codes are numbers, but the one of -0 is NaN.
constexpr std::array kCodes = {
    Codes{"F4", "E2M1", kFloat4E2M1},
    Codes{"F6_E2M3", "E2M3", kFloat6E2M3},
    Codes{"F6_E3M2", "E3M2", kFloat6E3M2},
    Codes{"F8_E4M3", "E4M3", kFloat8E4M3, 1, false},
    Codes{"F8_E5M2", "E5M2", kFloat8E5M2, 1, false},
    Codes{"F8_E4M3FNUZ", "E4M3FNUZ", {4, 8, 8, Specials::finite}, 0.5F},
    Codes{"F8_E5M2FNUZ", "E5M2FNUZ", {3, 16, 8, Specials::finite}, 0.5F},
    Codes{kE8m0, "E8M0", {1, 0, 8}},
};

/// Names of one tensor's parts: what follows the stem.
struct Layout {
  std::string_view codes, scales, second;
  bool divides = false;          ///< by the second scale
  bool needs_second = true;      ///< if scales are E4M3
  bool block_dimension = false;  ///< the last dimension is the bytes of a block
  bool transposed = false;       ///< the model holds the last two dimensions the other way round
};
constexpr std::array kLayouts = {
    // compressed-tensors: nvfp4-pack-quantized, mxfp4-pack-quantized
    Layout{"_packed", "_scale", "_global_scale", true},
    // torchao's flatten_tensor_state_dict()
    Layout{"_qdata", "_scale", "_per_tensor_scale", false, false},
    // GPT-OSS, with the names of Transformers and of OpenAI
    Layout{"_blocks", "_scales", "", false, false, true, true},
    Layout{".blocks", ".scales", "", false, false, true},
    // DeepSeek-V3
    Layout{"", "_scale_inv", ""},
    // ModelOpt; compressed-tensors: float-quantized, mxfp8-quantized
    Layout{"", "_scale", "_scale_2"},
};
/// Scales of a layer's inputs, which say nothing about its weight. They follow the layer's name.
constexpr std::array<std::string_view, 2> kInputScales = {".input_scale", ".input_global_scale"};

/// Rows and columns of a block; 0: all.
struct Block {
  std::uint64_t rows, columns;
};
constexpr std::array kBlocksOfE4m3 = {Block{1, 16}};
constexpr std::array kBlocksOfE8m0 = {Block{1, 32}, Block{128, 128}};
constexpr std::array kBlocksOfWide = {Block{0, 0}, Block{1, 0}, Block{128, 128}, Block{1, 128}};

/// PyTorch has no 4-bit and, for long, had no E8M0 type: bytes stand for both.
const Codes* codes_of(std::string_view dtype) {
  const auto* row = std::ranges::find(kCodes, dtype == "U8" ? "F4" : dtype, &Codes::dtype);
  return row == kCodes.end() ? nullptr : row;
}
std::string_view scale_dtype(std::string_view dtype) { return dtype == "U8" ? kE8m0 : dtype; }

/// Returns the blocks that scales of a dtype may have; none if the dtype is no scale of the codes.
std::span<const Block> blocks_for(const Codes& codes, std::string_view scales) {
  const bool four_bits = codes.format.width == 4;
  if (scale_dtype(scales) == kE8m0) return kBlocksOfE8m0;
  if (scales == "F8_E4M3" && four_bits) return kBlocksOfE4m3;
  const bool wide = scales == "F32" || scales == "BF16" || scales == "F16";
  return wide && !four_bits ? std::span<const Block>(kBlocksOfWide) : std::span<const Block>();
}

/// Returns the number of every code.
std::vector<float> numbers_of(const Codes& codes) {
  std::vector<float> out;
  for (std::uint64_t code = 0; code < std::uint64_t{1} << codes.format.width; ++code) {
    if (codes.dtype == kE8m0) {
      out.push_back(code == 255 ? kNan : std::ldexp(1.0F, static_cast<int>(code) - 127));
      continue;
    }
    const bool nan = codes.unit != 1 && code == codes.format.sign_mask();
    out.push_back(nan ? kNan : codes.unit * static_cast<float>(to_double(codes.format, code)));
  }
  return out;
}

/// Returns code i of codes that follow each other from the low bits of the first byte on.
std::size_t code_at(std::span<const std::byte> bytes, int width, std::uint64_t i) {
  if (width == 8) return std::to_integer<std::size_t>(bytes[i]);
  const std::uint64_t bit = i * static_cast<unsigned>(width), byte = bit / 8;
  auto two = std::to_integer<unsigned>(bytes[byte]);
  if (byte + 1 < bytes.size()) two |= std::to_integer<unsigned>(bytes[byte + 1]) << 8;
  return two >> bit % 8 & ((1U << width) - 1);
}

/// Returns the values of scales of any dtype that blocks_for() knows.
std::vector<float> scale_values(const SafetensorsEntry& entry, const FileBytes& held) {
  std::vector<float> out(*element_count(entry.shape));
  const auto dtype = find_dtype(entry.dtype);
  if (dtype == Dtype::f32) {
    std::memcpy(out.data(), held.bytes.data(), held.bytes.size());
    return out;
  }
  if (const Codes* const codes = codes_of(scale_dtype(entry.dtype))) {
    const std::vector<float> numbers = numbers_of(*codes);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = numbers[code_at(held.bytes, 8, i)];
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, held.bytes.data() + 2 * i, sizeof bits);
    out[i] = static_cast<float>(to_double(format_of(*dtype), bits));
  }
  return out;
}

/// Finds the tensors of a header.
class Finder {
 public:
  Finder(const SafetensorsHeader& header, const std::string& file) : header_(header), file_(file) {}

  std::vector<CodedTensor> find() {
    std::vector<CodedTensor> out;
    const auto may_be = [](const SafetensorsEntry& entry) { return codes_of(entry.dtype); };
    if (std::ranges::none_of(header_.entries, may_be)) return out;
    for (const SafetensorsEntry& entry : header_.entries) by_name_.emplace(entry.name, &entry);
    for (const SafetensorsEntry& entry : header_.entries) {
      if (!may_be(entry) || entry.dtype == kE8m0 || element_count(entry.shape) == 0) continue;
      if (auto tensor = with_scales(entry)) out.push_back(std::move(*tensor));
    }
    std::unordered_map<std::string, bool> used;
    for (const CodedTensor& tensor : out) {
      for (const std::string& part : tensor.parts) used[part] = true;
    }
    for (const SafetensorsEntry& entry : header_.entries) {
      if (code_bits(entry.dtype) == 0 || used.contains(entry.name)) continue;
      out.push_back({.name = entry.name, .shape = entry.shape, .codes = entry, .parts = {}});
      set_elements(out.back());
      out.back().blocks.block_columns = out.back().blocks.columns = *element_count(entry.shape);
    }
    std::ranges::sort(out, {}, [](const CodedTensor& tensor) { return tensor.codes.begin; });
    return out;
  }

 private:
  const SafetensorsEntry* entry(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  [[noreturn]] void refuse(const SafetensorsEntry& entry, const std::string& message) const {
    throw BadInput(
        fmt::format("{} {}; write the file again", place_text(file_, entry.name), message));
  }

  static void set_elements(CodedTensor& tensor) {
    const Codes& codes = *codes_of(tensor.codes.dtype);
    TensorBlocks& blocks = tensor.blocks;
    blocks.element = codes.element;
    float before = 0;
    for (const float number : numbers_of(codes)) {
      if (!std::isfinite(number) || number <= before) continue;
      before = number > blocks.largest ? std::exchange(blocks.largest, number) : number;
    }
    blocks.clipped_above = blocks.largest + (blocks.largest - before) / 2;
  }

  /// Returns the tensor if the entry holds codes with scales.
  std::optional<CodedTensor> with_scales(const SafetensorsEntry& codes) const {
    for (const Layout& layout : kLayouts) {
      if (!codes.name.ends_with(layout.codes)) continue;
      const std::string stem = codes.name.substr(0, codes.name.size() - layout.codes.size());
      const auto* const scales = entry(stem + std::string(layout.scales));
      const auto* const second =
          layout.second.empty() ? nullptr : entry(stem + std::string(layout.second));
      if (scales == nullptr) {
        if (layout.codes.empty() && second == nullptr) continue;
        refuse(codes, fmt::format("holds codes, but the file has no scales '{}{}', expected both",
                                  printable(stem), layout.scales));
      }
      const auto allowed = blocks_for(*codes_of(codes.dtype), scales->dtype);
      if (allowed.empty() && layout.codes.empty()) continue;  // another quantiser's
      CodedTensor out = {.name = stem, .shape = {}, .codes = codes, .scales = *scales, .parts = {}};
      set_shape(out, layout);
      set_blocks(out, allowed);
      set_second(out, layout, second, stem);
      set_name(out, layout, stem);
      return out;
    }
    return std::nullopt;
  }

  /// Sets the shape of the values before they are transposed.
  void set_shape(CodedTensor& tensor, const Layout& layout) const {
    tensor.shape = tensor.codes.shape;
    if (tensor.shape.size() < (layout.block_dimension ? 2 : 1)) {
      refuse(tensor.codes, fmt::format("holds codes in shape {}, expected more dimensions",
                                       shape_text(tensor.shape)));
    }
    if (tensor.codes.dtype == "U8") tensor.shape.back() *= 2;
    if (layout.block_dimension) {
      const std::uint64_t of_block = tensor.shape.back();
      tensor.shape.pop_back();
      tensor.shape.back() *= of_block;
    }
    set_elements(tensor);
    TensorBlocks& blocks = tensor.blocks;
    blocks.columns = tensor.shape.back();
    if (tensor.shape.size() > 1) blocks.rows = tensor.shape[tensor.shape.size() - 2];
    blocks.layers = *element_count(tensor.shape) / blocks.columns / blocks.rows;
    blocks.transposed = layout.transposed && tensor.shape.size() > 1;
  }

  /// Sets the shape of blocks for which there are as many as scales in each dimension; a dimension
  /// of 1 may be left out.
  void set_blocks(CodedTensor& tensor, std::span<const Block> allowed) const {
    TensorBlocks& blocks = tensor.blocks;
    blocks.scale = tensor.scales->dtype;
    if (const Codes* const codes = codes_of(scale_dtype(blocks.scale)))
      blocks.scale = codes->element;
    const Shape& held = tensor.scales->shape;
    std::vector<std::string> wanted;
    for (const bool exact : {true, false}) {
      for (const Block& block : allowed) {
        blocks.block_rows = block.rows == 0 ? blocks.rows : block.rows;
        blocks.block_columns = block.columns == 0 ? blocks.columns : block.columns;
        Shape grid = tensor.shape;
        grid.back() = blocks.blocks_across();
        if (grid.size() > 1) grid[grid.size() - 2] = blocks.blocks_down();
        if (exact ? held == grid : without_ones(held) == without_ones(grid)) return;
        if (exact) wanted.push_back(shape_text(grid));
      }
    }
    if (element_count(held) == 1 && !allowed.empty() && allowed.front().rows == 0) {
      blocks.rows *= std::exchange(blocks.layers, 1);
      blocks.block_rows = blocks.rows, blocks.block_columns = blocks.columns;
      return;
    }
    refuse(*tensor.scales,
           fmt::format(
               "has dtype {} and shape {}, expected {} for the values {} of '{}'",
               printable(tensor.scales->dtype), shape_text(held),
               wanted.empty() ? "F8_E4M3 or F8_E8M0" : fmt::format("{}", fmt::join(wanted, " or ")),
               shape_text(tensor.shape), printable(tensor.codes.name)));
  }

  static Shape without_ones(Shape shape) {
    std::erase(shape, 1U);
    return shape;
  }

  void set_second(CodedTensor& tensor, const Layout& layout, const SafetensorsEntry* second,
                  const std::string& stem) const {
    if (second == nullptr) {
      if (tensor.blocks.scale != "E4M3" || !layout.needs_second || layout.second.empty()) return;
      refuse(tensor.codes,
             fmt::format("has block scales in E4M3, but the file has no tensor scale '{}{}', "
                         "expected F32 with 1 element",
                         printable(stem), layout.second));
    }
    const auto count = element_count(second->shape);
    if (second->dtype != "F32" || (count != 1 && count != tensor.blocks.layers)) {
      refuse(*second,
             fmt::format(
                 "has dtype {} and shape {}, expected F32 with 1 element{}",
                 printable(second->dtype), shape_text(second->shape),
                 tensor.blocks.layers == 1 ? "" : fmt::format(" or {}", tensor.blocks.layers)));
    }
    tensor.second = *second;
    tensor.second_divides = layout.divides;
  }

  /// Sets the name, the final shape and the parts.
  void set_name(CodedTensor& tensor, const Layout& layout, const std::string& stem) const {
    const std::size_t dot = stem.rfind('.');
    // torchao writes "0._weight_qdata" for "0.weight".
    if (layout.codes == "_qdata" && dot != std::string::npos && stem[dot + 1] == '_') {
      tensor.name.erase(dot + 1, 1);
      const auto attributes = header_.metadata.find(tensor.name);
      if (attributes != header_.metadata.end() &&
          attributes->second.find("is_swizzled_scales\": true") != std::string::npos) {
        refuse(*tensor.scales,
               "has swizzled scales, expected them row after row (is_swizzled_scales=False)");
      }
    }
    if (tensor.name != tensor.codes.name && entry(tensor.name) != nullptr) {
      refuse(tensor.codes,
             fmt::format("holds codes of '{}', which the file also holds, expected one",
                         printable(tensor.name)));
    }
    if (tensor.blocks.transposed)
      std::swap(tensor.shape.back(), tensor.shape[tensor.shape.size() - 2]);
    tensor.parts = {tensor.codes.name, tensor.scales->name};
    if (tensor.second) tensor.parts.push_back(tensor.second->name);
    std::vector<std::string> more = {stem + "_act_per_tensor_scale"};
    for (const std::string_view name : kInputScales)
      more.push_back(stem.substr(0, dot) + std::string(name));
    for (std::string& name : more) {
      if (entry(name) != nullptr) tensor.parts.push_back(std::move(name));
    }
  }

  const SafetensorsHeader& header_;
  const std::string& file_;
  std::unordered_map<std::string_view, const SafetensorsEntry*> by_name_;
};

/// Reads scales, all of which must be finite.
std::vector<float> finite_scales(const SafetensorsEntry& entry, const ReadEntry& read,
                                 const std::string& file) {
  std::vector<float> out = scale_values(entry, read(entry));
  const auto bad = std::ranges::find_if(out, [](float scale) { return !std::isfinite(scale); });
  if (bad == out.end()) return out;
  throw BadInput(fmt::format("{} holds {} at index {}, expected finite scales; quantise again",
                             place_text(file, entry.name), std::isnan(*bad) ? "NaN" : "infinity",
                             bad - out.begin()));
}

}  // namespace

unsigned code_bits(std::string_view dtype) {
  const auto* row = std::ranges::find(kCodes, dtype, &Codes::dtype);
  return row == kCodes.end() || !row->read_alone ? 0 : static_cast<unsigned>(row->format.width);
}

std::vector<CodedTensor> coded_tensors(const SafetensorsHeader& header, const std::string& file) {
  return Finder(header, file).find();
}

TensorBlocks blocks_of(const CodedTensor& tensor, const ReadEntry& read, const std::string& file) {
  TensorBlocks out = tensor.blocks;
  out.factors = tensor.scales ? finite_scales(*tensor.scales, read, file) : std::vector{1.0F};
  if (!tensor.second) return out;
  const std::vector<float> second = finite_scales(*tensor.second, read, file);
  const std::size_t of_layer = out.factors.size() / second.size();
  for (std::size_t i = 0; i < out.factors.size(); ++i) {
    const float scale = second[i / of_layer];
    out.factors[i] = tensor.second_divides ? out.factors[i] / scale : out.factors[i] * scale;
    if (std::isfinite(out.factors[i])) continue;
    throw BadInput(
        fmt::format("{} holds {}, which makes the factor of block {} not finite, "
                    "expected a tensor scale that fits; quantise again",
                    place_text(file, tensor.second->name), scale, i));
  }
  return out;
}

FileBytes decoded(const CodedTensor& tensor, const ReadEntry& read, const std::string& file) {
  const TensorBlocks blocks = blocks_of(tensor, read, file);
  const Codes& codes = *codes_of(tensor.codes.dtype);
  const std::vector<float> numbers = numbers_of(codes);
  const FileBytes held = read(tensor.codes);
  const std::size_t size = *element_count(tensor.shape) * sizeof(float);
  if (size == 0) return {};
  const std::shared_ptr<std::byte[]> out(new std::byte[size]);
  tbb::parallel_for(std::size_t{0}, blocks.factors.size(), [&](std::size_t block) {
    const float factor = blocks.factors[block];
    blocks.for_each_element(block, [&](std::uint64_t code, std::uint64_t value) {
      const float number = numbers[code_at(held.bytes, codes.format.width, code)] * factor;
      std::memcpy(out.get() + value * sizeof(float), &number, sizeof number);
    });
  });
  return {out, {out.get(), size}};
}

}  // namespace halfscope::log
