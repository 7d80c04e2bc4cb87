// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/claims.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "analyzers/readers/common/roles.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/underflow/modules.hpp"
#include "analyzers/updates/optimizer_update.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::weights {

using frames::WholeStep;
using log::Role;

namespace {

/// Parts of a tensor whose change is seen apart.
constexpr std::size_t kParts = 16;
constexpr int kFraction = kBinary32.precision - 1;
constexpr std::string_view kFirst = "exp_avg", kMomentum = "momentum_buffer",
                           kSecond = "exp_avg_sq";
/// Kinds of optimizer state whose update rule is known. Other state is counted, but not judged.
constexpr std::string_view kJudged[] = {kFirst, kMomentum, kSecond, "max_exp_avg_sq"};

std::uint32_t bits_at(const TensorView& tensor, std::size_t i) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, tensor.data + 4 * i, sizeof bits);
  return bits;
}

/// Returns the number of bits that are 0 because the distinct magnitudes are numbers of the format.
/// They have no bits below their greatest common power of two, unless it is binary16's smallest
/// number, the grid of its subnormals.
int missing_bits(const std::vector<float>& values, const Format& format) {
  const auto highest = [](float v) { return std::ilogb(v); };
  int grid = kBinary32.emax;
  for (const float v : values) {
    const auto whole = static_cast<std::uint32_t>(std::ldexp(v, kFraction - highest(v)));
    grid = std::min(grid, highest(v) - kFraction + std::countr_zero(whole));
  }
  if (format == kBinary16 && grid == format.min_quantum_exponent()) grid = -kBinary32.emax;
  int missing = 0;
  for (const float v : values) {
    const int lowest = std::max(highest(v) - format.precision + 1, format.min_quantum_exponent());
    missing += std::max(0, lowest - std::max(grid, highest(v) - kFraction));
  }
  return missing;
}

/// Returns 4 bits for each sixteenth of a tensor. They differ, up to a chance of 1/16, if any value
/// of that part does; 0 equals -0.
std::uint64_t fingerprint_of(const TensorView& tensor) {
  std::uint64_t all = 0;
  for (std::size_t part = 0; part < kParts; ++part) {
    std::uint64_t hash = 0;
    for (std::size_t i = part * tensor.count / kParts; i < (part + 1) * tensor.count / kParts;
         ++i) {
      const std::uint32_t bits = bits_at(tensor, i);
      hash = (std::rotl(hash, 29) ^ (bits << 1 == 0 ? 0 : bits)) * 0x9e3779b97f4a7c15ULL;
    }
    all = all << 4 | hash >> 60;
  }
  return all;
}

std::size_t changed_parts(std::uint64_t a, std::uint64_t b) {
  std::size_t count = 0;
  for (std::uint64_t differ = a ^ b; differ != 0; differ >>= 4) count += (differ & 15) != 0;
  return count;
}

/// Returns the kind of a tensor: its role, or the word of its name that says which state it is.
std::string kind_of(Role role, std::string_view name) {
  if (role != Role::optimizer_state) return std::string(log::name_of(role));
  const auto parts = readers::common::parts_of(name, "/.");
  if (parts.empty()) return std::string(name);
  const auto known = std::ranges::find_first_of(parts, kJudged);
  if (known != parts.end()) return std::string(*known);
  return std::string(log::role_in_name(name) && parts.size() > 1 ? parts[1] : parts.back());
}

/// Returns the name of a run log's parameter from that of its state.
std::string path_of(const std::string& name, std::string_view kind) {
  return name.substr(std::min(name.size(), name.find(kind) + kind.size() + 1));
}

/// Returns the factor by which a state multiplies what it adds or keeps. Empty if it is unknown.
std::optional<double> factor_of(const WholeStep& step, const std::string& name,
                                std::string_view kind) {
  const auto optimizer = updates::optimizer_of(step, path_of(name, kind));
  const char* const setting = kind == kMomentum ? "momentum" : "betas";
  const auto is_it = [&](const std::string& assumed) { return assumed.starts_with(setting); };
  if (!optimizer || std::ranges::any_of(optimizer->assumed, is_it)) return std::nullopt;
  return kind == kMomentum ? optimizer->momentum
                           : 1 - (kind == kFirst ? optimizer->beta1 : optimizer->beta2);
}

/// Returns true if few bits of a factor are set, so that products with gradients of few bits may
/// be exact in 16 bits: 0.5 and 0.75, but not 0.1.
bool is_short(double factor) {
  constexpr std::uint32_t kLow = (1U << (kBinary32.precision / 2)) - 1;
  return (std::bit_cast<std::uint32_t>(static_cast<float>(factor)) & kLow) == 0;
}

/// Returns true if the values of a state are one multiple of its gradient's.
std::optional<bool> is_gradient(const WholeStep& step, const std::string& path,
                                const TensorView& state) {
  const auto gradient =
      step.tensors->tensor(std::string(log::name_of(Role::weight_grad)) + "/" + path);
  if (!gradient || gradient->view.count != state.count) return std::nullopt;
  constexpr std::size_t kBlock = 4096;
  double of_state = 0, of_gradient = 0;
  for (std::size_t i = 0; i < state.count; i += kBlock) {
    const std::size_t n = std::min(kBlock, state.count - i);
    const auto g = frames::elements(gradient->view, i, n), s = frames::elements(state, i, n);
    for (std::size_t k = 0; k < n; ++k) {
      if (of_gradient == 0) std::tie(of_gradient, of_state) = std::pair(g[k], s[k]);
      const bool same = (g[k] == 0) == (s[k] == 0) && s[k] * of_gradient == g[k] * of_state;
      if (!same) return false;
    }
  }
  return true;
}

/// Adds a tensor's result to those with the same format and judgement.
void merge(const std::string& name, const NarrowTensors& found, std::vector<NarrowTensors>& to) {
  auto at = std::ranges::find_if(to, [&](const NarrowTensors& t) {
    return t.format == found.format && t.is_fault == found.is_fault;
  });
  if (at == to.end()) {
    at = to.insert(at, found);
  } else {
    at->first_step = std::min(at->first_step, found.first_step);
    at->last_step = std::max(at->last_step, found.last_step);
    at->values += found.values;
    at->zero += found.zero;
  }
  if (at->names.empty() || at->names.back() != name) at->names.push_back(name);
}

/// Returns true if weights with few distinct values, such as those of norms, near 1, are evidence
/// by their number once an update has changed them.
bool is_by_number(Role role, const TensorView& tensor) {
  constexpr std::size_t kLeastWeights = 32, kLeastDistinct = 3;
  if (role == Role::optimizer_state || tensor.count < kLeastWeights) return false;
  std::set<std::uint32_t> values;
  for (std::size_t i = 0; i < tensor.count && values.size() < kLeastDistinct; ++i) {
    values.insert(bits_at(tensor, i) & 0x7fffffffU);
  }
  return values.size() == kLeastDistinct;
}

}  // namespace

bool is_evidence(const TensorView& tensor, const Format& format) {
  // All narrow formats lack the bits that binary16 lacks.
  constexpr std::size_t kBlock = 4096, kLacking = kBinary32.precision - kBinary16.precision;
  std::vector<bool> seen(std::size_t{1} << (31 - kLacking));
  std::vector<float> distinct;
  for (std::size_t i = 0, last = 0; i < tensor.count; i += kBlock) {
    for (std::size_t at = i; at < std::min(i + kBlock, tensor.count); ++at) {
      const std::uint32_t magnitude = bits_at(tensor, at) & 0x7fffffffU;
      if (magnitude == 0 || seen[magnitude >> kLacking]) continue;
      seen[magnitude >> kLacking] = true;
      distinct.push_back(std::bit_cast<float>(magnitude));
    }
    if (distinct.size() > last && missing_bits(distinct, format) >= kLeastBits) return true;
    last = distinct.size();
  }
  return false;
}

bool ClaimsPass::is_wanted(const WholeStep& step, const std::string& name) const {
  const Role role = step.role_of(selection_, name);
  if (role != Role::weight && role != Role::master_weight && role != Role::optimizer_state) {
    return false;
  }
  return frames::selects(selection_, name) && (step.rank == 0 || step.is_sharded(role));
}

void ClaimsPass::take(const WholeStep& step, const log::NamedTensor& tensor) {
  const TensorView& view = tensor.view;
  if (!is_wanted(step, tensor.name) || !taken_.insert(tensor.name).second) return;
  if (view.dtype != Dtype::f32) return;
  const Role role = step.role_of(selection_, tensor.name);
  Snapshot now{tensor.name, kind_of(role, tensor.name), role, count_narrow_values(view)};
  const NarrowCounts& counts = now.counts;
  const bool finite = counts.zero + counts.finite_nonzero == counts.total;
  if (counts.constant || counts.finite_nonzero == 0 || !finite) return;
  std::optional<std::size_t> any;
  for (std::size_t i = 0; i < kNarrowFormats.size() && !now.narrow; ++i) {
    if (!now.holds(i)) continue;
    if (!any) any = i;
    if (is_evidence(view, kNarrowFormats[i])) now.narrow = i;
  }
  if (any && !now.narrow) {
    if (!is_by_number(role, view)) return;
    now.narrow = any;
    now.is_few = true;
  }
  if (now.narrow) now.fingerprint = fingerprint_of(view);
  if (now.narrow && now.kind == kMomentum) {
    now.is_gradient = is_gradient(step, path_of(now.name, now.kind), view);
  }
  add(step, std::move(now));
}

void ClaimsPass::take(const WholeStep& step, const TensorCallback& beside) {
  step.tensors->for_each_name([&](const std::string& name) {
    if (taken_.contains(name) || !is_wanted(step, name)) return;
    const auto outline = step.tensors->outline(name);
    if (!outline || outline->view.dtype != Dtype::f32) return;
    const auto tensor = step.tensors->tensor(name);
    take(step, *tensor);
    if (beside) beside(*tensor);
  });
  taken_.clear();
}

/// A healthy run may have weights that were loaded, also if updates by a short learning rate, or of
/// a few weights, leave them on a grid, and state computed from gradients of few bits by a short
/// factor.
bool ClaimsPass::is_fault(const WholeStep& step, const Snapshot& now,
                          const std::optional<Snapshot>& before) {
  const bool was_narrow = before && before->holds(*now.narrow);
  if (now.role != Role::optimizer_state) {
    const auto by = updates::optimizer_of(step, std::string(underflow::path_of(now.name)));
    const bool knows_rate = by && by->rate;
    const bool on_grid =
        knows_rate ? is_short(*by->rate) : kNarrowDtypes[*now.narrow] == Dtype::f16;
    if (!before || (now.is_few && (!knows_rate || on_grid))) return false;
    return !was_narrow ||
           (!on_grid && changed_parts(before->fingerprint, now.fingerprint) >= kParts / 2);
  }
  if (!readers::common::is_one_of(now.kind, kJudged)) return false;
  const auto factor = factor_of(step, now.name, now.kind);
  if (!factor) return now.kind.ends_with(kSecond);
  if (now.kind != kMomentum) return !is_short(*factor);
  // A new optimizer's first buffer is the gradient.
  const bool is_other = before && !now.is_gradient.value_or(true);
  return !is_short(*factor) && (was_narrow || is_other);
}

void ClaimsPass::add(const WholeStep& step, Snapshot now) {
  Kind& kind = kinds_[now.kind];
  kind.claim.counts += now.counts;
  kind.claim.role = now.role;
  kind.names.insert(now.name);
  kind.steps.insert(step.step);
  auto& [last, found] = tracks_[{now.name, step.rank}];
  if (now.narrow) {
    const bool was_narrow = last && last->holds(*now.narrow);
    const bool same = was_narrow && last->fingerprint == now.fingerprint;
    const bool fault = !same && is_fault(step, now, last);
    if (fault ? !found || !found->is_fault : !found && !now.is_few) {
      const std::int64_t first = found && was_narrow ? found->first_step : step.step;
      found = {kNarrowDtypes[*now.narrow], fault, {}, first, 0, now.counts.total, now.counts.zero};
    }
    if (found) found->last_step = step.step;
  }
  last = std::move(now);
}

void ClaimsPass::finish_log() {
  for (auto& [key, track] : tracks_) {
    if (!track.found) continue;
    NarrowTensors& found = *track.found;
    const std::string& kind = track.last->kind;
    if (kind == kFirst) {  // second moments of few bits have no honest reason
      std::string second = key.first;
      second.replace(second.rfind(kFirst), kFirst.size(), kSecond);
      const auto at = tracks_.find({second, key.second});
      const auto* of = at == tracks_.end() || !at->second.found ? nullptr : &*at->second.found;
      found.is_fault |= of != nullptr && of->is_fault && of->format == found.format;
    }
    merge(key.first, found, kinds_[kind].claim.narrow);
  }
  for (auto& [kind, of] : kinds_) {
    of.claim.log = log_;
    of.claim.kind = kind;
    of.claim.tensors = of.names.size();
    of.claim.steps = of.steps.size();
    std::ranges::stable_sort(of.claim.narrow, std::greater(), &NarrowTensors::is_fault);
    claims_.push_back(std::move(of.claim));
  }
  kinds_.clear();
  tracks_.clear();
}

std::vector<Claim> claims_in(const std::vector<std::filesystem::path>& logs,
                             const frames::Selection& selection, const frames::Progress& progress,
                             const std::vector<std::int64_t>& steps) {
  frames::Selection own = selection;
  own.unnamed_are_weights = true;
  const readers::Logs opened(own);
  ClaimsPass pass(own);
  frames::Notes notes;
  if (!logs.empty()) pass.begin(logs.front().string());
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const auto take = [&](WholeStep step) {
      if (logs.size() > 1) step.step = steps.empty() ? static_cast<std::int64_t>(i) : steps.at(i);
      pass.take(step);
    };
    readers::for_each_whole_step(opened.at(logs[i]), own, take, notes, progress);
  }
  pass.finish_log();
  return std::move(pass).finish();
}

}  // namespace halfscope::analyzers::weights
