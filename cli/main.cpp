// SPDX-License-Identifier: Apache-2.0
// halfscope: shows the effects of 16-bit floating point on a training run, and how to avoid them.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "analyzers/frames/message.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/notes.hpp"
#include "halfscope/device/vector_target.hpp"
#include "halfscope/log/cut_maps.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/user_limit.hpp"
#include "reports/page/page.hpp"

namespace {

using namespace halfscope;

int ended(int code, std::string_view why) {
  cli::options::print_notes();
  cli::options::say("{}", log::printable(std::string(why)));
  return code;
}

/// Opens /dev/null for each of stdin, stdout and stderr that is closed. Otherwise the next file to
/// be opened would get its number, and the program's output. Reads then end, and writes fail.
void hold_standard_files() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (::fcntl(file, F_GETFD) == -1) [[maybe_unused]]
      const int held = ::open("/dev/null", O_RDONLY);
  }
}

void read_environment() {
  try {
    log::check_user_limits();
    use_vector_target_of_environment();
  } catch (const std::invalid_argument& e) {
    throw cli::options::BadUsage(e.what());
  }
}

int parse_and_run(int argc, char** argv) {
  cli::options::Parser parser;
  cli::commands::add_analyze(parser);
  cli::commands::add_recommend(parser);
  cli::commands::add_report(parser);
  cli::commands::add_compare(parser);
  cli::commands::add_count(parser);
  cli::commands::add_merge(parser);
  cli::commands::add_reduce(parser);
  cli::commands::add_weights(parser);
  cli::commands::add_policies(parser);
  cli::commands::add_simulate(parser);
  cli::commands::add_emulate(parser);
  cli::commands::add_mma(parser);
  cli::commands::add_explain(parser);
  cli::commands::add_quantise(parser);
  cli::commands::add_conform(parser);
  cli::commands::add_vectors(parser);
  cli::commands::add_logs(parser);
  cli::commands::add_info(parser);
  return parser.run(argc, argv);
}

}  // namespace

/// Flushes and closes stdout. A failure (full disk, network file system) is an error of the
/// program, unless stdout was closed at the start.
int check_stdout(int code) {
  const bool flushed = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  const bool written = flushed && (::close(STDOUT_FILENO) == 0 || errno == EBADF);
  const int error = errno;
  cli::options::print_notes();
  if (written) return code;
  cli::options::say("stdout: cannot be written ({}); {}write to another file", std::strerror(error),
                    error == ENOSPC ? "free space, or " : "");
  return code == cli::options::kFine ? cli::options::kBadInput : code;
}

int main(int argc, char** argv) {
  try {
    hold_standard_files();
    log::end_where_maps_are_cut();
    read_environment();
    return check_stdout(parse_and_run(argc, argv));
  } catch (const cli::options::BadUsage& e) {
    return ended(cli::options::kBadUsage, e.what());
  } catch (const reports::page::MissingPart& e) {
    return ended(cli::options::kNotHere, e.what());
  } catch (const analyzers::frames::BadOption& e) {
    return ended(cli::options::kBadUsage, e.what());
  } catch (const log::BadInput& e) {
    return ended(cli::options::kBadInput, e.what());
  } catch (const std::bad_alloc& e) {
    cli::options::say("out of memory; select fewer tensors with --tensor or --step");
    return cli::options::kBadInput;
  } catch (const std::exception& e) {
    return ended(cli::options::kBadInput, e.what());
  }
}
