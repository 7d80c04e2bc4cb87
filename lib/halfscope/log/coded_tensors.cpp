// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/coded_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <tbb/parallel_for.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "halfscope/log/error.hpp"
#include "halfscope/log/tensor_file.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/scale_e8m0.hpp"
#include "halfscope/table/boundary.hpp"

namespace halfscope::log {
namespace {

using Shape = std::vector<std::uint64_t>;
using Found = const SafetensorsEntry*;

/// A dtype of codes.
struct Codes {
  std::string_view dtype, element;
  Format format;
  bool fnuz = false;

  /// Returns the number of a code in units of the format's.
  float unit() const { return fnuz ? 0.5F : 1; }
};
constexpr std::string_view kE8m0 = "F8_E8M0";
// FNUZ formats (arXiv 2206.02915) have a bias one larger, and NaN in place of -0 alone.
constexpr std::array kCodes = {
    Codes{"F4", "E2M1", kFloat4E2M1},
    Codes{"F6_E2M3", "E2M3", kFloat6E2M3},
    Codes{"F6_E3M2", "E3M2", kFloat6E3M2},
    Codes{"F8_E4M3", "E4M3", kFloat8E4M3},
    Codes{"F8_E5M2", "E5M2", kFloat8E5M2},
    Codes{"F8_E4M3FNUZ", "E4M3FNUZ", {4, 8, 8, Specials::finite}, true},
    Codes{"F8_E5M2FNUZ", "E5M2FNUZ", {3, 16, 8, Specials::finite}, true},
    Codes{kE8m0, "E8M0", {1, 127, 8}},
};

/// Names of one tensor's parts, as a producer writes them: what follows the stem.
struct Layout {
  std::string_view codes, scales, second;
  bool divides = false;      ///< by the second scale
  bool needs_second = true;  ///< if scales are E4M3
  bool block_bytes = false;  ///< the last dimension is the bytes of a block
  bool transposed = false;   ///< the model holds the last two dimensions the other way round
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

/// Rows and columns of a block; 0: all.
using Block = std::pair<std::uint64_t, std::uint64_t>;

/// Bytes also stand for two codes of 4 bits, and for E8M0 scales.
const Codes* codes_of(std::string_view dtype) {
  const auto* row = std::ranges::find(kCodes, dtype == "U8" ? "F4" : dtype, &Codes::dtype);
  return row == kCodes.end() ? nullptr : row;
}
bool is_e8m0(std::string_view dtype) { return dtype == kE8m0 || dtype == "U8"; }

/// Returns the blocks that scales of a dtype may have; none if they are no scales of the codes.
std::vector<Block> blocks_for(const Codes& codes, std::string_view scales) {
  if (is_e8m0(scales)) return {{1, 32}, {128, 128}};
  if (codes.format.width == 4) {
    return scales == "F8_E4M3" ? std::vector<Block>{{1, 16}} : std::vector<Block>();
  }
  if (scales != "F32" && scales != "BF16" && scales != "F16") return {};
  return {{0, 0}, {1, 0}, {128, 128}, {1, 128}};
}

/// Returns the number of every code.
std::vector<float> numbers_of(const Codes& codes) {
  std::vector<float> out;
  for (std::uint64_t code = 0; code < std::uint64_t{1} << codes.format.width; ++code) {
    const bool fnuz_nan = codes.fnuz && code == codes.format.sign_mask();
    out.push_back(codes.dtype == kE8m0 ? e8m0_to_float(static_cast<std::uint8_t>(code))
                  : fnuz_nan           ? std::numeric_limits<float>::quiet_NaN()
                             : codes.unit() * static_cast<float>(to_double(codes.format, code)));
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

Shape without_ones(Shape shape) {
  std::erase(shape, 1U);
  return shape;
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
    std::unordered_set<std::string> used;
    for (const SafetensorsEntry& entry : header_.entries) {
      if (!may_be(entry) || entry.dtype == kE8m0 || element_count(entry.shape) == 0) continue;
      auto tensor = with_scales(entry);
      if (!tensor) continue;
      used.insert(tensor->parts.begin(), tensor->parts.end());
      out.push_back(std::move(*tensor));
    }
    for (const SafetensorsEntry& entry : header_.entries) {
      if (code_bits(entry.dtype) == 0 || used.contains(entry.name)) continue;
      out.push_back({.name = entry.name, .shape = entry.shape, .codes = entry});
      out.back().parts = {entry.name};
      out.back().blocks.block_columns = out.back().blocks.columns = *element_count(entry.shape);
    }
    std::ranges::sort(out, {}, [](const CodedTensor& tensor) {
      return std::tie(tensor.codes.begin, tensor.codes.end, tensor.codes.name);
    });
    return out;
  }

 private:
  /// Returns the entry with a name, or null.
  Found entry(const std::string& stem, std::string_view suffix) const {
    const auto found = by_name_.find(stem + std::string(suffix));
    return found == by_name_.end() ? nullptr : found->second;
  }

  template <typename... Parts>
  [[noreturn]] void refuse(const SafetensorsEntry& entry, fmt::format_string<Parts...> form,
                           Parts&&... parts) const {
    throw BadInput(fmt::format("{} {}; write the file again", place_text(file_, entry.name),
                               fmt::format(form, std::forward<Parts>(parts)...)));
  }

  /// Returns the tensor if the entry holds codes with scales.
  std::optional<CodedTensor> with_scales(const SafetensorsEntry& codes) const {
    for (const Layout& layout : kLayouts) {
      if (!codes.name.ends_with(layout.codes)) continue;
      const std::string stem = codes.name.substr(0, codes.name.size() - layout.codes.size());
      // An 8-bit tensor may also be what its name says.
      const bool certain = !layout.codes.empty() && !find_dtype(codes.dtype);
      const Found scales = entry(stem, layout.scales);
      const Found second = layout.second.empty() ? nullptr : entry(stem, layout.second);
      if (scales == nullptr) {
        if (!certain && second == nullptr) continue;
        refuse(codes, "holds codes, but the file has no scales '{}{}', expected both",
               printable(stem), layout.scales);
      }
      const auto allowed = blocks_for(*codes_of(codes.dtype), scales->dtype);
      if (allowed.empty() && !certain) continue;  // another quantiser's
      CodedTensor out = {.name = stem, .shape = codes.shape, .codes = codes, .scales = *scales};
      set_shape(out, layout);
      set_blocks(out, allowed);
      set_second(out, layout, second, stem);
      set_name(out, layout, stem);
      return out;
    }
    return std::nullopt;
  }

  /// Sets the shape of the values before they are transposed, and the numbers of their codes.
  void set_shape(CodedTensor& tensor, const Layout& layout) const {
    Shape& shape = tensor.shape;
    if (shape.size() < (layout.block_bytes ? 2 : 1)) {
      refuse(tensor.codes, "holds codes in shape {}, expected more dimensions", shape_text(shape));
    }
    if (tensor.codes.dtype == "U8") shape.back() *= 2;
    if (layout.block_bytes) {
      const std::uint64_t of_block = shape.back();
      shape.pop_back();
      shape.back() *= of_block;
    }
    TensorBlocks& blocks = tensor.blocks;
    const Codes& codes = *codes_of(tensor.codes.dtype);
    const Format& format = codes.format;
    blocks.element = codes.element;
    blocks.largest = codes.unit() * static_cast<float>(to_double(format, format.largest_finite()));
    blocks.clipped_above =
        codes.unit() * static_cast<float>(to_double(boundaries(format).overflow));
    blocks.columns = shape.back();
    if (shape.size() > 1) blocks.rows = shape[shape.size() - 2];
    blocks.layers = *element_count(shape) / blocks.columns / blocks.rows;
  }

  /// Sets the shape of blocks for which there are as many as scales in each dimension; a dimension
  /// of 1 may be left out.
  void set_blocks(CodedTensor& tensor, const std::vector<Block>& allowed) const {
    TensorBlocks& blocks = tensor.blocks;
    const std::string& dtype = tensor.scales->dtype;
    blocks.scale = is_e8m0(dtype) ? "E8M0" : dtype == "F8_E4M3" ? "E4M3" : dtype;
    const Shape& held = tensor.scales->shape;
    std::vector<std::string> wanted;
    for (const bool exact : {true, false}) {
      for (const auto& [rows, columns] : allowed) {
        blocks.block_rows = rows == 0 ? blocks.rows : rows;
        blocks.block_columns = columns == 0 ? blocks.columns : columns;
        Shape grid = tensor.shape;
        grid.back() = blocks.across();
        if (grid.size() > 1) grid[grid.size() - 2] = blocks.down();
        if (exact ? held == grid : without_ones(held) == without_ones(grid)) return;
        if (exact) wanted.push_back(shape_text(grid));
      }
    }
    if (element_count(held) == 1 && allowed.size() == 4) {  // one scale for all layers
      blocks.block_rows = blocks.rows *= std::exchange(blocks.layers, 1);
      blocks.block_columns = blocks.columns;
      return;
    }
    refuse(*tensor.scales, "has dtype {} and shape {}, expected {} for the values {} of '{}'",
           printable(dtype), shape_text(held),
           wanted.empty() ? "F8_E4M3 or F8_E8M0" : fmt::format("{}", fmt::join(wanted, " or ")),
           shape_text(tensor.shape), printable(tensor.codes.name));
  }

  void set_second(CodedTensor& tensor, const Layout& layout, Found second,
                  const std::string& stem) const {
    const std::uint64_t layers = tensor.blocks.layers;
    if (second == nullptr) {
      if (tensor.blocks.scale != "E4M3" || !layout.needs_second || layout.second.empty()) return;
      refuse(tensor.codes,
             "has block scales in E4M3, but the file has no tensor scale '{}{}', expected F32 with "
             "1 element",
             printable(stem), layout.second);
    }
    const auto count = element_count(second->shape);
    if (second->dtype != "F32" || (count != 1 && count != layers)) {
      refuse(*second, "has dtype {} and shape {}, expected F32 with {} element{}",
             printable(second->dtype), shape_text(second->shape), layers, layers == 1 ? "" : "s");
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
    }
    const auto torchao = header_.metadata.find(tensor.name);
    if (torchao != header_.metadata.end() &&
        torchao->second.find("is_swizzled_scales\": true") != std::string::npos) {
      refuse(*tensor.scales, "has swizzled scales, expected is_swizzled_scales=False");
    }
    if (tensor.name != tensor.codes.name && entry(tensor.name, "") != nullptr) {
      refuse(tensor.codes, "holds codes of '{}', which the file also holds, expected one",
             printable(tensor.name));
    }
    if (layout.transposed && tensor.shape.size() > 1) {
      tensor.blocks.transposed = true;
      std::swap(tensor.shape.back(), tensor.shape[tensor.shape.size() - 2]);
    }
    // Scales of the layer's inputs say nothing about its weight.
    const std::string layer = stem.substr(0, dot);
    for (const Found part :
         {entry(stem, layout.codes), entry(stem, layout.scales),
          tensor.second ? entry(stem, layout.second) : nullptr, entry(layer, ".input_scale"),
          entry(layer, ".input_global_scale"), entry(stem, "_act_per_tensor_scale")}) {
      if (part != nullptr) tensor.parts.push_back(part->name);
    }
  }

  const SafetensorsHeader& header_;
  const std::string& file_;
  std::unordered_map<std::string, Found> by_name_;
};

/// Returns the values of scales. Throws BadInput if one is not finite.
std::vector<float> scale_values(const SafetensorsEntry& entry, const ReadEntry& read,
                                const std::string& file) {
  const FileBytes held = read(entry);
  std::vector<float> out(*element_count(entry.shape));
  const std::size_t width = out.empty() ? 0 : held.bytes.size() / out.size();
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, held.bytes.data() + i * width, width);  // little-endian
    out[i] = is_e8m0(entry.dtype)
                 ? e8m0_to_float(static_cast<std::uint8_t>(bits))
                 : static_cast<float>(to_double(format_of(*find_dtype(entry.dtype)), bits));
    if (std::isfinite(out[i])) continue;
    throw BadInput(fmt::format("{} holds {} at index {}, expected finite scales; quantise again",
                               place_text(file, entry.name),
                               std::isnan(out[i]) ? "NaN" : "infinity", i));
  }
  return out;
}

}  // namespace

unsigned code_bits(std::string_view dtype) {
  const auto* row = std::ranges::find(kCodes, dtype, &Codes::dtype);
  return row == kCodes.end() || find_dtype(dtype) ? 0 : static_cast<unsigned>(row->format.width);
}

std::vector<std::string> scale_names(const std::string& codes) {
  std::vector<std::string> out;
  for (const Layout& layout : kLayouts) {
    if (layout.codes.empty()) out.push_back(codes + std::string(layout.scales));
  }
  return out;
}

std::vector<CodedTensor> coded_tensors(const SafetensorsHeader& header, const std::string& file) {
  return Finder(header, file).find();
}

TensorBlocks blocks_of(const CodedTensor& tensor, const ReadEntry& read, const std::string& file) {
  TensorBlocks out = tensor.blocks;
  out.factors = tensor.scales ? scale_values(*tensor.scales, read, file) : std::vector{1.0F};
  if (!tensor.second) return out;
  const std::vector<float> second = scale_values(*tensor.second, read, file);
  const std::size_t of_layer = out.factors.size() / second.size();
  for (std::size_t i = 0; i < out.factors.size(); ++i) {
    const float scale = second[i / of_layer];
    out.factors[i] = tensor.second_divides ? out.factors[i] / scale : out.factors[i] * scale;
    if (std::isfinite(out.factors[i])) continue;
    throw BadInput(fmt::format(
        "{} holds {}, and the factor of block {} is not finite, expected a finite one; quantise "
        "again",
        place_text(file, tensor.second->name), scale, i));
  }
  return out;
}

FileBytes decoded(const CodedTensor& tensor, const ReadEntry& read, const std::string& file) {
  const std::size_t size = *element_count(tensor.shape) * sizeof(float);
  if (size == 0) return {};
  const TensorBlocks blocks = blocks_of(tensor, read, file);
  const Codes& codes = *codes_of(tensor.codes.dtype);
  const std::vector<float> numbers = numbers_of(codes);
  const FileBytes held = read(tensor.codes);
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
