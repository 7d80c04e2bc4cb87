// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/error.hpp"
#include "sim/data/labelled.hpp"
#include "sim/data/sets.hpp"
#include "sim/data/stored_file.hpp"

namespace halfscope::sim::data {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kImages = 1797, kPixels = 64;
constexpr std::int64_t kDigitsHeld = 360;  // a fifth
constexpr std::uint64_t kMostDigitsText = 4 << 20;

/// Appends the numbers of one line to `all`. Returns an error message, or an empty string.
std::string take_line(std::string_view line, Examples& all) {
  const char* at = line.data();
  const char* const end = at + line.size();
  for (std::size_t column = 0; column <= kPixels; ++column) {
    int value = -1;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error != std::errc{}) {
      return fmt::format(
          "column {} is not an integer, or the line ends there: expected 64 pixels and the "
          "digit, commas between",
          column + 1);
    }
    const int most = column < kPixels ? 16 : 9;
    if (value < 0 || value > most) {
      return fmt::format("column {} is {}: expected {} from 0 to {}", column + 1, value,
                         column < kPixels ? "a pixel" : "a label", most);
    }
    if (column < kPixels) {
      all.bytes.push_back(static_cast<std::uint8_t>(value));
    } else {
      all.labels.push_back(value);
    }
    const bool last = column == kPixels;
    if (last ? next != end : (next == end || *next != ',')) {
      return fmt::format("column {} does not end at a {}", column + 1, last ? "line end" : "comma");
    }
    at = next + 1;
  }
  return {};
}

/// Returns the folder of sklearn that Python reports; empty without Python or sklearn.
fs::path ask_python() {
  constexpr const char* command =
      "python3 -c \"import importlib.util as u; s = u.find_spec('sklearn'); "
      "print(s.submodule_search_locations[0] if s else '')\" 2>/dev/null";
  std::FILE* const pipe = popen(command, "r");
  if (pipe == nullptr) return {};
  std::array<char, 4096> buffer{};
  const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe);
  pclose(pipe);
  std::string_view text(buffer.data(), got);
  return text.substr(0, text.find_first_of("\r\n"));
}

/// Appends the sklearn folders of `root`/python3*/{site,dist}-packages.
void add_packages(const fs::path& root, std::vector<fs::path>& places) {
  std::error_code error;
  for (fs::directory_iterator at(root, error), end; !error && at != end; at.increment(error)) {
    if (!at->path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"}) {
      places.push_back(at->path() / packages / "sklearn");
    }
  }
}

std::vector<fs::path> usual_places() {
  std::vector<fs::path> places;
  if (const char* environment = std::getenv("VIRTUAL_ENV")) {
    add_packages(fs::path(environment) / "lib", places);
  }
  places.push_back(ask_python());
  if (const char* home = std::getenv("HOME")) {
    add_packages(fs::path(home) / ".local/lib", places);
  }
  add_packages("/usr/local/lib", places);
  add_packages("/usr/lib", places);
  return places;
}

}  // namespace

fs::path find_digits() {
  for (const fs::path& place : usual_places()) {
    if (place.empty()) continue;
    if (const auto found = find_stored(place / "datasets/data", "digits.csv")) return *found;
  }
  throw log::BadInput(
      "digits: no installed scikit-learn has datasets/data/digits.csv.gz (looked in $VIRTUAL_ENV, "
      "where python3 finds sklearn, in ~/.local/lib, /usr/local/lib and /usr/lib): install it "
      "(apt install python3-sklearn, or pip install scikit-learn), or name a folder that holds "
      "digits.csv or digits.csv.gz: --data FOLDER");
}

std::unique_ptr<Data> open_digits(const fs::path& path, std::uint64_t seed) {
  StoredFile file(path);
  const std::vector<std::uint8_t> bytes = file.read(kMostDigitsText);
  file.end("any digits.csv (4 MiB)");
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Examples all;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t newline = rest.find('\n');
    std::string_view line = rest.substr(0, newline);
    rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (const std::string why = take_line(line, all); !why.empty()) {
      file.refuse(fmt::format("line {}: {}", number, why));
    }
  }
  if (all.labels.size() != kImages) {
    file.refuse(
        fmt::format("it has {} images, scikit-learn's digits are {}: take the file of an "
                    "installed scikit-learn, sklearn/datasets/data/digits.csv.gz",
                    all.labels.size(), kImages));
  }
  return Labelled::divided({.what = "scikit-learn digits", .shape = {8, 8, 1}, .factor = 1.0F / 16},
                           all, kDigitsHeld, seed);
}

}  // namespace halfscope::sim::data
