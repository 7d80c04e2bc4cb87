// SPDX-License-Identifier: Apache-2.0
// halfscope: what 16-bit floating point does to a training run, and what to do about it.
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

#include "cli/command.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/version.hpp"
#include "reports/page.hpp"

namespace {

using namespace halfscope;

int say(int code, const std::exception& e) {
  fmt::print(stderr, "halfscope: {}\n", log::printable(e.what()));
  return code;
}

/// "analyze, emulate or info".
std::string command_names(const CLI::App& app) {
  std::string names;
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (std::size_t i = 0; i < commands.size(); ++i) {
    names += (i == 0 ? "" : i + 1 < commands.size() ? ", " : " or ") + commands[i]->get_name();
  }
  return names;
}

int parse_and_run(int argc, char** argv) {
  CLI::App app{
      "Measures what 16-bit floating point does to a training run: values flushed to zero, "
      "subnormals, overflow, and the loss scale to use.",
      "halfscope"};
  app.set_version_flag("--version", std::string(kVersion));
  app.require_subcommand(1);
  app.footer(
      "Start with:  halfscope recommend RUN      (RUN: a run log folder, .safetensors, .npy, "
      ".npz)");
  cli::Run run;
  cli::add_analyze(app, run);
  cli::add_recommend(app, run);
  cli::add_report(app, run);
  cli::add_compare(app, run);
  cli::add_policies(app, run);
  cli::add_simulate(app, run);
  cli::add_emulate(app, run);
  cli::add_info(app, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    const auto used = app.get_subcommands();
    if (used.empty() && argc > 1 && argv[1][0] != '-') {
      fmt::print(stderr, "halfscope: '{}' is no command; want {}\n", log::printable(argv[1]),
                 command_names(app));
      return cli::kBadUsage;
    }
    const std::string help =
        used.empty() ? "halfscope --help" : "halfscope " + used.front()->get_name() + " --help";
    fmt::print(stderr, "halfscope: {}; {} tells what is wanted\n", log::printable(e.what()), help);
    return cli::kBadUsage;
  }
  return run();
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
