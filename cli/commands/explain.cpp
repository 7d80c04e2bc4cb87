// SPDX-License-Identifier: Apache-2.0
// `halfscope explain`: one number, one tensor at one step, or one Tensor Core sum, taken apart.
#include "reports/answer/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "analyzers/one_tensor.hpp"
#include "analyzers/study.hpp"
#include "cli/commands/commands.hpp"
#include "cli/emulate/dot_options.hpp"
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
using analyzers::underflow::StepList;
using analyzers::underflow::TensorFindings;
using log::printable;
using options::BadUsage;
using Sections = std::vector<text::Section>;

struct ExplainOptions : options::LogOptions {
  std::vector<std::string> what;
  std::string scale, out;
  std::shared_ptr<emulate::DotOptions> dot = std::make_shared<emulate::DotOptions>();
};

/// Returns log2 of --scale; empty if it is not given.
std::optional<int> scale_of(const ExplainOptions& options) {
  if (options.scale.empty()) return std::nullopt;
  if (const auto log2 = exact_log2(options::parse_scale("--scale", options.scale))) return log2;
  throw BadUsage(fmt::format("--scale: found '{}', expected a power of two, such as 1024 or 2^10",
                             printable(options.scale)));
}

/// Throws BadUsage if an option is given that `what` does not have.
void require_options_for(std::string_view what, const ExplainOptions& options,
                         std::initializer_list<std::string_view> has) {
  struct Row {
    bool given;
    std::string_view option, of;
  };
  for (const Row& row : {Row{!options.scale.empty(), "--scale", "a number or a run"},
                         Row{!options.format.empty(), "--format", "a number or a run"},
                         Row{!options.tensor.empty(), "--tensor", "a run"},
                         Row{!options.steps.empty(), "--step", "a run"},
                         Row{!options.dot->architecture.name.empty(), "--arch", "mma"}}) {
    if (!row.given || std::ranges::find(has, row.option) != has.end()) continue;
    throw BadUsage(fmt::format("{0} is for {1}; found {2}; remove {0}", row.option, row.of, what));
  }
}

Sections explain_sum(const ExplainOptions& options) {
  require_options_for("mma", options, {"--arch"});
  const emulate::DotOptions& dot = *options.dot;
  if (dot.architecture.name.empty()) {
    throw BadUsage(fmt::format(
        "explain mma needs --arch; use one of: {}",
        fmt::join(options::words_of(tensor_core::kArchitectures, &tensor_core::Architecture::name),
                  ", ")));
  }
  const emulate::DotProduct product = emulate::dot_product_of(dot);
  const std::size_t words = product.unit.block == 0 ? 4 : 6;
  if (options.what.size() != words) {
    throw BadUsage(fmt::format("mma: found {} operands, expected {}: A B C{}",
                               options.what.size() - 1, words - 1,
                               words == 4 ? "" : " and the scales of A and of B"));
  }
  const std::vector<std::string> operands(options.what.begin() + 1, options.what.end());
  const emulate::Dot values =
      emulate::dot_called(product, fmt::format("{}", fmt::join(operands, " ")));
  auto steps =
      trace(product.unit, product.accumulator, {product.a, values.a.data(), values.a_scales.data()},
            {product.b, values.b.data(), values.b_scales.data()}, static_cast<int>(values.a.size()),
            values.c);
  return text::sum_sections({dot.architecture.name, product.unit, product.accumulator, product.a,
                             product.b, values.a, values.b, std::move(steps)});
}

/// Returns the pattern that matches this name alone.
std::string glob_of(std::string_view name) {
  std::string glob;
  for (const char c : name) {
    const bool special = c == '*' || c == '?' || c == '[' || c == '\\';
    glob +=
        special ? fmt::format("[{}]", c == '\\' ? "\\\\" : std::string(1, c)) : std::string(1, c);
  }
  return glob;
}

/// Returns the tensor of that name, with or without its role. Throws BadUsage.
const TensorFindings& tensor_called(const analyzers::Study& run, const std::string& name) {
  std::vector<const TensorFindings*> found;
  std::vector<std::string> names;
  for (const TensorFindings& tensor : run.analysis.tensors()) {
    if (tensor.name == name) return tensor;
    if (analyzers::underflow::path_in(tensor.name) == name) found.push_back(&tensor);
    names.push_back(tensor.name);
  }
  if (found.size() == 1) return *found.front();
  constexpr std::size_t kNamed = 3;
  if (!found.empty()) {
    names.clear();
    for (const TensorFindings* tensor : found) names.push_back(tensor->name);
  }
  const auto edits = [&](const std::string& other) { return text::edit_distance(name, other); };
  std::ranges::stable_sort(names, {}, edits);
  throw BadUsage(
      fmt::format("--tensor: {}; {}: {}",
                  name.empty() ? "is missing" : fmt::format("found '{}'", printable(name)),
                  !found.empty() ? "give the role too"
                  : name.empty() ? "give one of the log's"
                                 : "no tensor of the log has that name; the nearest are",
                  text::plain(text::listed_code(names, kNamed))));
}

/// Returns the step of --step. Throws BadUsage if it is not one at which the tensor was recorded.
std::int64_t step_of(const ExplainOptions& options, const TensorFindings& tensor) {
  const analyzers::frames::Selection asked = options::selection_of(options);
  const bool one = !options.steps.empty() && asked.end_step == asked.first_step + 1;
  const StepList& steps = tensor.per_step;
  if (one && steps.contains(asked.first_step)) return asked.first_step;
  if (steps.empty()) {
    throw log::BadInput(
        fmt::format("{}: tensor '{}' has no histogram at any step; record "
                    "histograms or whole tensors",
                    printable(options.logs.front()), printable(tensor.name)));
  }
  std::vector<std::int64_t> nearest;
  for (const auto& step : steps) nearest.push_back(step.step);
  const auto distance = [&](std::int64_t step) {
    return one ? std::abs(static_cast<double>(step) - static_cast<double>(asked.first_step)) : 0.0;
  };
  std::ranges::stable_sort(nearest, {}, distance);
  nearest.resize(std::min<std::size_t>(nearest.size(), 3));
  throw BadUsage(fmt::format(
      "--step: {}; '{}' was recorded at {}, from {} to {}; give one, such as {}",
      options.steps.empty() ? "is missing" : fmt::format("found '{}'", printable(options.steps)),
      printable(tensor.name), text::plural(steps.size(), "step"), steps[0].step, steps.back().step,
      fmt::join(nearest, ", ")));
}

Sections explain_tensor(ExplainOptions options) {
  require_options_for("a run", options, {"--scale", "--format", "--tensor", "--step"});
  const std::optional<int> asked = scale_of(options);
  options.logs = {options.what.front()};
  options::LogOptions all = options;
  all.passes = analyzers::recommend_passes();
  all.tensor = all.steps = "";
  const analyzers::Study run =
      analyzers::recommendation(options::run_analysis(all), options::selection_of(all), {});
  const TensorFindings& tensor = tensor_called(run, options.tensor);
  const std::int64_t step = step_of(options, tensor);
  options.tensor = glob_of(tensor.name);
  constexpr std::size_t kLargest = 10;
  const analyzers::OneTensor one = analyzers::one_tensor(options.logs.front(), run.analysis.target,
                                                         options::selection_of(options), kLargest);
  const std::optional<int> advised =
      tensor.loss_scaled ? run.advice.static_log2 : std::optional<int>();
  return text::tensor_sections(run, one, step, asked ? asked : advised);
}

Sections explain(const ExplainOptions& options) {
  const std::string& what = options.what.front();
  if (what == "mma") return explain_sum(options);
  if (options.what.size() > 1) {
    throw BadUsage(fmt::format("found '{}' after '{}', expected one number, one run, or mma A B C",
                               printable(options.what[1]), printable(what)));
  }
  const NamedFormat* const format = options.format.empty() ? nullptr : find_format(options.format);
  std::optional<text::NumberAsked> number;
  try {
    number = text::number_called(what, format);
  } catch (const std::invalid_argument& e) {
    throw BadUsage(e.what());
  }
  if (number) {
    require_options_for("a number", options, {"--scale", "--format"});
    return text::number_sections(*number, scale_of(options).value_or(0));
  }
  if (std::filesystem::exists(what)) return explain_tensor(options);
  throw BadUsage(
      fmt::format("found '{}', which is no number and no file; give a number such as "
                  "1e-8, an encoding such as 0x3C00, a run, or mma A B C",
                  printable(what)));
}

int run(const ExplainOptions& options) {
  options::LogOptions inputs;
  inputs.logs = {options.what.front()};
  options::require_own_files({options.out}, inputs);
  const bool markdown =
      !options.out.empty() &&
      options::require_ending(options.out, {".html", ".htm", ".md", ".markdown"}) >= 2;
  if (!options.out.empty() && !markdown) reports::page::require_charts();
  const Sections sections = explain(options);
  if (options.out.empty()) {
    fmt::print("{}", terminal::sections_text(sections));
    return options::kFine;
  }
  const std::string title = fmt::format("{}", fmt::join(options.what, " "));
  options::write_output(options.out, markdown
                                         ? reports::markdown::sections_markdown(sections, title)
                                         : reports::page::sections_page(sections, title));
  fmt::print("{}\n", std::filesystem::absolute(options.out).string());
  return options::kFine;
}

}  // namespace

void add_explain(options::Parser& parser) {
  options::Command command = parser.add(
      "explain",
      "Take one number apart, one tensor of a run at one step, or one sum of a Tensor Core");
  const auto options = std::make_shared<ExplainOptions>();
  command
      .option("WHAT", options->what,
              "a number (1e-8, 0x1p-20, or an encoding such as 0x3C00); a run (any log that "
              "analyze reads); or mma A B C, operands as in halfscope mma")
      .required();
  command
      .option("--scale", options->scale,
              "number, run: also at this power of two (run: instead of the recommended scale)")
      .type("S");
  command.option("--out", options->out, "write a page (.html) or Markdown (.md)").type("FILE");
  options::add_steps_and_tensors(command, *options);
  command.known("--tensor").type("NAME").help("run: the tensor");
  command.known("--step").type("N").help("run: the step");
  options::add_format(command, *options, options::FormatDefault::of_run);
  command.known("--format")
      .help("number: the format of an encoding; run: the format that values are rounded to");
  options::add_reading(command, *options);
  emulate::add_dot_options(command, options->dot);
  command.footer(
      "Example:  halfscope explain 1e-8 --scale 1024\n"
      "          halfscope explain runs/mnist --tensor weight_grad/fc.weight --step 100\n"
      "          halfscope explain mma 6800,E800,3C00 6800,6800,1400 00000000 --arch hopper");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
