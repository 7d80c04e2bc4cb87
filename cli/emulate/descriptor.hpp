// SPDX-License-Identifier: Apache-2.0
// Line input from a file descriptor, as soon as data arrive, and buffered output to one. stdio
// would wait for full buffers, which blocks programs that communicate by pipes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/log/error.hpp"

namespace halfscope::cli::emulate {

struct Line {
  std::string_view text;  ///< without the newline; valid until the next read_block()
  bool cut = false;  ///< true: longer than the buffer; `text` has only whole words of its beginning
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

  /// Waits for input and reads the available bytes. Returns false at the end of input. Throws
  /// log::BadInput if the descriptor cannot be read.
  bool read_block();

  /// Gets the next complete line, or the rest at the end of input. Returns false if there is none.
  bool next(Line& line);

 private:
  bool next_long(Line& line);

  int descriptor_;
  std::string name_;
  std::vector<char> buffer_ = std::vector<char>(kLongestLine + 1);
  std::size_t begin_ = 0, end_ = 0;  ///< range of buffer_ that next() has not returned yet
  bool ended_ = false;
  bool skipping_ = false;  ///< true: the beginning of the current line was already returned
};

/// Collects output and writes it in large blocks.
class BlockWriter {
 public:
  BlockWriter(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}

  /// Returns a pointer to space for `bytes` bytes. Writes the buffer first if it has not enough.
  char* room(std::size_t bytes);
  /// Marks the bytes before `end` as output.
  void advance(const char* end) { used_ = static_cast<std::size_t>(end - buffer_.data()); }
  /// Writes the buffer. Throws log::BadInput if the descriptor cannot be written.
  void flush();

 private:
  int descriptor_;
  std::string name_;
  std::vector<char> buffer_ = std::vector<char>(std::size_t{1} << 18);
  std::size_t used_ = 0;
};

/// Answers each line of descriptor `in` on `out`, as soon as it arrives. answerer.answer(line, at)
/// writes at most `longest` bytes to `at` and returns their end. If it throws log::BadInput, the
/// earlier answers are written before the exception is passed on.
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
