// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>

#include "halfscope/log/error.hpp"
#include "halfscope/log/output_file.hpp"
#include "halfscope/log/safetensors.hpp"
#include "halfscope/log/safetensors_header.hpp"

namespace halfscope::log {
namespace {

/// Returns the bytes of an element; 1 for an unknown dtype without elements.
std::uint64_t width_of(const RawTensor& tensor) {
  if (const auto dtype = find_dtype(tensor.dtype)) {
    return static_cast<std::uint64_t>(format_of(*dtype).width / 8);
  }
  const std::uint64_t count = element_count(tensor.shape).value_or(0);
  return count == 0 ? 1 : tensor.values.bytes.size() / count;
}

/// Wide elements first, so that each tensor starts at a multiple of its element's width.
void sort_for_file(std::vector<RawTensor>& tensors) {
  std::ranges::sort(tensors, [](const RawTensor& a, const RawTensor& b) {
    const std::uint64_t width_a = width_of(a), width_b = width_of(b);
    return std::tie(width_b, a.name) < std::tie(width_a, b.name);
  });
}

/// Throws BadInput if `text` is not UTF-8, which JSON requires.
void check_utf8(std::string_view text, const std::string& place) {
  try {
    (void)nlohmann::json(text).dump();
  } catch (const nlohmann::json::type_error&) {
    throw BadInput(
        fmt::format("{} has a name or text that is not UTF-8, expected UTF-8; rename it", place));
  }
}

/// Throws BadInput for a tensor whose number of values does not fit its shape.
void check(const NamedTensor& tensor, const std::string& file) {
  const auto count = element_count(tensor.shape);
  if (count && *count == tensor.view.count) return;
  throw BadInput(
      fmt::format("{} has {} elements, expected {} for shape {}; pass the tensor's own shape",
                  place_text(file, tensor.name), tensor.view.count,
                  count ? fmt::to_string(*count) : "more than 2^64", shape_text(tensor.shape)));
}

nlohmann::ordered_json header_json(const std::vector<RawTensor>& tensors,
                                   const std::map<std::string, std::string>& metadata) {
  auto document = nlohmann::ordered_json::object();
  // ordered_json is a list of pairs: lookup by name would be quadratic in the number of tensors.
  auto& rows = document.get_ref<nlohmann::ordered_json::object_t&>();
  if (!metadata.empty()) rows.push_back({std::string(kSafetensorsMetadata), metadata});
  std::uint64_t begin = 0;
  for (const RawTensor& tensor : tensors) {
    const std::uint64_t end = begin + tensor.values.bytes.size();
    auto row = nlohmann::ordered_json::object();
    row["dtype"] = tensor.dtype;
    row["shape"] = tensor.shape;
    row["data_offsets"] = {begin, end};
    rows.push_back({tensor.name, std::move(row)});
    begin = end;
  }
  return document;
}

void check_names(const std::vector<RawTensor>& tensors, const std::string& file) {
  std::vector<std::string_view> names = {kSafetensorsMetadata};
  for (const RawTensor& tensor : tensors) {
    check_utf8(tensor.name, place_text(file, tensor.name));
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  throw BadInput(
      fmt::format("{} is there twice or named as the metadata, expected every name once; "
                  "rename it",
                  place_text(file, *twice)));
}

/// Returns the header's text, padded with spaces so that data begins at a multiple of eight.
std::string header_text(const nlohmann::ordered_json& document, const std::string& file) {
  std::string text = document.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() <= kMaxSafetensorsHeader) return text;
  throw BadInput(
      fmt::format("{}: the header takes {} bytes, expected at most {}; write fewer tensors a "
                  "file",
                  file, text.size(), kMaxSafetensorsHeader));
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<RawTensor> raw;
  for (const NamedTensor& tensor : tensors) {
    check(tensor, printable(path.string()));
    raw.push_back({tensor.name,
                   std::string(name_of(tensor.view.dtype)),
                   tensor.shape,
                   {nullptr, std::span(tensor.view.data, tensor.view.bytes())}});
  }
  write_safetensors(path, std::move(raw), metadata);
}

std::string safetensors_head(std::vector<RawTensor>& tensors,
                             const std::map<std::string, std::string>& metadata,
                             const std::string& file) {
  check_names(tensors, file);
  for (const auto& [key, value] : metadata) {
    check_utf8(key, file);
    check_utf8(value, fmt::format("{}: metadata '{}'", file, printable(key)));
  }
  sort_for_file(tensors);
  const std::string text = header_text(header_json(tensors, metadata), file);
  std::string length(8, '\0');
  for (unsigned i = 0; i < length.size(); ++i) {
    length[i] = static_cast<char>(static_cast<std::uint64_t>(text.size()) >> (8 * i) & 0xFF);
  }
  return length + text;
}

void write_safetensors(const std::filesystem::path& path, std::vector<RawTensor> tensors,
                       const std::map<std::string, std::string>& metadata) {
  const std::string head = safetensors_head(tensors, metadata, printable(path.string()));
  OutputFile output(path);
  output.write(head);
  for (const RawTensor& tensor : tensors) output.write(tensor.values.bytes);
  output.commit();
}

}  // namespace halfscope::log
