// SPDX-License-Identifier: Apache-2.0
// `halfscope info`: versions, and the features of this machine and this build.
// `halfscope logs`: lists the readable log formats.
#include <fmt/format.h>
#include <tbb/info.h>

#include <memory>
#include <string>
#include <vector>

#include "analyzers/readers/common/kind_names.hpp"
#include "cli/commands/commands.hpp"
#include "halfscope/device/vector_target.hpp"
#include "halfscope/table/count/count.hpp"
#include "halfscope/version.hpp"
#include "reports/page/page.hpp"
#include "sim/backend/backend.hpp"

namespace halfscope::cli::commands {

namespace {

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Returns the instruction sets: "AVX2 of AVX3, AVX2, SSE4 (limited by HALFSCOPE_TARGET)".
std::string vector_line() {
  const std::vector<std::string> all = vector_targets();
  const std::string used = vector_target();
  return fmt::format("{} of {} ({} {})", used, joined(all),
                     used == all.front() ? "to use less: set" : "limited by", kTargetVariable);
}

std::string format_names() {
  std::vector<std::string> names;
  for (const NamedFormat& row : kFormats) names.emplace_back(row.name);
  return joined(names);
}

std::string dtype_names() {
  std::vector<std::string> names;
  for (const Dtype dtype : kAllDtypes) names.emplace_back(name_of(dtype));
  return joined(names);
}

int print_info() {
  fmt::print("halfscope      {}\n", kVersion);
  fmt::print("compiler       {}\n", __VERSION__);
  fmt::print("CPU vectors    {}\n", vector_line());
  fmt::print("threads        {}\n", tbb::info::default_concurrency());
  fmt::print("formats        {}\n", format_names());
  fmt::print("reads dtypes   {}\n", dtype_names());
  fmt::print("charts         {}\n",
             reports::page::has_charts() ? "yes" : "no: built without vl-convert-python");
  const std::string why = sim::backend::cudnn_missing_message();
  fmt::print("cudnn backend  {}\n",
             why.empty()
                 ? sim::backend::make_cudnn_backend(sim::backend::Accumulation::fp32)->describe()
                 : "no: " + why);
  return options::kFine;
}

}  // namespace

void add_info(options::Parser& parser) {
  options::Command command = parser.add("info", "Versions, CPU features, CUDA, cuDNN, device");
  command.footer("Example:  halfscope info");
  command.runs(print_info);
}

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
