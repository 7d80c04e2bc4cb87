// SPDX-License-Identifier: Apache-2.0
#include "cli/options/notes.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <cstdio>

#include "reports/answer/text.hpp"

namespace halfscope::cli::options {

namespace {

analyzers::frames::Notes& kept_notes() {
  static analyzers::frames::Notes notes;
  return notes;
}

std::string rate_text(double rate) {
  return rate < 1e9 ? fmt::format("{:.0f} MB/s  ", rate / 1e6)
                    : fmt::format("{:.2f} GB/s  ", rate / 1e9);
}

}  // namespace

// fmt::print() would throw if the stream cannot be written.
void write_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

void say_some(const analyzers::frames::Notes& lines, std::string_view way_out) {
  constexpr std::size_t kMost = 10;
  for (std::size_t i = 0; i < std::min(lines.size(), kMost); ++i) say("{}", lines[i].text());
  if (lines.size() <= kMost) return;
  say("and {}{}{}", reports::answer::plural(lines.size() - kMost, "more note"),
      way_out.empty() ? "" : "; ", way_out);
}

void note_later(const analyzers::frames::Notes& notes) { kept_notes().add_all(notes); }

void print_notes() {
  std::fflush(stdout);  // main() reports write errors
  say_some(kept_notes(), "'halfscope analyze LOG --json -' prints them all");
  kept_notes().clear();
}

Progress::Progress(std::string what)
    : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(std::uint64_t done, std::uint64_t all) {
  using std::chrono::duration;
  const Clock::time_point now = Clock::now();
  // Another file or pass starts here. The first phase started with the bar.
  if (all_ != 0 && (all != all_ || done < done_)) phase_ = now;
  all_ = all;
  done_ = done;
  const bool early = duration<double>(now - start_).count() < 1;
  if (!terminal_ || early || duration<double>(now - shown_).count() < 0.1) return;
  shown_ = now;
  visible_ = true;
  constexpr int kWidth = 30;
  const double seconds = std::max(1e-3, duration<double>(now - phase_).count());
  const auto count = static_cast<double>(done);
  const double part = all > 0 ? std::min(1.0, count / static_cast<double>(all)) : 0;
  const int filled = static_cast<int>(part * kWidth);
  const double left = part > 0 ? seconds / part - seconds : 0;
  write_error(fmt::format("\r\x1b[K{} [{:=<{}}{: <{}}] {:3.0f} %  {}{:.0f} s left", what_, "",
                          filled, "", kWidth - filled, 100 * part,
                          all < 1'000'000 ? "" : rate_text(count / seconds), left));
  std::fflush(stderr);
}

void Progress::clear() {
  if (visible_) write_error("\r\x1b[K");
  visible_ = false;
}

}  // namespace halfscope::cli::options
