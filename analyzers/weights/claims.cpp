// SPDX-License-Identifier: Apache-2.0
#include "analyzers/weights/claims.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/updates/optimizer_update.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::weights {

using frames::WholeStep;
using log::Role;
using updates::Optimizer;

namespace {

constexpr std::string_view kFirstMoment = "exp_avg", kMomentum = "momentum_buffer",
                           kSecondMoment = "exp_avg_sq";
/// Kinds of optimizer state whose update rule is known. Other state is counted, but not judged.
constexpr std::string_view kJudged[] = {kFirstMoment, kMomentum, kSecondMoment, "max_exp_avg_sq"};

bool is_second_moment(std::string_view kind) { return kind.ends_with(kSecondMoment); }

std::uint32_t magnitude_at(const TensorView& tensor, std::size_t i) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, tensor.data + 4 * i, sizeof bits);
  return bits & 0x7fffffffU;
}

/// The distinct nonzero magnitudes of values that are numbers of a narrow format.
class DistinctValues {
 public:
  /// No narrow format has more fraction bits than binary16, so magnitudes differ in these bits.
  void add(std::uint32_t magnitude) {
    const std::uint32_t key = magnitude >> kLacking;
    if (magnitude == 0 || seen_[key]) return;
    seen_[key] = true;
    values_.push_back(magnitude);
  }
  std::size_t size() const { return values_.size(); }

  bool is_enough(const Format& format) const {
    const int quantum = format.min_quantum_exponent() - kBinary32.min_quantum_exponent() + 1;
    int lowest = 2 * kBinary32.emax, lacking = 0, beyond = 0;
    for (const std::uint32_t v : values_) {
      lowest = std::min(lowest, lowest_bit(v));
      const int lowest32 = std::max(1, exponent_field(v));
      lacking += std::max(kBinary32.precision - format.precision, quantum - lowest32);
    }
    for (const std::uint32_t v : values_) {
      beyond += std::max(0, highest_bit(v) - lowest + 1 - format.precision);
    }
    const bool subnormals = format == kBinary16 && lowest == quantum;
    return lacking >= kLeastBits && (subnormals || beyond >= kLeastGridBits);
  }

 private:
  static constexpr int kLacking = kBinary32.precision - kBinary16.precision;

  /// Return the exponents of a magnitude's lowest and highest bit, in units of the smallest number.
  static std::uint32_t significand(std::uint32_t v) {
    const std::uint32_t fraction = v & kBinary32.fraction_mask();
    return exponent_field(v) == 0 ? fraction : fraction | (1U << kBinary32.fraction_bits());
  }
  static int exponent_field(std::uint32_t v) {
    return static_cast<int>(v >> kBinary32.fraction_bits());
  }
  static int lowest_bit(std::uint32_t v) {
    return std::max(1, exponent_field(v)) + std::countr_zero(significand(v));
  }
  static int highest_bit(std::uint32_t v) {
    return std::max(1, exponent_field(v)) + static_cast<int>(std::bit_width(significand(v))) - 1;
  }

  std::vector<bool> seen_ = std::vector<bool>(std::size_t{1} << (31 - kLacking));
  std::vector<std::uint32_t> values_;
};

/// Returns a number that differs, up to a chance of 2^-64, if any value does; 0 equals -0.
std::uint64_t fingerprint_of(const TensorView& tensor) {
  std::uint64_t hash = tensor.count;
  for (std::size_t i = 0; i < tensor.count; ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, tensor.data + 4 * i, sizeof bits);
    hash =
        (std::rotl(hash, 29) ^ (magnitude_at(tensor, i) == 0 ? 0 : bits)) * 0x9e3779b97f4a7c15ULL;
  }
  return hash;
}

/// Returns the position of a kind of state as a whole word of a tensor's name.
std::size_t find_word(std::string_view name, std::string_view word) {
  const auto ends = [&](std::size_t at) {
    return at >= name.size() || name[at] == '/' || name[at] == '.';
  };
  for (std::size_t at = name.rfind(word); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : name.rfind(word, at - 1)) {
    if ((at == 0 || ends(at - 1)) && ends(at + word.size())) return at;
  }
  return std::string_view::npos;
}

/// Returns the kind of a tensor: its role, or the word of its name that says which state it is.
std::string kind_of(Role role, std::string_view name) {
  if (role != Role::optimizer_state) return std::string(log::name_of(role));
  for (const std::string_view kind : kJudged) {
    if (find_word(name, kind) != std::string_view::npos) return std::string(kind);
  }
  const bool in_run = log::role_in_name(name).has_value();
  const std::size_t from = in_run ? name.find('/') + 1 : name.find_last_of("./") + 1;
  return std::string(name.substr(from, name.find('/', from) - from));
}

/// Returns a state's name without its kind, which the states of one parameter share.
std::string parameter_of(std::string name, std::string_view kind) {
  return name.erase(find_word(name, kind), kind.size());
}

/// Returns the name of a run log's parameter from that of its state.
std::string path_in_run(const std::string& name, std::string_view kind) {
  const std::size_t at = log::name_of(Role::optimizer_state).size() + kind.size() + 2;
  return name.size() > at ? name.substr(at) : "";
}

bool knows(const Optimizer& optimizer, std::string_view setting) {
  return std::ranges::none_of(optimizer.assumed,
                              [&](const std::string& s) { return s.starts_with(setting); });
}

/// Returns true if few bits of a factor are set, so that products with gradients of few bits may
/// be exact in 16 bits: 0.5 and 0.75, but not 0.1.
bool is_short(double factor) {
  constexpr std::uint32_t kLow = (1U << (kBinary32.precision / 2)) - 1;
  return (std::bit_cast<std::uint32_t>(static_cast<float>(factor)) & kLow) == 0;
}

/// Returns true if the state's values are those of its gradient, or their negatives. Empty if the
/// gradient is unknown.
std::optional<bool> copies_gradient(const WholeStep& step, const frames::Selection& selection,
                                    const log::NamedTensor& state, std::string_view kind) {
  if (step.run == nullptr) return std::nullopt;
  const std::string name =
      std::string(log::name_of(Role::weight_grad)) + "/" + path_in_run(state.name, kind);
  const auto gradient = step.tensors->tensor(name);
  if (!gradient || gradient->view.count != state.view.count) return std::nullopt;
  double scale = 1;
  try {
    scale = step.scale_of(selection, name);
  } catch (const log::BadInput&) {
    return std::nullopt;
  }
  constexpr std::size_t kBlock = 4096;
  for (std::size_t i = 0; i < state.view.count; i += kBlock) {
    const std::size_t n = std::min(kBlock, state.view.count - i);
    const auto g = frames::elements(gradient->view, i, n), s = frames::elements(state.view, i, n);
    const auto same = [&](double a, double b) { return std::abs(a) == std::abs(b / scale); };
    if (!std::ranges::equal(s, g, same)) return false;
  }
  return true;
}

/// Adds a tensor's result to those with the same format and reason.
void merge(const std::string& name, const NarrowTensors& found, std::vector<NarrowTensors>& to) {
  auto at = std::ranges::find_if(
      to, [&](const NarrowTensors& t) { return t.format == found.format && t.held == found.held; });
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

}  // namespace

std::string_view name_of(HeldAs held) {
  switch (held) {
    case HeldAs::rounded: return "rounded";
    case HeldAs::became: return "became_rounded";
    case HeldAs::loaded: return "loaded";
    case HeldAs::gradient: return "gradient";
    case HeldAs::undecided: return "undecided";
  }
  return "";
}

bool Claim::has_fault() const {
  return std::ranges::any_of(narrow, [](const NarrowTensors& t) { return is_fault(t.held); });
}

bool is_evidence(const TensorView& tensor, const Format& format) {
  constexpr std::size_t kBlock = 4096;
  DistinctValues values;
  for (std::size_t i = 0, last = 0; i < tensor.count; i += kBlock) {
    const std::size_t end = std::min(i + kBlock, tensor.count);
    for (std::size_t at = i; at < end; ++at) values.add(magnitude_at(tensor, at));
    if (values.size() > last && values.is_enough(format)) return true;
    last = values.size();
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
  if (!is_wanted(step, tensor.name) || !taken_.insert(tensor.name).second) return;
  if (tensor.view.dtype != Dtype::f32) return;
  Snapshot now;
  now.name = tensor.name;
  now.kind = kind_of(step.role_of(selection_, tensor.name), tensor.name);
  now.counts = count_narrow_values(tensor.view);
  const NarrowCounts& counts = now.counts;
  const bool finite = counts.zero + counts.finite_nonzero == counts.total;
  if (counts.constant || counts.finite_nonzero == 0 || !finite) return;
  bool all = false;
  for (std::size_t i = 0; i < kNarrowFormats.size() && !now.narrow; ++i) {
    if (counts.exact[i] != counts.finite_nonzero) continue;
    all = true;
    if (is_evidence(tensor.view, kNarrowFormats[i])) now.narrow = i;
  }
  if (all && !now.narrow) return;  // too few distinct values to say
  if (now.narrow) {
    now.fingerprint = fingerprint_of(tensor.view);
    if (now.kind == kFirstMoment || now.kind == kMomentum) {
      now.copies_gradient = copies_gradient(step, selection_, tensor, now.kind);
    }
  }
  step_.push_back(std::move(now));
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
  end_step(step);
}

void ClaimsPass::end_step(const WholeStep& step) {
  for (const Snapshot& now : step_) {
    if (now.kind == kSecondMoment && now.narrow)
      narrow_seconds_.emplace(parameter_of(now.name, now.kind), *now.narrow);
  }
  for (const Snapshot& now : step_) add(step, now);
  step_.clear();
  narrow_seconds_.clear();
  taken_.clear();
}

HeldAs ClaimsPass::judge_first_moment(const WholeStep& step, const Snapshot& now,
                                      const Track& before) const {
  if (now.copies_gradient.value_or(false)) return HeldAs::gradient;
  const bool was_exact = before.seen && before.exact[*now.narrow];
  const HeldAs fault = before.seen && !was_exact ? HeldAs::became : HeldAs::rounded;
  // Second moments of few bits have no honest reason, so the first ones need none either.
  if (narrow_seconds_.contains({parameter_of(now.name, now.kind), *now.narrow})) return fault;
  const bool momentum = now.kind == kMomentum;
  const auto optimizer = updates::optimizer_of(step, path_in_run(now.name, now.kind));
  if (!optimizer || !knows(*optimizer, momentum ? "momentum" : "betas")) return HeldAs::undecided;
  const double decay = momentum ? optimizer->momentum : optimizer->beta1;
  if (decay == 0) return HeldAs::gradient;
  if (is_short(momentum ? decay : 1 - decay)) return HeldAs::undecided;
  // PyTorch's first momentum buffer is the gradient itself, also that of a new optimizer.
  const bool may_be_first = !was_exact && !(before.seen && now.copies_gradient);
  return momentum && may_be_first ? HeldAs::gradient : fault;
}

std::optional<HeldAs> ClaimsPass::judge(const WholeStep& step, const Snapshot& now,
                                        const Track& before) const {
  const bool was_exact = before.seen && before.exact[*now.narrow];
  if (was_exact && before.fingerprint == now.fingerprint) return std::nullopt;
  const HeldAs fault = before.seen && !was_exact ? HeldAs::became : HeldAs::rounded;
  const Role role = step.role_of(selection_, now.name);
  if (role != Role::optimizer_state) {
    if (!before.seen) return HeldAs::loaded;
    // Few steps with gradients of few bits may leave weights exact in a wider format.
    if (was_exact && before.narrow != now.narrow) return std::nullopt;
    return fault;
  }
  if (std::ranges::find(kJudged, now.kind) == std::end(kJudged)) return HeldAs::undecided;
  if (!is_second_moment(now.kind)) return judge_first_moment(step, now, before);
  const auto optimizer = updates::optimizer_of(step, path_in_run(now.name, now.kind));
  const bool possible = optimizer && knows(*optimizer, "betas") && is_short(1 - optimizer->beta2);
  return possible ? HeldAs::undecided : fault;
}

void ClaimsPass::add(const WholeStep& step, const Snapshot& now) {
  Kind& kind = kinds_[now.kind];
  kind.claim.counts += now.counts;
  kind.claim.role = step.role_of(selection_, now.name);
  kind.names.insert(now.name);
  kind.claim.steps += kind.claim.steps == 0 || kind.last_step != step.step ? 1 : 0;
  kind.last_step = step.step;
  Track& track = tracks_[{now.name, step.rank}];
  track.kind = &kind;
  if (now.narrow) add_narrow(step, now, track);
  for (std::size_t i = 0; i < track.exact.size(); ++i) {
    track.exact[i] = now.counts.exact[i] == now.counts.finite_nonzero;
  }
  track.seen = true;
  track.fingerprint = now.fingerprint;
  track.narrow = now.narrow;
}

void ClaimsPass::add_narrow(const WholeStep& step, const Snapshot& now, Track& track) const {
  const std::optional<HeldAs> held = judge(step, now, track);
  std::optional<NarrowTensors>& found = track.found;
  if (held && (!found || (is_fault(*held) && !is_fault(found->held)))) {
    const bool since = found && *held == HeldAs::rounded;
    found = NarrowTensors{.format = kNarrowDtypes[*now.narrow],
                          .held = *held,
                          .names = {},
                          .first_step = since ? found->first_step : step.step,
                          .last_step = step.step,
                          .values = now.counts.total,
                          .zero = now.counts.zero};
  } else if (found && (!held || is_fault(*held) == is_fault(found->held))) {
    found->last_step = step.step;
  }
}

void ClaimsPass::finish_log() {
  for (const auto& [key, track] : tracks_) {
    if (track.found) merge(key.first, *track.found, track.kind->claim.narrow);
  }
  for (auto& [kind, of] : kinds_) {
    of.claim.log = log_;
    of.claim.kind = kind;
    of.claim.tensors = of.names.size();
    std::ranges::stable_sort(of.claim.narrow, {}, &NarrowTensors::held);
    claims_.push_back(std::move(of.claim));
  }
  kinds_.clear();
  tracks_.clear();
}

std::vector<Claim> claims_in(const std::vector<std::filesystem::path>& logs,
                             const frames::Selection& selection, const frames::Progress& progress) {
  const readers::Logs opened(selection);
  ClaimsPass pass(selection);
  frames::Notes notes;
  if (!logs.empty()) pass.begin(logs.front().string());
  std::int64_t number = 0;
  const auto take = [&](const WholeStep& step) {
    if (logs.size() == 1) return pass.take(step);
    WholeStep checkpoint = step;
    checkpoint.step = number;
    pass.take(checkpoint);
  };
  for (const std::filesystem::path& log : logs) {
    readers::for_each_whole_step(opened.at(log), selection, take, notes, progress);
    ++number;
  }
  pass.finish_log();
  return std::move(pass).finish();
}

}  // namespace halfscope::analyzers::weights
