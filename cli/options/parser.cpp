// SPDX-License-Identifier: Apache-2.0
#include "cli/options/parser.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/options/notes.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/version.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::options {
namespace {

/// Rejects text that is not a finite number of type T in [least, most]. `wanted` names the bounds.
template <class T>
CLI::Validator number_within(T least, T most, const std::string& wanted) {
  const std::string kind = std::is_integral_v<T> ? "whole" : "finite";
  const auto check = [=](const std::string& text) -> std::string {
    T value{};
    bool fine = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
    if constexpr (std::is_unsigned_v<T>)
      fine = fine && !text.starts_with('-');  // else it would wrap around
    if (fine) return {};
    return fmt::format("found '{}', expected a {} number, {}", log::printable(text), kind, wanted);
  };
  return CLI::Validator(check, "");
}

int refuse_command(const CLI::App& app, std::string_view typed) {
  if (typed == "run" || typed == "watch") {
    say("{0}: is not in this program but in the Python package; install it with pip install "
        "halfscope, then use halfscope {0} of that environment",
        typed);
    return kNotHere;
  }
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  names.insert(names.end(), {"run", "watch"});
  const std::string near = reports::answer::nearest(names, typed, 1).front();
  say("unknown command '{}'; {}use one of: {}", log::printable(typed),
      reports::answer::edit_distance(typed, near) > 2
          ? ""
          : fmt::format("did you mean '{}'? Else ", near),
      fmt::join(names, ", "));
  return kBadUsage;
}

int refuse(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const auto used = app.get_subcommands();
  if (used.empty() && argc > 1 && argv[1][0] != '-') return refuse_command(app, argv[1]);
  const std::string help =
      used.empty() ? "halfscope --help" : "halfscope " + used.front()->get_name() + " --help";
  say("{}; see {}", log::printable(error.what()), help);
  return kBadUsage;
}

}  // namespace

Option& Option::type(const std::string& name) {
  option_->type_name(name);
  if (name == "FILE") {
    const auto no_name = [](const std::string& file) {
      return std::string(file.empty() ? "found an empty name, expected a file's" : "");
    };
    option_->check(CLI::Validator(no_name, ""));
  }
  return *this;
}
Option& Option::help(const std::string& text) {
  option_->description(text);
  return *this;
}
Option& Option::show_default() {
  option_->capture_default_str();
  return *this;
}
Option& Option::required() {
  option_->required();
  option_->default_str("");  // a required option has no default
  return *this;
}
Option& Option::values(int count) {
  option_->expected(count);
  return *this;
}
Option& Option::repeatable() {
  option_->allow_extra_args(false);
  return *this;
}

Option& Option::one_of(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}
Option& Option::one_of_any_case(const std::vector<std::string>& words) {
  option_->transform(CLI::IsMember(words, CLI::ignore_case).description(""));
  return *this;
}
Option& Option::rewrite(const std::function<std::string(std::string&)>& wrong) {
  option_->transform(CLI::Validator(wrong, ""));
  return *this;
}
template <class Number>
Option& Option::at_least(Number least) {
  constexpr Number kMost = std::numeric_limits<Number>::max();
  option_->check(number_within(least, kMost, fmt::format("{} or more", least)));
  return *this;
}
template Option& Option::at_least(int);
template Option& Option::at_least(std::int64_t);
template Option& Option::at_least(std::uint64_t);
template Option& Option::at_least(double);

template <class Number>
Option& Option::within(Number least, Number most) {
  option_->check(number_within(least, most, fmt::format("{} to {}", least, most)));
  return *this;
}
template Option& Option::within(int, int);
template Option& Option::within(unsigned, unsigned);
template Option& Option::within(double, double);

Option Command::flag(const std::string& name, bool& value, const std::string& what) {
  return Option(app_->add_flag(name, value, what));
}

template <class T>
Option Command::option(const std::string& name, T& value, const std::string& what) {
  return Option(app_->add_option(name, value, what));
}
template Option Command::option(const std::string&, std::string&, const std::string&);
template Option Command::option(const std::string&, std::vector<std::string>&, const std::string&);
template Option Command::option(const std::string&, int&, const std::string&);
template Option Command::option(const std::string&, double&, const std::string&);
template Option Command::option(const std::string&, std::optional<std::string>&,
                                const std::string&);
template Option Command::option(const std::string&, std::optional<int>&, const std::string&);
template Option Command::option(const std::string&, std::optional<std::int64_t>&,
                                const std::string&);
template Option Command::option(const std::string&, std::optional<std::uint64_t>&,
                                const std::string&);
template Option Command::option(const std::string&, std::optional<double>&, const std::string&);

Option Command::whole_number(const std::string& name, const std::function<void(unsigned)>& take,
                             const std::string& what) {
  return Option(app_->add_option_function<unsigned>(name, take, what));
}

Option Command::words(const std::string& name, const std::vector<std::string>& words,
                      const std::function<void(std::size_t)>& take, const std::string& what) {
  const std::string known = fmt::format("{}", fmt::join(words, "|"));
  const auto choose = [words, take, name, known](const std::string& word) {
    const auto found = std::find(words.begin(), words.end(), word);
    if (found == words.end()) {
      throw CLI::ValidationError(name, fmt::format("'{}' is unknown; use one of {}", word, known));
    }
    take(static_cast<std::size_t>(found - words.begin()));
  };
  return Option(app_->add_option_function<std::string>(name, choose, what)
                    ->type_name(known)
                    ->default_str(words.front()));
}

Option Command::known(const std::string& name) { return Option(app_->get_option(name)); }

void Command::footer(const std::string& text) { app_->footer(text); }

std::vector<std::string> Command::given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option :
       app_->get_options([](const CLI::Option* each) { return each->count() != 0; })) {
    names.push_back(option->get_name());
  }
  return names;
}

void Command::runs(std::function<int()> run) {
  app_->callback([chosen = chosen_, run = std::move(run)] { *chosen = run; });
}

Parser::Parser()
    : app_(std::make_unique<CLI::App>(
          "Measures what 16-bit floating point does to a training run: values flushed to zero, "
          "subnormals, overflow, and the loss scale to use.",
          "halfscope")) {
  app_->set_version_flag("--version", std::string(kVersion));
  app_->require_subcommand(1);
  app_->footer(
      "Start with:  halfscope recommend RUN      (RUN: a run log folder, what the training "
      "printed, "
      "TensorBoard or W&B files, .safetensors, .npy, .npz)\n\n"
      "In the Python package:\n"
      "  run                         Record a training script without a change of its code\n"
      "  watch                       Show a run while it trains");
}
Parser::~Parser() = default;

Command Parser::add(const std::string& name, const std::string& what) {
  return Command(app_->add_subcommand(name, what), &chosen_);
}

int Parser::run(int argc, char** argv) {
  std::vector<char*> words(argv, argv + argc);
  std::string help = "--help";
  if (argc > 1 && argv[1] == std::string_view("help")) {  // "help" or "help recommend"
    words.erase(words.begin() + 1);
    words.push_back(help.data());
  }
  try {
    app_->parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app_->exit(error);  // --help or --version
    return refuse(*app_, error, argc, argv);
  }
  return chosen_();
}

}  // namespace halfscope::cli::options
