// SPDX-License-Identifier: Apache-2.0
#include "cli/options/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "halfscope/log/error.hpp"
#include "halfscope/log/output_file.hpp"

namespace halfscope::cli::options {

namespace {

void require_no_input(const std::string& output, const LogOptions& options) {
  if (output.empty() || output == "-") return;
  const auto target = std::filesystem::weakly_canonical(output);
  for (const std::string& log : options.logs) {
    const auto input = std::filesystem::weakly_canonical(log);
    const auto [end, unused] =
        std::mismatch(input.begin(), input.end(), target.begin(), target.end());
    if (end == input.end()) {
      throw BadUsage(
          fmt::format("output '{}' is or lies inside the log '{}', which it would damage; "
                      "give another path",
                      log::printable(output), log::printable(log)));
    }
  }
}

}  // namespace

void require_own_files(const std::vector<std::string>& outputs, const LogOptions& options) {
  std::map<std::filesystem::path, std::string> taken;
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    require_no_input(output, options);
    const auto [before, is_new] = taken.emplace(std::filesystem::weakly_canonical(output), output);
    if (is_new) continue;
    throw BadUsage(fmt::format("'{}' is given for two outputs; give each a file of its own",
                               log::printable(output)));
  }
}

std::size_t require_ending(const std::string& path, std::initializer_list<std::string_view> known) {
  try {
    return log::require_ending(path, known);
  } catch (const std::invalid_argument& error) {
    throw BadUsage(fmt::format("--out: {}", error.what()));
  }
}

void write_output(const std::string& path, std::string_view text) {
  write_pieces(path, [text](const WriteText& write) { write(text); });
}

void write_pieces(const std::string& path, const std::function<void(const WriteText&)>& pieces) {
  if (path == "-") {
    pieces([](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); });
    return;
  }
  log::OutputFile file{std::filesystem::path(path)};
  pieces([&file](std::string_view text) { file.write(text); });
  file.commit();
}

}  // namespace halfscope::cli::options
