// SPDX-License-Identifier: Apache-2.0
// The command line: commands, their options, and how what is wrong is said. By CLI11, which
// parser.cpp alone includes: it takes the compiler several seconds.
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

/// An option of a command, as it is being described.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option& type(const std::string& name);  ///< what the help calls its value
  Option& help(const std::string& text);  ///< in place of what it has
  Option& show_default();
  Option& required();
  Option& values(int count);  ///< so many, no fewer
  Option& repeatable();       ///< one value each time

  Option& one_of(const std::vector<std::string>& words);
  Option& one_of_any_case(const std::vector<std::string>& words);
  /// `wrong` says what is wrong with the text, or nothing; it may rewrite the text.
  Option& rewrite(const std::function<std::string(std::string&)>& wrong);
  /// Numbers of the option's own type: at least, finite; or within.
  template <class Number>
  Option& at_least(Number least);
  template <class Number>
  Option& within(Number least, Number most);

 private:
  CLI::Option* option_;
};

/// A subcommand. Values must outlive the parser.
class Command {
 public:
  explicit Command(CLI::App* app, std::function<int()>* chosen) : app_(app), chosen_(chosen) {}

  Option flag(const std::string& name, bool& value, const std::string& what);
  /// T: a string, a number, an optional of these, a list of strings. Without dashes the name is
  /// that of a place.
  template <class T>
  Option option(const std::string& name, T& value, const std::string& what);
  Option whole_number(const std::string& name, const std::function<void(unsigned)>& take,
                      const std::string& what);
  /// One of some words, of which the first is the default; `take` gets its index.
  Option words(const std::string& name, const std::vector<std::string>& words,
               const std::function<void(std::size_t)>& take, const std::string& what);
  /// One that is there already.
  Option known(const std::string& name);

  void footer(const std::string& text);
  /// What it does; returns the exit code.
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
  /// Runs the command that the words ask for; the exit code. What is wrong with them goes to
  /// stderr, in a line.
  int run(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
  std::function<int()> chosen_;
};

}  // namespace halfscope::cli::options
