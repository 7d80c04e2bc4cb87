// SPDX-License-Identifier: Apache-2.0
#include "cli/emulate/descriptor.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "halfscope/log/error.hpp"

namespace halfscope::cli::emulate {
namespace {

/// Returns true if a failed call should be repeated. Waits if the descriptor is non-blocking.
bool try_again(int descriptor, short event) {
  if (errno == EINTR) return true;
  if (errno != EAGAIN && errno != EWOULDBLOCK) return false;
  pollfd wait{descriptor, event, 0};
  poll(&wait, 1, -1);
  return true;
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

}  // namespace

bool LineReader::read_block() {
  if (ended_) return false;
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  ssize_t got;
  do {
    got = read(descriptor_, buffer_.data() + end_, buffer_.size() - end_);
  } while (got < 0 && try_again(descriptor_, POLLIN));
  if (got < 0) {
    throw log::BadInput(fmt::format("{}: cannot be read ({}); give lines by a pipe or a file",
                                    name_, std::strerror(errno)));
  }
  ended_ = got == 0;
  end_ += static_cast<std::size_t>(got);
  return true;
}

bool LineReader::next(Line& line) {
  const char* const start = buffer_.data() + begin_;
  const std::size_t left = end_ - begin_;
  const void* const newline = std::memchr(start, '\n', left);
  if (newline == nullptr) return next_long(line);
  const auto length = static_cast<std::size_t>(static_cast<const char*>(newline) - start);
  begin_ += length + 1;
  if (skipping_) {
    skipping_ = false;
    return next(line);
  }
  line = {{start, length}, false};
  return true;
}

/// Handles a buffer without a newline: it is the last line, the beginning of a line longer than the
/// buffer, or an incomplete line.
bool LineReader::next_long(Line& line) {
  std::string_view rest(buffer_.data() + begin_, end_ - begin_);
  const bool full = rest.size() == buffer_.size();
  if (skipping_) begin_ = end_;
  if (skipping_ || rest.empty() || !(ended_ || full)) return false;
  begin_ = end_;
  if (full && !ended_) {
    skipping_ = true;
    std::size_t whole = rest.size();
    while (whole > 0 && !is_space(rest[whole - 1])) --whole;
    if (whole > 0) rest = rest.substr(0, whole);  // a line without spaces is not shortened
  }
  line = {rest, full && !ended_};
  return true;
}

char* BlockWriter::room(std::size_t bytes) {
  if (buffer_.size() - used_ < bytes) flush();
  return buffer_.data() + used_;
}

void BlockWriter::flush() {
  std::size_t done = 0;
  while (done < used_) {
    const ssize_t put = write(descriptor_, buffer_.data() + done, used_ - done);
    if (put >= 0) {
      done += static_cast<std::size_t>(put);
    } else if (!try_again(descriptor_, POLLOUT)) {
      used_ = 0;
      throw log::BadInput(
          fmt::format("{}: cannot be written ({}); free space, or write to another file", name_,
                      std::strerror(errno)));
    }
  }
  used_ = 0;
}

}  // namespace halfscope::cli::emulate
