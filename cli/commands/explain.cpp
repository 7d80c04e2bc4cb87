// SPDX-License-Identifier: Apache-2.0
// `halfscope explain`: one number, one tensor at one step, or one Tensor Core sum, taken apart.
#include "reports/answer/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/options/common.hpp"
#include "cli/options/output.hpp"
#include "cli/terminal/text_table.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/text.hpp"
#include "reports/markdown/markdown.hpp"
#include "reports/page/page.hpp"

namespace halfscope::cli::commands {
namespace {

namespace text = reports::answer;
using analyzers::underflow::TensorFindings;
using log::printable;
using options::BadUsage;
using Sections = std::vector<text::Section>;

struct ExplainOptions : options::LogOptions {
  std::vector<std::string> what;
  std::string scale, out;
  std::function<Sections(const std::vector<std::string>&)> explain_sum;
};

/// Returns log2 of --scale; empty if it is not given.
std::optional<int> scale_of(const ExplainOptions& options) {
  if (options.scale.empty()) return std::nullopt;
  if (const auto log2 = exact_log2(options::parse_scale("--scale", options.scale))) return log2;
  throw BadUsage(fmt::format("--scale: found '{}', expected a power of two, such as 1024 or 2^10",
                             printable(options.scale)));
}

/// Explains a number or an encoding; returns nothing for other texts.
Sections explain_number(const ExplainOptions& options) {
  const std::string& what = options.what.front();
  const int log2_scale = scale_of(options).value_or(0);
  const std::string_view digits =
      std::string_view(what).substr(std::min<std::size_t>(2, what.size()));
  if (what.starts_with("0x") && !digits.empty() &&
      digits.find_first_not_of("0123456789abcdefABCDEF") == digits.npos) {
    const auto* const found = std::ranges::find_if(kFormats, [&](const NamedFormat& f) {
      return options.format.empty()
                 ? static_cast<std::size_t>(f.format.width + 3) / 4 == digits.size()
                 : f.name == options.format;
    });
    const std::uint64_t bits = std::strtoull(what.c_str(), nullptr, 16);
    if (found != kFormats.end() && digits.size() <= 16 && bits >> (found->format.width - 1) <= 1) {
      return {text::number_section(what, *found, bits, log2_scale)};
    }
    throw BadUsage(fmt::format(
        "found '{0}', expected an encoding of {1}; {0}p0 is a number", printable(what),
        options.format.empty() ? "1, 2, 4, 5, 8 or 16 hexadecimal digits" : options.format));
  }
  char* end = nullptr;
  errno = 0;
  const double value = std::strtod(what.c_str(), &end);
  const bool lost = errno == ERANGE && (value == 0 || std::isinf(value));
  if (what.empty() || *end != '\0' || lost) return {};
  return {text::number_section(what, *find_format("binary64"),
                               halfscope::detail::bit_cast<std::uint64_t>(value), log2_scale)};
}

/// Returns the tensor of that name. Throws BadUsage.
const TensorFindings& tensor_of(const ExplainOptions& options, const analyzers::Study& run) {
  std::vector<std::string> names;
  for (const TensorFindings& tensor : run.analysis.tensors()) {
    if (tensor.name == options.tensor) return tensor;
    names.push_back(printable(tensor.name));
  }
  std::ranges::stable_sort(names, {}, [&](const std::string& name) {
    return std::min(text::edit_distance(options.tensor, name),
                    text::edit_distance(options.tensor, name.substr(name.find('/') + 1)));
  });
  names.resize(std::min<std::size_t>(names.size(), 3));
  throw BadUsage(fmt::format("--tensor: found '{}', expected a tensor of the log; the nearest: {}",
                             printable(options.tensor), fmt::join(names, ", ")));
}

/// Returns the step of --step. Throws BadUsage if the tensor was not recorded at it.
std::int64_t step_of(const ExplainOptions& options, const TensorFindings& tensor) {
  const std::int64_t step = options::selection_of(options).first_step;
  if (options.steps.find(':') == std::string::npos && tensor.per_step.contains(step)) return step;
  std::vector<std::int64_t> steps;
  for (const auto& each : tensor.per_step) steps.push_back(each.step);
  std::ranges::stable_sort(steps, {}, [&](std::int64_t each) {
    return std::abs(static_cast<double>(each) - static_cast<double>(step));
  });
  steps.resize(std::min<std::size_t>(steps.size(), 3));
  throw BadUsage(
      fmt::format("--step: found '{}', expected one step that '{}' was recorded at; "
                  "the nearest of {}: {}",
                  printable(options.steps), printable(tensor.name), tensor.per_step.size(),
                  fmt::join(steps, ", ")));
}

/// Returns the pattern that matches this name alone.
std::string glob_of(const std::string& name) {
  std::string glob;
  for (const char c : name) {
    glob += std::string("*?[\\").find(c) == std::string::npos ? "" : "\\";
    glob += c;
  }
  return glob;
}

Sections explain_tensor(ExplainOptions options) {
  const std::optional<int> asked = scale_of(options);
  options.logs = {options.what.front()};
  options::LogOptions all = options;
  all.passes = analyzers::recommend_passes();
  all.tensor = all.steps = "";
  const analyzers::Study run =
      analyzers::recommendation(options::run_analysis(all), options::selection_of(all), {});
  const TensorFindings& tensor = tensor_of(options, run);
  const std::int64_t step = step_of(options, tensor);
  options.tensor = glob_of(tensor.name);
  options.format = run.analysis.target.name;
  const auto selection = options::selection_of(options);
  const int advised = tensor.loss_scaled ? run.advice.static_log2.value_or(0) : 0;
  return {text::tensor_section(run, options::run_analysis(options),
                               analyzers::largest_values(options.logs.front(), selection, 10), step,
                               asked.value_or(advised))};
}

Sections explain(const ExplainOptions& options) {
  const std::string& what = options.what.front();
  if (what == "mma") return options.explain_sum({options.what.begin() + 1, options.what.end()});
  if (options.what.size() == 1) {
    Sections number = explain_number(options);
    if (!number.empty()) return number;
    if (std::filesystem::exists(what)) return explain_tensor(options);
  }
  throw BadUsage(
      fmt::format("found '{}', expected a number such as 1e-8, an encoding such as "
                  "0x3C00, a run's file or folder, or mma A B C",
                  printable(fmt::format("{}", fmt::join(options.what, " ")))));
}

int run(const ExplainOptions& options) {
  options::LogOptions inputs;
  inputs.logs = options.what;
  options::require_own_files({options.out}, inputs);
  const bool page =
      !options.out.empty() && options::require_ending(options.out, {".html", ".md"}) == 0;
  if (page) reports::page::require_charts();  // fails before the log is read
  const Sections sections = explain(options);
  const std::string title = fmt::format("{}", fmt::join(options.what, " "));
  if (options.out.empty()) {
    fmt::print("{}", terminal::sections_text(sections));
  } else {
    options::write_output(options.out, page
                                           ? reports::page::sections_page(sections, title)
                                           : reports::markdown::sections_markdown(sections, title));
  }
  return options::kFine;
}

}  // namespace

void add_explain(options::Parser& parser) {
  options::Command command = parser.add(
      "explain", "Take one number apart, one tensor at one step, or one sum of a Tensor Core");
  const auto options = std::make_shared<ExplainOptions>();
  command
      .option("WHAT", options->what,
              "a number (1e-8, 0x1p-20) or an encoding (0x3C00); a run, or any log that analyze "
              "reads; or mma A B C, as on a line of halfscope mma")
      .required();
  command
      .option("--scale", options->scale,
              "also at this power of two; default for a run: the recommended scale")
      .type("S");
  command.option("--out", options->out, "write a page (.html) or Markdown (.md)").type("FILE");
  options::add_steps_and_tensors(command, *options);
  command.known("--tensor").type("NAME").help("run: the tensor, by its whole name");
  command.known("--step").type("N").help("run: the step");
  options::add_format(command, *options, options::FormatDefault::of_run);
  command.known("--format")
      .help("the format of an encoding, or that a run's values are rounded to");
  options::add_reading(command, *options);
  options->explain_sum = add_sum_options(command);
  command.footer(
      "Example:  halfscope explain 1e-8 --scale 1024\n"
      "          halfscope explain runs/mnist --tensor weight_grad/fc.weight --step 100\n"
      "          halfscope explain mma 6800,E800,3C00 6800,6800,1400 00000000 --arch hopper");
  command.runs([options] { return run(*options); });
}

void add_package_commands(options::Parser& parser) {
  const auto add = [&](const std::string& name, const std::string& what) {
    options::Command command = parser.add(name, what + " (in the Python package)");
    command.accept_anything();
    command.runs([name]() -> int {
      throw reports::page::MissingPart(fmt::format(
          "{0}: is not in this program but in the Python package; install it with pip install "
          "halfscope, then use halfscope {0} of that environment",
          name));
    });
  };
  add("run", "Record a training script without a change of its code");
  add("watch", "Show a run while it trains");
}

}  // namespace halfscope::cli::commands
