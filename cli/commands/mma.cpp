// SPDX-License-Identifier: Apache-2.0
// `halfscope mma`: dot products as a Tensor Core computes them, one per line.
#include <unistd.h>

#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/emulate/dot_options.hpp"

namespace halfscope::cli::commands {

void add_mma(options::Parser& parser) {
  options::Command command =
      parser.add("mma", "Compute a Tensor Core's dot product on each line, bit for bit");
  const auto options = std::make_shared<emulate::DotOptions>();
  emulate::add_dot_options(command, options);
  command.known("--arch").required();
  command.known("--accumulate").required();
  command.footer(
      "Reads lines from stdin: the values of a in hex, separated by commas, those of b, and c; "
      "writes\n"
      "the result of each line in hex. Digits: fp16, bf16 4; e4m3, e5m2, e3m2, e2m3 2; e2m1 1; c "
      "and\n"
      "results 8 (fp32) or 4. The scales of a and those of b follow c, 2 digits each: one per 32\n"
      "elements (mxf8f6f4, mxf4) or per 16 (mxf4nvf4).\n"
      "Example:  echo 6800,E800,3C00 6800,6800,1400 00000000 |\n"
      "          halfscope mma --arch hopper --accumulate fp32\n"
      "          echo 2,4 4,5 00000000 80 7F |\n"
      "          halfscope mma --arch blackwell --accumulate fp32 --inputs mxf4");
  command.runs([options] {
    emulate::answer_dots(emulate::dot_product_of(*options), STDIN_FILENO, STDOUT_FILENO);
    return options::kFine;
  });
}

}  // namespace halfscope::cli::commands
