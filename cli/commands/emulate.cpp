// SPDX-License-Identifier: Apache-2.0
// `halfscope emulate`: one operation on lines of operands, with TestFloat's names and format.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli/emulate/lines.hpp"
#include "cli/options/common.hpp"
#include "halfscope/number/mode_names.hpp"
#include "halfscope/number/operation_table.hpp"
#include "halfscope/table/boundary.hpp"

namespace halfscope::cli::commands {

using options::BadUsage;
using options::Command;

namespace {

struct EmulateOptions {
  std::string operation;
  bool list = false;
  bool exact = false;
  Modes modes;
  std::optional<Subnormals> rule;  ///< --subnormals
};

/// The values of an option, with the words for them in the help.
template <typename T>
using Words = std::vector<std::pair<std::string, T>>;

const Words<Rounding> kRoundings(kRoundingNames.begin(), kRoundingNames.end());
const Words<Tininess> kTininess = {{"after", Tininess::after_rounding},
                                   {"before", Tininess::before_rounding}};
const Words<NanPolicy> kNanPolicies(kNanNames.begin(), kNanNames.end());

/// Adds an option whose value is one of `words`; the first is the default.
template <typename T>
void add_choice(Command& command, const std::string& name, T& value, const Words<T>& words,
                const std::string& what) {
  std::vector<std::string> names;
  for (const auto& row : words) names.push_back(row.first);
  command.words(
      name, names, [&value, &words](std::size_t i) { value = words[i].second; }, what);
}

int list() {
  for (const Operation& operation : operations()) fmt::print("{}\n", operation.name);
  return options::kFine;
}

const Operation& named(const std::string& name) {
  constexpr std::string_view kHint = "halfscope emulate --list shows all names";
  if (name.empty())
    throw BadUsage(fmt::format("emulate needs an OPERATION such as f16_add; {}", kHint));
  if (const Operation* operation = find_operation(name)) return *operation;
  std::string near;
  for (const std::string_view other : similar_operations(name, 3)) {
    near += fmt::format("{}{}", near.empty() ? "" : ", ", other);
  }
  const char* why = name.starts_with("f64_") ? " (f64 has conversions only)" : "";
  throw BadUsage(
      fmt::format("unknown operation '{}'{}; did you mean {}? {}", name, why, near, kHint));
}

int run(const EmulateOptions& options) {
  if (options.list) return list();
  if (options.modes.flush_to_zero &&
      options.rule.value_or(Subnormals::flush) != Subnormals::flush) {
    throw BadUsage(fmt::format(
        "--ftz means --subnormals flush, but found --subnormals {} too; give one of them",
        name_of(*options.rule)));
  }
  const Modes modes = options.rule ? with_subnormals(options.modes, *options.rule) : options.modes;
  emulate::answer_lines(named(options.operation), modes, options.exact, STDIN_FILENO,
                        STDOUT_FILENO);
  return options::kFine;
}

void add_modes(Command& command, EmulateOptions& options) {
  add_choice(command, "--rounding", options.modes.rounding, kRoundings,
             "direction, in TestFloat's words: nearest with ties to even or away from zero, toward "
             "zero, downward, upward, to odd");
  add_choice(command, "--tininess", options.modes.tininess, kTininess,
             "when a result counts as tiny: after or before rounding");
  command.flag("--exact", options.exact,
               "roundToInt and conversions to integers also raise inexact");
  add_choice(command, "--nan", options.modes.nan, kNanPolicies,
             "the NaN that operations return, and the integer for values that no integer can hold");
  command.flag("--daz", options.modes.denormals_are_zero, "subnormal operands count as zero");
  command.flag("--ftz", options.modes.flush_to_zero,
               "tiny results become zero: --subnormals flush");
  command.words(
      "--subnormals", options::words_of(kSubnormals, &NamedSubnormals::name),
      [&options](std::size_t i) { options.rule = kSubnormals[i].rule; },
      "keep subnormal results, or flush to zero results that are tiny by --tininess, tiny before "
      "rounding, or subnormal after rounding");
  command.flag("--saturate", options.modes.saturate,
               "return the largest finite number instead of infinity");
}

}  // namespace

void add_emulate(options::Parser& parser) {
  Command command = parser.add(
      "emulate", "Compute one operation on each line of operands, with its flags, as TestFloat");
  const auto options = std::make_shared<EmulateOptions>();
  command.option("OPERATION", options->operation,
                 "TestFloat's name: f16_add, f16_mulAdd, f32_to_f16, f16_to_i32, ...");
  command.flag("--list", options->list, "print the names of all operations");
  add_modes(command, *options);
  command.footer(
      "Reads operands in hex from stdin, one line a case; writes operands, result and flags\n"
      "(01 inexact, 02 underflow, 04 overflow, 08 divide by zero, 10 invalid).\n"
      "Example:  echo 39C0 C3FE 07FE | halfscope emulate f16_mulAdd");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
