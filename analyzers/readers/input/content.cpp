// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/input/content.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzers/readers/input/text_encoding.hpp"
#include "analyzers/readers/input/unpack.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::input {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::size_t kContentLookedAt = 4096;

constexpr std::string_view kNameLog = "name the log itself";
constexpr std::string_view kUnpack = "unpack it and name the log in it";
constexpr std::string_view kExport = "export the run's values as JSON or CSV and name that file";
constexpr std::string_view kConvert =
    "convert its tensors to safetensors, or save them with torch.save or numpy.savez";

/// A kind of file that has certain bytes at offset `at`. A new kind needs only a row here.
struct ContentRow {
  std::string_view bytes;
  std::size_t at;
  std::string_view is;
  std::string_view way_out;
};
constexpr ContentRow kContentRows[] = {
    {"\x89PNG\r\n\x1a\n"sv, 0, "a PNG image", kNameLog},
    {"\xFF\xD8\xFF"sv, 0, "a JPEG image", kNameLog},
    {"GIF8"sv, 0, "a GIF image", kNameLog},
    {"WEBP"sv, 8, "a WebP image", kNameLog},
    {"%PDF-"sv, 0, "a PDF document", kNameLog},
    {"\x7F"
     "ELF"sv,
     0, "an ELF program or library", kNameLog},
    {"MZ\x90\0"sv, 0, "a Windows program", kNameLog},
    {"\0asm"sv, 0, "a WebAssembly program", kNameLog},
    {"\xCA\xFE\xBA\xBE"sv, 0, "a Java class or macOS program", kNameLog},
    {"ustar"sv, 257, "a tar archive", kUnpack},
    {"7z\xBC\xAF\x27\x1C"sv, 0, "a 7-Zip archive", kUnpack},
    {"Rar!\x1A\x07"sv, 0, "a RAR archive", kUnpack},
    {"\x04\x22\x4D\x18"sv, 0, "an LZ4 file", kUnpack},
    {"LZIP"sv, 0, "an lzip file", kUnpack},
    {"\x1F\x9D"sv, 0, "a file of compress", kUnpack},
    {"!<arch>\n"sv, 0, "an ar archive", kUnpack},
    {"SQLite format 3\0"sv, 0, "an SQLite database", kExport},
    {"PAR1"sv, 0, "a Parquet file", kExport},
    {"ARROW1"sv, 0, "an Arrow file", kExport},
    {"ORC"sv, 0, "an ORC file", kExport},
    {"LPKSHHRH"sv, 0, "a systemd journal", "write it as text: journalctl --file FILE > train.log"},
    {":W&B"sv, 0, "a run file of Weights & Biases",
     "export the run's history (docs/logs.md, Weights & Biases histories)"},
    {"\x89HDF\r\n\x1a\n"sv, 0, "an HDF5 file", kConvert},
    {"CDF\x01"sv, 0, "a NetCDF file", kConvert},
    {"GGUF"sv, 0, "a GGUF model", kConvert},
    {"ggml"sv, 0, "a GGML model", kConvert},
    {"MATLAB 5.0 MAT-file"sv, 0, "a MATLAB file", kConvert},
    {"\x80\x02"sv, 0, "a pickle of Python", kConvert},
    {"\x80\x03"sv, 0, "a pickle of Python", kConvert},
    {"\x80\x04\x95"sv, 0, "a pickle of Python", kConvert},
    {"\x80\x05\x95"sv, 0, "a pickle of Python", kConvert},
    {"version https://git-lfs.github.com/spec/"sv, 0, "a Git LFS pointer without its file",
     "fetch the file: git lfs pull"},
};

const ContentRow* row_of(std::string_view text) {
  const auto* const row = std::ranges::find_if(kContentRows, [text](const ContentRow& one) {
    return text.size() >= one.at && text.substr(one.at).starts_with(one.bytes);
  });
  return row == std::end(kContentRows) ? nullptr : row;
}

bool begins_without_case(std::string_view text, std::string_view with) {
  return text.size() >= with.size() &&
         std::equal(with.begin(), with.end(), text.begin(), [](char a, char b) {
           return a == std::tolower(static_cast<unsigned char>(b));
         });
}

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else if (std::isspace(static_cast<unsigned char>(c)) == 0 && c != '"') {
      cells.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return cells;
}

/// Returns the content of a CSV file (names, then numbers). Empty for other texts.
std::optional<Content> table_content(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::vector<std::string> names = cells_of(text.substr(0, end));
  std::string_view rest = text.substr(std::min(end + 1, text.size()));
  const std::vector<std::string> first = cells_of(rest.substr(0, rest.find('\n')));
  const auto is_number = [](const std::string& cell) {
    return cell.empty() || cell.find_first_not_of("0123456789.+-einfa") == std::string::npos;
  };
  const bool named = std::ranges::none_of(names, is_number);
  if (names.size() < 2 || first.size() != names.size() || !named) return std::nullopt;
  if (!std::ranges::any_of(first, is_number)) return std::nullopt;
  if (std::ranges::find(names, "step") == names.end()) {
    return Content{"a CSV file without a column 'step'",
                   "name the column of the steps 'step', in the first line; beside it, the columns "
                   "loss and loss_scale are read"};
  }
  return Content{"a CSV file of which no column but 'step' has a name that Halfscope knows",
                 "name the columns loss and loss_scale, in the first line"};
}

Content text_content(std::string_view text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  text.remove_prefix(first);
  if (begins_without_case(text, "<!doctype html") || begins_without_case(text, "<html")) {
    return {"an HTML page", "save the log itself, not the page that shows it"};
  }
  if (text.starts_with("<?xml")) return {"XML", std::string(kNameLog)};
  if (const auto table = table_content(text)) return *table;
  return {"text without any line that Halfscope knows", "check that this file has the run's output",
          true};
}

Content zip_content(const log::OpenFile& file) {
  constexpr std::size_t kMostNames = 6;
  const std::vector<std::string> names = files_in_zip(file);
  if (names.empty()) return {"a ZIP archive without any file that may be a log", "name a log"};
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNames); ++i) {
    list += (i == 0 ? "'" : ", '") + log::printable(names[i].substr(0, 100)) + "'";
  }
  if (names.size() > kMostNames) list += fmt::format(" and {} more", names.size() - kMostNames);
  if (names.size() == 1) return {"a ZIP archive of " + list, std::string(kUnpack)};
  return {fmt::format("a ZIP archive of {} files ({})", names.size(), list), std::string(kUnpack)};
}

Content content_of(const log::OpenFile& file, const std::string& beginning) {
  if (beginning.empty()) {
    return {"empty", "wait until the program has written to it, or check where it writes"};
  }
  const std::string_view text = beginning;
  if (const ContentRow* const row = row_of(text)) {
    return {std::string(row->is), std::string(row->way_out)};
  }
  const Packing packing = packing_of(text);
  if (packing == Packing::zip) return zip_content(file);
  if (packing != Packing::none) return {std::string(name_of(packing)), std::string(kUnpack)};
  if (text.find_first_not_of('\0') == std::string_view::npos) {
    return {"nothing but zeros, as after a crash or on a full disk", std::string(kNameLog)};
  }
  if (is_text(text)) return text_content(text);
  return {"binary data of an unknown kind", std::string(kNameLog)};
}

}  // namespace

Content content_of(const log::OpenFile& file) {
  std::string beginning(kContentLookedAt, '\0');
  beginning.resize(file.read(0, beginning.data(), beginning.size()));
  const Packing packing = packing_of(beginning);
  const bool one =
      packing == Packing::zip ? files_in_zip(file).size() == 1 : packing != Packing::none;
  if (!one) return content_of(file, beginning);
  const std::string inner = packed_beginning(file, packing, kContentLookedAt);
  if (inner.empty()) return content_of(file, beginning);
  const Packing again = packing_of(inner);
  Content content = again == Packing::none
                        ? content_of(file, inner)
                        : Content{std::string(name_of(again)), std::string(kUnpack)};
  content.is = fmt::format("{} of {}", name_of(packing), content.is);
  content.lines = false;
  return content;
}

bool is_of_other_kind(std::string_view beginning) { return row_of(beginning) != nullptr; }

bool is_foreign(const log::OpenFile& file) {
  if (!file.remarks().refusal.empty() || file.size() == 0) return true;
  std::string beginning(kContentLookedAt, '\0');
  beginning.resize(file.read(0, beginning.data(), beginning.size()));
  switch (packing_of(beginning)) {
    case Packing::none: return false;
    case Packing::zip: return !files_in_zip(file).empty();
    default: return true;
  }
}

}  // namespace halfscope::analyzers::readers::input
