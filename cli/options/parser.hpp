// SPDX-License-Identifier: Apache-2.0
// The command line: commands, options and error messages. Uses CLI11, which only parser.cpp
// includes because it is slow to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
class Option;
}  // namespace CLI

namespace halfscope::cli::options {

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
