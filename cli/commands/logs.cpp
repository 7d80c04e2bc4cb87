// SPDX-License-Identifier: Apache-2.0
// `halfscope logs`: lists the readable log formats.
#include <fmt/format.h>

#include <memory>

#include "analyzers/readers/common/kind_names.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/exit.hpp"

namespace halfscope::cli::commands {

void add_logs(options::Parser& parser) {
  options::Command command = parser.add("logs", "List the kinds of logs that can be read");
  const auto kinds = std::make_shared<bool>(false);
  command.flag("--kinds", *kinds, "a line for each kind; docs/logs.md describes them").required();
  command.footer("Example:  halfscope logs --kinds");
  command.runs([kinds] {
    for (const std::string_view name : analyzers::readers::common::kKindNames) {
      fmt::print("{}\n", name);
    }
    return options::kFine;
  });
}

}  // namespace halfscope::cli::commands
