// SPDX-License-Identifier: Apache-2.0
// `halfscope explain`: one number, one tensor at one step, or one Tensor Core sum, taken apart.
#include "reports/answer/explain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <regex>

#include "cli/commands/commands.hpp"
#include "cli/options/common.hpp"
#include "cli/options/notes.hpp"
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
  std::function<std::vector<std::string>()> given;  ///< names of the options that were given
  std::function<Sections(const std::vector<std::string>&)> explain_sum;
};

/// Throws BadUsage if an option is given that this kind of WHAT does not have.
void require_options_of(std::string_view kind, const ExplainOptions& options) {
  for (const std::string& option : options.given()) {
    const auto among = [&](std::initializer_list<std::string_view> names) {
      return std::ranges::find(names, option) != names.end();
    };
    const std::string_view kinds =
        among({"WHAT", "--out"})         ? kind
        : among({"--scale", "--format"}) ? "a number or a run"
        : among({"--arch", "--accumulate", "--inputs", "--a", "--b", "--scales"}) ? "mma A B C"
                                                                                  : "a run";
    if (kinds.find(kind) != kinds.npos) continue;
    throw BadUsage(fmt::format("{0} is for {1}; found {2}; remove {0}", option, kinds, kind));
  }
}

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
      what.starts_with("0x") ? std::string_view(what).substr(2) : std::string_view();
  const char* const digits_end = digits.data() + digits.size();
  std::uint64_t bits = 0;
  const auto [hex_end, error] = std::from_chars(digits.data(), digits_end, bits, 16);
  if (!digits.empty() && hex_end == digits_end) {
    const auto* const found = std::ranges::find_if(kFormats, [&](const NamedFormat& f) {
      return options.format.empty()
                 ? static_cast<std::size_t>(f.format.width + 3) / 4 == digits.size()
                 : f.name == options.format;
    });
    const bool read = found != kFormats.end() && error == std::errc();
    if (read && bits >> (found->format.width - 1) <= 1) {
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
  throw BadUsage(fmt::format("--tensor: found '{}', expected a tensor of the log; the nearest: {}",
                             printable(options.tensor),
                             fmt::join(text::nearest(names, options.tensor, 3), ", ")));
}

/// Throws BadUsage unless --step is one step that the tensor was recorded at.
void require_step(const ExplainOptions& options, const TensorFindings& tensor) {
  const std::int64_t step = options::selection_of(options).first_step;
  if (options.steps.find(':') == std::string::npos && tensor.per_step.contains(step)) return;
  const auto near = std::ranges::min_element(tensor.per_step, {}, [&](const auto& each) {
    return std::abs(static_cast<double>(each.step) - static_cast<double>(step));
  });
  throw BadUsage(fmt::format(
      "--step: found '{}', expected one step that '{}' was recorded at; "
      "the nearest of {} is {}",
      printable(options.steps), printable(tensor.name), tensor.per_step.size(), (*near).step));
}

Sections explain_tensor(ExplainOptions options) {
  const std::optional<int> asked = scale_of(options);
  options.logs = {options.what.front()};
  options::standard_input_once()(options.logs.front());
  options::LogOptions all = options;
  all.passes = analyzers::recommend_passes();
  all.tensor = all.steps = "";
  const analyzers::Study run =
      analyzers::recommendation(options::run_analysis(all), options::selection_of(all), {});
  const TensorFindings& tensor = tensor_of(options, run);
  require_step(options, tensor);
  options.tensor = std::regex_replace(tensor.name, std::regex(R"([*?[\\])"), R"(\$&)");
  options.format = run.analysis.target.name;
  analyzers::frames::Notes notes;
  const auto largest = analyzers::underflow::largest_values(
      options.logs.front(), options::selection_of(options), 10, notes);
  options::note_later(notes);
  const int advised = tensor.loss_scaled ? run.advice.static_log2.value_or(0) : 0;
  return {
      text::tensor_section(run, options::run_analysis(options), largest, asked.value_or(advised))};
}

Sections explain(const ExplainOptions& options) {
  if (!options.what.empty() && options.what.front() == "mma") {
    require_options_of("mma A B C", options);
    return options.explain_sum({options.what.begin() + 1, options.what.end()});
  }
  const std::string what = fmt::format("{}", fmt::join(options.what, " "));
  std::error_code unreadable;
  if (options.what.size() == 1 && options.tensor.empty()) {
    Sections number = explain_number(options);
    if (!number.empty()) require_options_of("a number", options);
    if (!number.empty()) return number;
  }
  if (options.what.size() == 1 &&
      (!options.tensor.empty() || what == "-" || std::filesystem::exists(what, unreadable))) {
    require_options_of("a run", options);
    return explain_tensor(options);
  }
  throw BadUsage(
      fmt::format("found '{}', expected a number such as 1e-8, an encoding such as 0x3C00, a run's "
                  "file or folder, or mma A B C",
                  printable(what)));
}

int run(const ExplainOptions& options) {
  options::LogOptions inputs;
  inputs.logs = options.what;
  options::require_own_files({options.out}, inputs);
  const bool page =
      !options.out.empty() && options::require_ending(options.out, {".html", ".md"}) == 0;
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
  command.option("WHAT", options->what,
                 "a number (1e-8, 0x1p-20; -inf after --) or an encoding (0x3C00); a run, or any "
                 "log that analyze reads; or mma A B C, as on a line of halfscope mma");
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
  options->given = [command] { return command.given(); };
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
