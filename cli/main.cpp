// SPDX-License-Identifier: Apache-2.0
// halfscope: what 16-bit floating point does to a training run, and what to do about it.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "cli/commands/commands.hpp"
#include "cli/options/exit.hpp"
#include "halfscope/device/vector_target.hpp"
#include "halfscope/log/error.hpp"
#include "reports/page/page.hpp"

namespace {

using namespace halfscope;

int say(int code, const std::exception& e) {
  fmt::print(stderr, "halfscope: {}\n", log::printable(e.what()));
  return code;
}

void choose_vector_target() {
  try {
    use_vector_target_of_environment();
  } catch (const std::invalid_argument& e) {
    throw cli::BadUsage(e.what());
  }
}

int parse_and_run(int argc, char** argv) {
  cli::Parser parser;
  cli::add_analyze(parser);
  cli::add_recommend(parser);
  cli::add_report(parser);
  cli::add_compare(parser);
  cli::add_policies(parser);
  cli::add_simulate(parser);
  cli::add_emulate(parser);
  cli::add_info(parser);
  return parser.run(argc, argv);
}

}  // namespace

/// What was printed must have arrived: a full disk behind stdout is an error too.
int check_stdout(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  fmt::print(stderr,
             "halfscope: stdout: cannot be written ({}); free space, or write to another file\n",
             std::strerror(errno));
  return code == cli::kFine ? cli::kBadInput : code;
}

int main(int argc, char** argv) {
  try {
    choose_vector_target();
    return check_stdout(parse_and_run(argc, argv));
  } catch (const cli::BadUsage& e) {
    return say(cli::kBadUsage, e);
  } catch (const reports::MissingPart& e) {
    return say(cli::kNotHere, e);
  } catch (const log::BadInput& e) {
    return say(cli::kBadInput, e);
  } catch (const std::bad_alloc& e) {
    fmt::print(stderr, "halfscope: out of memory; select fewer tensors with --tensor or --step\n");
    return cli::kBadInput;
  } catch (const std::exception& e) {
    return say(cli::kBadInput, e);
  }
}
