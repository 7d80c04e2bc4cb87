// SPDX-License-Identifier: Apache-2.0
// The command line: commands, options, error messages and exit codes. Uses CLI11, which only
// parser.cpp includes because it is slow to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
class Option;
}  // namespace CLI

namespace halfscope::cli::options {

/// Exit codes of all subcommands.
enum Exit : int {
  kFine = 0,
  kBadInput = 1,
  kBadUsage = 2,
  kNotHere = 3,         ///< this build or machine lacks the requested backend or part
  kConditionHolds = 4,  ///< a --fail-if condition is true or undecided
  kInterrupted = 130    ///< ended by Ctrl-C: 128 + SIGINT, as shells report it
};

/// An invalid command line. The exit code is kBadUsage.
class BadUsage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns word(row) for each row, the words that an option may have.
std::vector<std::string> words_of(const auto& rows, const auto& word) {
  std::vector<std::string> words;
  for (const auto& row : rows) words.emplace_back(std::invoke(word, row));
  return words;
}

/// Builder for an option of a command.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& type(const std::string& name);  ///< name of the value in the help
  Option& help(const std::string& text);  ///< replaces the help text
  Option& show_default();
  Option& required();
  Option& values(int count);  ///< requires exactly `count` values
  Option& repeatable();       ///< may be repeated, with one value each time

  Option& one_of(const std::vector<std::string>& words);
  Option& one_of_any_case(const std::vector<std::string>& words);
  /// Calls `wrong` with the value's text, which it may change. It returns an error message or "".
  Option& rewrite(const std::function<std::string(std::string&)>& wrong);
  /// Require a finite number, of the type of the option's value, in the range.
  template <class Number>
  Option& at_least(Number least);
  template <class Number>
  Option& within(Number least, Number most);

 private:
  CLI::Option* option_;
};

/// Builder for a subcommand. The variables that options write to must outlive the parser.
class Command {
 public:
  explicit Command(CLI::App* app, std::function<int()>* chosen) : app_(app), chosen_(chosen) {}

  Option flag(const std::string& name, bool& value, const std::string& what);
  /// Adds an option. T is a string, a number, an optional of these, or a list of strings. A name
  /// without dashes is a positional argument.
  template <class T>
  Option option(const std::string& name, T& value, const std::string& what);
  Option whole_number(const std::string& name, const std::function<void(unsigned)>& take,
                      const std::string& what);
  /// Adds an option whose value is one of `words` (default: the first). `take` receives its index.
  Option words(const std::string& name, const std::vector<std::string>& words,
               const std::function<void(std::size_t)>& take, const std::string& what);
  /// Returns an option that was added before.
  Option known(const std::string& name);

  void footer(const std::string& text);
  /// Returns the names of the options that were given. Empty before the arguments are parsed.
  std::vector<std::string> given() const;
  /// Sets the function that runs the command and returns the exit code.
  void runs(std::function<int()> run);

 private:
  CLI::App* app_;
  std::function<int()>* chosen_;
};

class Parser {
 public:
  Parser();
  ~Parser();

  Command add(const std::string& name, const std::string& what);
  /// Parses the arguments and runs the command. Returns the exit code. An error in the arguments is
  /// written to stderr as one line.
  int run(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
  std::function<int()> chosen_;
};

}  // namespace halfscope::cli::options
