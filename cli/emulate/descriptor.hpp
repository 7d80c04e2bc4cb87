// SPDX-License-Identifier: Apache-2.0
// Lines from a descriptor as they arrive, and blocks to one: what stdio buffers, pipes can wait
// for.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/error.hpp"

namespace halfscope::cli::emulate {

struct Line {
  std::string_view text;  ///< without the newline; good until the next read_block()
  bool cut = false;       ///< longer than the buffer: only whole words of its beginning
};

/// Reads lines in bounded memory.
///
///     while (reader.read_block()) {
///       for (Line line; reader.next(line);) ...
///     }
class LineReader {
 public:
  static constexpr std::size_t kLongestLine = std::size_t{1} << 18;

  LineReader(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  /// Waits for input, and takes what there is. False when all has been given out.
  /// Throws log::BadInput when the descriptor cannot be read.
  bool read_block();

  /// The next line that has arrived whole, or at the end of input the rest.
  bool next(Line& line);

 private:
  bool next_long(Line& line);

  int descriptor_;
  std::string name_;
  std::vector<char> buffer_ = std::vector<char>(kLongestLine + 1);
  std::size_t begin_ = 0, end_ = 0;  ///< of what has not been given out
  bool ended_ = false;
  bool skipping_ = false;  ///< inside a line whose beginning was given out
};

/// Collects output and writes it in large blocks.
class BlockWriter {
 public:
  BlockWriter(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  /// Where `bytes` more may be put; writes first when they do not fit.
  char* room(std::size_t bytes);
  /// `end`: behind the last byte put there.
  void advance(const char* end) { used_ = static_cast<std::size_t>(end - buffer_.data()); }
  /// Throws log::BadInput when the descriptor cannot be written.
  void flush();

 private:
  int descriptor_;
  std::string name_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 18);
  std::size_t used_ = 0;
};

/// Answers line after line of standard input as they arrive. answerer.answer(line, at) writes at
/// most `longest` bytes and returns their end. Throws log::BadInput, after the answers before.
template <class Answerer>
void answer_each(Answerer& answerer, std::size_t longest, int in, int out) {
  LineReader reader(in, "stdin");
  BlockWriter writer(out, "stdout");
  try {
    while (reader.read_block()) {
      for (Line line; reader.next(line);) {
        writer.advance(answerer.answer(line, writer.room(longest)));
      }
      writer.flush();
    }
  } catch (const log::BadInput&) {
    writer.flush();
    throw;
  }
}

}  // namespace halfscope::cli::emulate
