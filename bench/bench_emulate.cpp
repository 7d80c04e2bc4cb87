// SPDX-License-Identifier: Apache-2.0
// Lines per second of `halfscope emulate`, one thread: from a file to /dev/null, so parsing, the
// operation and formatting are what takes the time. Operands are random encodings of every class.
//
//   bench_emulate [--json FILE] [--lines N]
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/test_lines.hpp"

namespace {

using namespace halfscope;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// A file without a name, gone with the program.
File file_of(const std::string& text) {
  File file(std::tmpfile(), std::fclose);
  if (file == nullptr || std::fwrite(text.data(), 1, text.size(), file.get()) != text.size() ||
      std::fflush(file.get()) != 0) {
    throw std::runtime_error("no room for a temporary file");
  }
  return file;
}

std::string random_lines(const Operation& operation, std::size_t lines) {
  std::mt19937_64 random(1);
  std::string text;
  for (std::size_t i = 0; i < lines; ++i) {
    for (const WordType& type : operation.takes) {
      fmt::format_to(std::back_inserter(text), "{:0{}X} ", random() >> (64 - type.width),
                     type.hex_digits());
    }
    text.back() = '\n';
  }
  return text;
}

/// Best of five, in lines a second.
double speed(const Operation& operation, std::size_t lines, int out) {
  const File file = file_of(random_lines(operation, lines));
  const int in = fileno(file.get());
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    if (lseek(in, 0, SEEK_SET) != 0)
      throw std::runtime_error("the temporary file has no beginning");
    const auto start = std::chrono::steady_clock::now();
    cli::answer_lines(operation, {}, false, in, out);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::min(best, taken.count());
  }
  return static_cast<double>(lines) / best;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t lines = 1000000;
  std::string json;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string_view(argv[i]) == "--json") json = argv[i + 1];
    if (std::string_view(argv[i]) == "--lines") lines = std::stoull(argv[i + 1]);
  }
  const int out = open("/dev/null", O_WRONLY);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const char* const name : {"f16_add", "f16_mul", "f16_mulAdd", "f16_div", "f16_rem",
                                 "f16_sqrt", "f32_to_f16", "f64_to_f16", "f16_to_i32", "f32_rem"}) {
    const double lines_per_second = speed(*find_operation(name), lines, out);
    fmt::print("emulate {:<12} {:6.1f} million lines/s\n", name, lines_per_second / 1e6);
    list.push_back({{"name", fmt::format("emulate {}", name)},
                    {"threads", 1},
                    {"value", lines_per_second},
                    {"unit", "lines/s"}});
  }
  if (!json.empty()) std::ofstream(json) << list.dump(1) << "\n";
  return 0;
}
