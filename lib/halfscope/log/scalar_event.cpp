// SPDX-License-Identifier: Apache-2.0
// Conversion between a step's scalars and TensorBoard values.
#include <array>
#include <cmath>

#include "halfscope/log/error.hpp"
#include "halfscope/log/record_event.hpp"
#include "halfscope/log/tensor_value.hpp"

namespace halfscope::log {
namespace {

/// A scalar with its own field in StepScalars.
struct ScalarTag {
  std::string_view tag;
  std::optional<double> StepScalars::*field;
};
constexpr std::array kScalars = {
    ScalarTag{"loss", &StepScalars::loss},
    ScalarTag{"learning_rate", &StepScalars::learning_rate},
    ScalarTag{"loss_scale", &StepScalars::loss_scale},
    ScalarTag{"max_abs/weight_grad", &StepScalars::max_abs_weight_grad},
    ScalarTag{"max_abs/activation_grad", &StepScalars::max_abs_activation_grad},
};
constexpr std::string_view kFoundInf = "found_inf";

void require_tag(const std::string& tag, std::string_view where) {
  require_name(tag, "scalar", where);
  bool taken = tag == kFoundInf;
  for (const ScalarTag& row : kScalars) taken = taken || tag == row.tag;
  for (const std::string_view prefix : {kBinades, kStatistics, kExact}) {
    taken = taken || tag.starts_with(prefix);
  }
  if (taken) {
    throw BadInput(std::string(where) + ": scalar '" + printable(tag) +
                   "' has a tag that means something else in a run log (docs/run-log.md); "
                   "give it another name");
  }
}

/// Adds a scalar as binary32, which every tool reads, and as binary64 if that is not exact.
void add_scalar(proto::Summary& summary, const std::string& tag, double value) {
  proto::Summary::Value& rounded = *summary.add_value();
  rounded.set_tag(tag);
  const auto narrow = static_cast<float>(value);
  rounded.set_simple_value(narrow);
  if (static_cast<double>(narrow) == value || std::isnan(value)) return;
  proto::Summary::Value& exact = *summary.add_value();
  exact.set_tag(std::string(kExact) + tag);
  exact.mutable_tensor()->set_dtype(proto::DT_DOUBLE);
  exact.mutable_tensor()->mutable_tensor_shape();
  exact.mutable_tensor()->add_double_val(value);
}

}  // namespace

proto::Summary scalar_values(const StepScalars& scalars, std::string_view where) {
  proto::Summary summary;
  for (const ScalarTag& row : kScalars) {
    if (scalars.*row.field) add_scalar(summary, std::string(row.tag), *(scalars.*row.field));
  }
  if (scalars.found_inf) add_scalar(summary, std::string(kFoundInf), *scalars.found_inf ? 1 : 0);
  for (const auto& [tag, value] : scalars.more) {
    require_tag(tag, where);
    add_scalar(summary, tag, value);
  }
  return summary;
}

void for_each_scalar(const proto::Summary& summary,
                     const std::function<void(const std::string& tag, double value)>& visit) {
  for (const proto::Summary::Value& value : summary.value()) {
    std::optional<double> number;
    if (value.has_simple_value()) number = value.simple_value();
    if (value.has_tensor()) number = number_of(value.tensor());
    if (!number) continue;
    const std::string& tag = value.tag();
    visit(tag.starts_with(kExact) ? tag.substr(kExact.size()) : tag, *number);
  }
}

void set_scalar(StepScalars& scalars, const std::string& tag, double value) {
  if (tag == kFoundInf) {
    scalars.found_inf = value != 0;
    return;
  }
  for (const ScalarTag& row : kScalars) {
    if (tag == row.tag) {
      scalars.*row.field = value;
      return;
    }
  }
  scalars.more[tag] = value;
}

}  // namespace halfscope::log
