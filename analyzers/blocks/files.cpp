// SPDX-License-Identifier: Apache-2.0
#include "analyzers/blocks/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "analyzers/readers/tensors/open.hpp"
#include "halfscope/array/array.hpp"
#include "halfscope/block/vectors.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/safetensors.hpp"

namespace halfscope::analyzers::blocks {

using block::Quantised;
using block::Recipe;
using block::ScaleFormat;
using log::BadInput;
using log::RawTensor;

namespace {

/// A tensor in binary32, with its shape and the type that it had.
struct Values {
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
  Format type = kBinary32;

  std::size_t columns() const { return shape.empty() ? 1 : shape.back(); }
  std::size_t rows() const { return columns() == 0 ? 0 : values.size() / columns(); }
  block::Matrix matrix() const { return {values, rows(), columns()}; }
};

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (std::size_t i = 0; i < names.size() && i < 5; ++i) {
    out += fmt::format("{}'{}'", i == 0 ? "" : ", ", log::printable(names[i]));
  }
  return names.size() > 5 ? fmt::format("{} and {} more", out, names.size() - 5) : out;
}

std::string name_in(const log::TensorFile& file, const Request& request) {
  const std::string path = log::printable(request.input);
  const std::vector<std::string> names = file.names();
  if (names.empty()) {
    throw BadInput(fmt::format("{}: holds no tensor of F16, BF16 or F32, expected one", path));
  }
  if (!request.tensor.empty()) {
    if (std::ranges::find(names, request.tensor) != names.end()) return request.tensor;
    throw BadInput(fmt::format("{}: holds no tensor '{}'; it has {}", path,
                               log::printable(request.tensor), listed(names)));
  }
  if (names.size() == 1) return names.front();
  throw BadInput(fmt::format("{}: holds {} tensors ({}), expected one; name it with --tensor NAME",
                             path, names.size(), listed(names)));
}

Values values_of(const Request& request) {
  const auto file = readers::tensors::open_tensor_file(std::filesystem::path(request.input));
  const std::string name = name_in(*file, request);
  const auto tensor = file->tensor(name);
  const TensorView& view = tensor->view;
  if (view.dtype != Dtype::f16 && view.dtype != Dtype::bf16 && view.dtype != Dtype::f32) {
    throw BadInput(fmt::format("{} has dtype {}, expected F16, BF16 or F32; convert it first",
                               log::place_text(log::printable(request.input), name),
                               name_of(view.dtype)));
  }
  Values out;
  out.shape = tensor->shape;
  out.values.resize(view.count);
  if (view.dtype == Dtype::f32) {
    std::memcpy(out.values.data(), view.data, view.bytes());
    return out;
  }
  out.type = format_of(view.dtype);
  std::vector<std::uint16_t> encodings(view.count);
  std::memcpy(encodings.data(), view.data, view.bytes());
  convert(out.type, encodings, out.values);
  return out;
}

block::QuantiseOptions options_of(const Request& request, const Values& values) {
  return {.by_columns = request.by_columns,
          .seed = request.seed.value_or(0),
          .history = request.history,
          .type = values.type};
}

/// Returns a tensor with a copy of the bytes.
RawTensor tensor_of(std::string name, std::string dtype, std::vector<std::uint64_t> shape,
                    std::span<const std::byte> bytes) {
  const std::shared_ptr<std::byte[]> own(new std::byte[bytes.size()]);
  std::ranges::copy(bytes, own.get());
  return {std::move(name), std::move(dtype), std::move(shape), {own, {own.get(), bytes.size()}}};
}

/// Adds the tensors of one output, named with a prefix.
void add_output(std::vector<RawTensor>& to, const std::string& prefix, const Recipe& recipe,
                const Quantised& out, const std::vector<std::uint64_t>& shape) {
  to.push_back(tensor_of(prefix + "codes", "U8", shape, std::as_bytes(std::span(out.codes))));
  if (recipe.scale != ScaleFormat::none) {
    to.push_back(tensor_of(prefix + "scales", recipe.scale == ScaleFormat::f32 ? "F32" : "U8",
                           {out.scale_rows, out.scale_columns},
                           block::packed_scales(recipe.scale, out.scales)));
  }
  if (out.second.empty()) return;
  std::vector<std::uint64_t> lines;  // empty for a single number
  if (recipe.second != block::SecondScale::tensor) lines.push_back(out.second.size());
  to.push_back(
      tensor_of(prefix + "tensor_scale", "F32", lines, std::as_bytes(std::span(out.second))));
}

void write(const std::filesystem::path& path, std::vector<RawTensor> tensors, const Recipe& recipe,
           bool by_columns) {
  log::write_safetensors(
      path, std::move(tensors),
      {{"recipe", std::string(recipe.name)}, {"blocks", by_columns ? "columns" : "rows"}});
}

/// Returns a tensor of an output file, after checking the width and number of its elements.
RawTensor part_of(const log::Safetensors& file, const std::string& path, const std::string& name,
                  std::size_t width, std::size_t count) {
  const auto tensor = file.raw(name);
  if (!tensor) {
    throw BadInput(fmt::format("{}: holds no tensor '{}', expected {} of {} elements", path, name,
                               width == 1 ? "U8" : "F32", count));
  }
  if (tensor->values.bytes.size() != width * count || (width == 4 && tensor->dtype != "F32")) {
    throw BadInput(fmt::format("{} has dtype {} and shape {}, expected {} with {} elements",
                               log::place_text(path, name), tensor->dtype,
                               log::shape_text(tensor->shape), width == 1 ? "U8" : "F32", count));
  }
  return *tensor;
}

/// Reads codes, a code a byte; of four bits also two a byte, the first in the low half.
void read_codes(const log::Safetensors& file, const std::string& path, const std::string& name,
                const Recipe& recipe, std::vector<std::uint8_t>& codes) {
  const auto packed = file.raw(name);
  const std::size_t half = (codes.size() + 1) / 2;
  if (block::width_of(recipe.element) != 4 || !packed || packed->values.bytes.size() != half ||
      half == codes.size()) {
    const RawTensor plain = part_of(file, path, name, 1, codes.size());
    std::memcpy(codes.data(), plain.values.bytes.data(), codes.size());
    return;
  }
  for (std::size_t i = 0; i < codes.size(); ++i) {
    const auto both = std::to_integer<unsigned>(packed->values.bytes[i / 2]);
    codes[i] = static_cast<std::uint8_t>(i % 2 == 0 ? both & 0xF : both >> 4);
  }
}

/// prefix: before the names of the tensors, as in a file of write_vectors(): "ties/rows/".
Quantised output_of(const std::filesystem::path& path, const std::string& prefix,
                    const Recipe& recipe, const block::Matrix& in, bool by_columns) {
  const log::Safetensors file(path);
  const std::string name = log::printable(path.string());
  const block::Grid grid = block::grid_of(recipe, in.rows, in.columns, by_columns);
  Quantised out;
  out.scale_rows = grid.rows;
  out.scale_columns = grid.columns;
  out.codes.resize(in.values.size());
  read_codes(file, name, prefix + "codes", recipe, out.codes);
  if (recipe.scale != ScaleFormat::none) {
    const RawTensor scales = part_of(file, name, prefix + "scales",
                                     block::scale_width(recipe.scale), grid.rows * grid.columns);
    out.scales = block::unpacked_scales(recipe.scale, scales.values.bytes);
    if (scales.shape.size() == 2) {  // blocks in another direction have as many scales
      out.scale_rows = scales.shape[0];
      out.scale_columns = scales.shape[1];
    }
  }
  out.second.resize(block::second_count(recipe, in.rows, in.columns, by_columns));
  if (!out.second.empty()) {
    const RawTensor second = part_of(file, name, prefix + "tensor_scale", 4, out.second.size());
    std::memcpy(out.second.data(), second.values.bytes.data(), second.values.bytes.size());
  }
  return out;
}

}  // namespace

void quantise_file(const Request& request, const std::filesystem::path& out) {
  const Recipe& recipe = block::recipe_named(request.recipe);
  const Values values = values_of(request);
  const Quantised made = block::quantise(recipe, values.matrix(), options_of(request, values));
  std::vector<RawTensor> tensors;
  add_output(tensors, "", recipe, made, values.shape);
  write(out, std::move(tensors), recipe, request.by_columns);
}

FileConformity conform_files(const Request& request, const std::filesystem::path& output) {
  FileConformity out;
  out.recipe = &block::recipe_named(request.recipe);
  const Values values = values_of(request);
  const block::QuantiseOptions options = options_of(request, values);
  out.columns = values.columns();
  block::check_quantise(*out.recipe, values.rows(), values.columns(), options);
  const std::string& tensor = request.tensor;
  const bool vectors = tensor.ends_with("/x") && !log::Safetensors(output).raw("codes");
  const std::string prefix =
      vectors ? tensor.substr(0, tensor.size() - 1) + (request.by_columns ? "columns/" : "rows/")
              : "";
  out.found = output_of(output, prefix, *out.recipe, values.matrix(), request.by_columns);
  out.conformity = block::conform(*out.recipe, values.matrix(), out.found, options);
  return out;
}

std::filesystem::path write_vectors(const std::string& name, const std::filesystem::path& folder) {
  const Recipe& recipe = block::recipe_named(name);
  std::vector<RawTensor> tensors;
  for (const block::VectorCase& one : block::vector_cases(recipe)) {
    const std::vector<std::uint64_t> shape = {one.rows, one.columns};
    const block::Matrix in = {one.values, one.rows, one.columns};
    tensors.push_back(
        tensor_of(one.name + "/x", "F32", shape, std::as_bytes(std::span(one.values))));
    for (const bool by_columns : {false, true}) {
      if (by_columns && one.rows % recipe.multiple_of != 0) continue;
      block::QuantiseOptions options = {.by_columns = by_columns};
      if (recipe.second == block::SecondScale::history) options.history = kHistoryOfVectors;
      add_output(tensors, one.name + (by_columns ? "/columns/" : "/rows/"), recipe,
                 block::quantise(recipe, in, options), shape);
    }
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) {
    throw BadInput(fmt::format("{}: the folder cannot be made ({})",
                               log::printable(folder.string()), failed.message()));
  }
  const std::filesystem::path path = folder / (name + ".safetensors");
  write(path, std::move(tensors), recipe, false);
  return path;
}

}  // namespace halfscope::analyzers::blocks
