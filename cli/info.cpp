// SPDX-License-Identifier: Apache-2.0
// `halfscope info`: versions, and what this machine and this program have.
#include <fmt/format.h>
#include <hwy/highway.h>
#include <hwy/targets.h>
#include <tbb/info.h>

#include "cli/command.hpp"
#include "halfscope/table/count.hpp"
#include "halfscope/version.hpp"
#include "reports/page.hpp"
#include "sim/backend.hpp"

namespace halfscope::cli {
namespace {

std::string vector_targets() {
  std::string names;
  for (std::int64_t rest = hwy::SupportedTargets(); rest != 0; rest &= rest - 1) {
    names += (names.empty() ? "" : ", ") + std::string(hwy::TargetName(rest & -rest));
  }
  return names;
}

std::string format_names() {
  std::string names;
  for (const NamedFormat& row : kFormats)
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  return names;
}

std::string dtype_names() {
  std::string names;
  for (const Dtype dtype : kAllDtypes)
    names += (names.empty() ? "" : ", ") + std::string(name_of(dtype));
  return names;
}

int run() {
  fmt::print("halfscope      {}\n", kVersion);
  fmt::print("compiler       {}\n", __VERSION__);
  fmt::print("CPU vectors    {}\n", vector_targets());
  fmt::print("threads        {}\n", tbb::info::default_concurrency());
  fmt::print("formats        {}\n", format_names());
  fmt::print("reads dtypes   {}\n", dtype_names());
  fmt::print("charts         {}\n",
             reports::has_charts() ? "yes" : "no: built without vl-convert-python");
  const std::string why = sim::why_no_cudnn();
  fmt::print(
      "cudnn backend  {}\n",
      why.empty() ? sim::make_cudnn_backend(sim::Accumulation::fp32)->describe() : "no: " + why);
  return kFine;
}

}  // namespace

void add_info(Parser& parser) {
  Command command = parser.add("info", "Versions, CPU features, CUDA, cuDNN, device");
  command.footer("Example:  halfscope info");
  command.runs(run);
}

}  // namespace halfscope::cli
