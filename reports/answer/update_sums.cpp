// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/update_sums.hpp"

#include <algorithm>

namespace halfscope::reports::answer {

using analyzers::underflow::TensorFindings;

namespace {

double lost_share(const TensorFindings* tensor) {
  const UpdateCounts& counts = tensor->updates->table.counts;
  return counts.updates() == 0
             ? 0
             : static_cast<double>(counts.half.lost()) / static_cast<double>(counts.updates());
}

}  // namespace

UpdateSum sum_updates(const Tensors& tensors) {
  UpdateSum out;
  bool all_have_what_if = true;
  for (const TensorFindings* tensor : tensors) {
    if (!tensor->updates) continue;
    const analyzers::underflow::UpdateFindings& updates = *tensor->updates;
    ++out.weights;
    out.table += updates.table;
    out.undetermined += updates.undetermined;
    if (!updates.what_if) {
      all_have_what_if = false;
    } else if (out.what_if) {
      *out.what_if += *updates.what_if;
    } else {
      out.what_if = updates.what_if;
    }
  }
  if (!all_have_what_if) out.what_if.reset();
  return out;
}

UpdateSum all_updates(const analyzers::underflow::Analysis& analysis) {
  return sum_updates(all_tensors(analysis));
}

SumsByKept sums_by_kept(const Tensors& tensors, Format target) {
  Tensors narrow, others;
  for (const TensorFindings* tensor : tensors) {
    if (!tensor->updates) continue;
    const std::optional<Dtype>& kept = tensor->updates->kept_in;
    (kept && format_of(*kept) == target ? narrow : others).push_back(tensor);
  }
  return {sum_updates(narrow), sum_updates(others)};
}

bool loses_share(const UpdateSum& part, const SumsByKept& all, double share) {
  const auto lost = static_cast<double>(part.table.counts.half.lost());
  const std::uint64_t of = all.narrow.table.counts.updates() + all.others.table.counts.updates();
  return lost > 0 && lost >= share * static_cast<double>(of);
}

Tensors with_updates(const Tensors& tensors) {
  Tensors out;
  std::copy_if(tensors.begin(), tensors.end(), std::back_inserter(out),
               [](const TensorFindings* tensor) { return tensor->updates != nullptr; });
  std::stable_sort(out.begin(), out.end(),
                   [](const auto* a, const auto* b) { return lost_share(a) > lost_share(b); });
  return out;
}

}  // namespace halfscope::reports::answer
