// SPDX-License-Identifier: Apache-2.0
// Lines per second of `halfscope emulate` on one thread, from a file to /dev/null: the time is
// spent in parsing, the operation and formatting. Operands are random encodings of every class.
//
//   bench_emulate [--json FILE] [--lines N]
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <random>

#include "bench/bench.hpp"
#include "cli/emulate/lines.hpp"

namespace {

using namespace halfscope;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Returns a temporary file without a name, which is deleted at exit.
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

/// Returns the best of five runs, in lines per second.
double speed(const Operation& operation, std::size_t lines, int out) {
  const File file = file_of(random_lines(operation, lines));
  const int in = fileno(file.get());
  double best = 1e9;
  for (int run = 0; run < 5; ++run) {
    if (lseek(in, 0, SEEK_SET) != 0)
      throw std::runtime_error("the temporary file has no beginning");
    best = std::min(best, bench::wall_seconds(
                              [&] { cli::emulate::answer_lines(operation, {}, false, in, out); }));
  }
  return static_cast<double>(lines) / best;
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given = bench::arguments(argc, argv, "--lines", 1000000);
  const int out = open("/dev/null", O_WRONLY);
  std::vector<bench::Result> results;
  for (const char* const name : {"f16_add", "f16_mul", "f16_mulAdd", "f16_div", "f16_rem",
                                 "f16_sqrt", "f32_to_f16", "f64_to_f16", "f16_to_i32", "f32_rem"}) {
    results.push_back({fmt::format("emulate {}", name), 1,
                       speed(*find_operation(name), given.number, out), "lines/s"});
  }
  bench::report(results, given.json);
  return 0;
}
