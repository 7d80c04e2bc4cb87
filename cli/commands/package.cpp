// SPDX-License-Identifier: Apache-2.0
// `halfscope run`, `halfscope watch`: the commands of the Python package, whose own `halfscope`
// runs them before it calls this program.
#include <fmt/format.h>

#include "cli/commands/commands.hpp"
#include "reports/page/page.hpp"

namespace halfscope::cli::commands {

void add_package_commands(options::Parser& parser) {
  const auto add = [&](const std::string& name, const std::string& what) {
    options::Command command = parser.add(name, what);
    command.accept_anything();
    command.runs([name]() -> int {
      throw reports::page::MissingPart(fmt::format(
          "{0}: is part of the Python package, not of this program; install it with pip install "
          "halfscope, then run halfscope {0} of that environment",
          name));
    });
  };
  add("run", "Record a training script without a change of its code (Python package)");
  add("watch", "Show a run while it trains (Python package)");
}

}  // namespace halfscope::cli::commands
