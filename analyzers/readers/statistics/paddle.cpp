// SPDX-License-Identifier: Apache-2.0
// Format, by paddle/phi/kernels/check_numerics_kernel (check_numerics_utils.h) and
// paddle/fluid/eager/nan_inf_utils:
//   [PRECISION] [ERROR] in [device=gpu:0, op=divide, tensor=, dtype=fp32], numel=40, num_nan=0,
//   num_inf=4, num_zero=0, max=inf, min=1.048930e+00, mean=inf
// on one line; without [ERROR], num_nan and num_inf if there are neither. Numbers have six decimals
// (%e) of the binary32 value. max and min include infinities; NaN may hide values from them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/statistics/statistics.hpp"

namespace halfscope::analyzers::readers::statistics {

using common::Bounds;
using common::Contradiction;
using common::Timeline;

namespace {

namespace fs = std::filesystem;
using frames::Gap;
using log::Role;

constexpr std::string_view kMark = "[PRECISION]";
constexpr std::size_t kPaddleLookedAt = std::size_t{1} << 20;
constexpr std::uint64_t kMostValues = std::uint64_t{1} << 48;  // so that sums do not wrap

/// A format, with Paddle's name and its least and largest finite nonzero magnitudes.
struct Held {
  std::string_view name;
  Dtype dtype;
  Magnitude least, most;
};
constexpr std::uint64_t kAllOnes = kFractionUnit - 1;
/// The fraction of the largest finite number with `precision` bits.
constexpr std::uint64_t ones(int precision) { return kAllOnes - (kAllOnes >> (precision - 1)); }
constexpr Held kHeld[] = {{"fp16", Dtype::f16, {-24, 0}, {15, ones(11)}},
                          {"bf16", Dtype::bf16, {-133, 0}, {127, ones(8)}},
                          {"fp32", Dtype::f32, {-149, 0}, {127, ones(24)}},
                          {"fp64", Dtype::f64, {-1074, 0}, {1023, ones(53)}}};

/// The text after "KEY=" up to the next comma, bracket or space; empty if the key is missing.
std::optional<std::string_view> text_of(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    const std::size_t value = at + key.size();
    const bool is_word = at > 0 && (line[at - 1] == ' ' || line[at - 1] == '[');
    if (!is_word || value >= line.size() || line[value] != '=') continue;
    const std::string_view rest = line.substr(value + 1);
    return rest.substr(0, std::min(rest.find_first_of(",] "), rest.size()));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> count_of(std::string_view line, std::string_view key) {
  const auto text = text_of(line, key);
  const auto number = text ? common::integer_in(*text) : std::nullopt;
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

/// Returns max or min as a range. NaN, infinities and zero are exact, since %e prints no nonzero
/// number as 0.
std::optional<Bounds> extreme_of(std::string_view line, std::string_view key) {
  const auto text = text_of(line, key);
  const auto number = text ? common::number_in(*text) : std::nullopt;
  if (!number) return std::nullopt;
  const auto digit = common::last_digit_of(*text);
  return *number == 0 || !digit ? Bounds{*number, *number}
                                : common::printed_bounds(*number, *digit);
}

/// Returns the range of the number in its own format. Paddle rounds binary64 numbers to binary32
/// before it prints them.
Bounds in_binary64(const Bounds& printed, Dtype dtype) {
  if (dtype != Dtype::f64 || !std::isfinite(printed.low)) return printed;
  const auto error = [](double x) { return std::abs(x) * 0x1p-23 + 0x1p-149; };
  return {printed.low - error(printed.low), printed.high + error(printed.high)};
}

struct PaddleEntry {
  std::string_view op, tensor, max_text, min_text;
  const Held* held = nullptr;
  std::uint64_t numel = 0, nan = 0, inf = 0, zero = 0;
  Bounds max, min;
  std::uint64_t finite_nonzero() const { return numel - nan - inf - zero; }
};

/// Returns the error in a line, or an empty text.
std::string_view parse(std::string_view line, PaddleEntry& entry) {
  entry.op = text_of(line, "op").value_or("");
  entry.tensor = text_of(line, "tensor").value_or("");
  const std::string_view dtype = text_of(line, "dtype").value_or("");
  const auto* const held = std::find_if(std::begin(kHeld), std::end(kHeld),
                                        [dtype](const Held& h) { return h.name == dtype; });
  const auto numel = count_of(line, "numel"), zero = count_of(line, "num_zero");
  const auto max = extreme_of(line, "max"), min = extreme_of(line, "min");
  if (entry.op.empty() || !numel || !max || !min) return "has no op, numel, max or min";
  if (held == std::end(kHeld)) return "its dtype is none of fp16, bf16, fp32 and fp64";
  if (*numel > kMostValues) return "its numel is above 2^48, more than any memory holds";
  if (!zero) return "has no num_zero, as those of Paddle before 2.5";
  const bool fine = line.find("[ERROR]") == std::string_view::npos;
  const auto none = fine ? std::optional<std::uint64_t>(0) : std::nullopt;
  const auto nan = count_of(line, "num_nan"), inf = count_of(line, "num_inf");
  if ((!nan && !none) || (!inf && !none)) return "has no num_nan or num_inf";
  entry.held = held;
  entry.numel = *numel;
  entry.zero = *zero;
  entry.nan = nan.value_or(0);
  entry.inf = inf.value_or(0);
  entry.max = in_binary64(*max, held->dtype);
  entry.min = in_binary64(*min, held->dtype);
  entry.max_text = *text_of(line, "max");
  entry.min_text = *text_of(line, "min");
  return {};
}

constexpr Contradiction kCounts{"num_nan, num_inf and num_zero are together more than numel",
                                "such an entry is skipped"};
constexpr Contradiction kSpecials{"max and min do not fit num_nan and num_inf",
                                  "of these only numel is used"};
constexpr Contradiction kFormat{"max or min is not a number of dtype",
                                "of these only numel is used"};
constexpr Contradiction kMaxBelowMin{
    "max is below min", "neither is used: nonzero values may be anything in their format"};
constexpr Contradiction kZeros{
    "max and min do not fit num_zero",
    "none of them is used: finite values may be zero or anything in their format"};

bool is_nan(const Bounds& b) { return std::isnan(b.low); }
bool is_inf(const Bounds& b) { return std::isinf(b.low); }
/// Returns true for a finite value that is certainly not zero.
bool is_nonzero(const Bounds& b) {
  return std::isfinite(b.low) && common::magnitude_bounds(b).low > 0;
}

bool specials_fit(const PaddleEntry& e) {
  if (e.nan == 0 && (is_nan(e.max) || is_nan(e.min))) return false;
  if (e.inf > 0 && e.nan == 0 && !is_inf(e.max) && !is_inf(e.min)) return false;
  if (e.held->dtype == Dtype::f64) return true;  // finite values may be printed as inf
  const bool same = e.max.low == e.min.low;
  const std::uint64_t ends = (is_inf(e.max) ? 1U : 0U) + (is_inf(e.min) && !same ? 1U : 0U);
  const bool all = is_inf(e.max) && same && e.nan == 0;
  return e.inf >= (all ? e.numel : ends);
}

bool format_fits(const PaddleEntry& e) {
  const auto fits = [&e](const Bounds& extreme) {
    const Bounds m = common::magnitude_bounds(extreme);
    return !is_nonzero(extreme) ||
           (m.low <= to_double(e.held->most) && m.high >= to_double(e.held->least));
  };
  return fits(e.max) && fits(e.min);
}

/// Returns true if num_zero can be true: zeros lie between min and max unless NaN hides them, and
/// min and max are values.
bool zeros_fit(const PaddleEntry& e) {
  if (e.numel == 0) return true;
  const bool apart = e.min.high < e.max.low;
  const std::uint64_t ends = (is_nonzero(e.max) ? 1U : 0U) +
                             (is_nonzero(e.min) && (apart || !is_nonzero(e.max)) ? 1U : 0U);
  if (ends > e.finite_nonzero()) return false;
  const auto is_zero = [](const Bounds& b) { return b.low == 0 && b.high == 0; };
  if (e.zero == 0) return !is_zero(e.max) && !is_zero(e.min);
  if (e.nan > 0) return true;
  const bool all_zero = is_zero(e.max) && is_zero(e.min);
  return e.min.low <= 0 && e.max.high >= 0 && (!all_zero || e.finite_nonzero() == 0);
}

/// The contradiction in an entry; null if there is none.
const Contradiction* contradiction_in(const PaddleEntry& e) {
  const bool fits =
      e.nan <= e.numel && e.inf <= e.numel - e.nan && e.zero <= e.numel - e.nan - e.inf;
  if (!fits) return &kCounts;
  if (!specials_fit(e)) return &kSpecials;
  if (!format_fits(e)) return &kFormat;
  if (e.min.low > e.max.high) return &kMaxBelowMin;
  return zeros_fit(e) ? nullptr : &kZeros;
}

SpecialCounts specials_of(const PaddleEntry& e) {
  SpecialCounts specials;
  specials.nan = e.nan;
  specials.zero = e.zero;
  // If there are infinities of both signs, the split is unknown; no count depends on the sign.
  (is_inf(e.max) ? specials.positive_infinity : specials.negative_infinity) = e.inf;
  return specials;
}

/// The table of an entry with a contradiction.
BoundedTable table_in_doubt(const PaddleEntry& e, const Contradiction* kind) {
  BinadeTable exact;
  if (kind == &kSpecials || kind == &kFormat) {
    BoundedTable table(std::move(exact));
    table.add({std::nullopt, std::nullopt, true, e.numel});
    return table;
  }
  SpecialCounts specials = specials_of(e);
  const bool zeros = kind == &kMaxBelowMin;
  if (!zeros) specials.zero = 0;
  exact.add_specials(specials);
  BoundedTable table(std::move(exact));
  const auto least = zeros ? std::optional(e.held->least) : std::nullopt;
  table.add({least, e.held->most, false, e.finite_nonzero() + (zeros ? 0 : e.zero)});
  return table;
}

/// The table of an entry: special values are exact, other values lie between min and max.
class Filler {
 public:
  explicit Filler(const PaddleEntry& entry) : entry_(entry), least_(entry.held->least) {
    const Bounds max = common::magnitude_bounds(entry.max),
                 min = common::magnitude_bounds(entry.min);
    const bool known = entry.nan == 0;
    const bool ends = std::isfinite(max.high) && std::isfinite(min.high);
    most_ = known && ends ? clipped(std::max(max.high, min.high)) : entry.held->most;
    if (known && entry.min.low > 0) least_ = clipped(entry.min.low);
    if (known && entry.max.high < 0) least_ = clipped(-entry.max.high);
  }

  /// Returns the table. max and min are added as one value each, unless they are zero or infinite.
  BoundedTable table() const {
    BinadeTable exact;
    exact.add_specials(specials_of(entry_));
    BoundedTable table(std::move(exact));
    std::uint64_t left = entry_.finite_nonzero();
    if (is_nonzero(entry_.max)) take_one(entry_.max, left, table);
    const bool apart = entry_.min.high < entry_.max.low;
    if (apart && is_nonzero(entry_.min)) take_one(entry_.min, left, table);
    if (left > 0) table.add({least_, most_, false, left});
    return table;
  }

 private:
  Magnitude clipped(double m) const {
    if (!(m > 0)) return entry_.held->least;
    return std::clamp(std::isinf(m) ? entry_.held->most : magnitude_of(m), entry_.held->least,
                      entry_.held->most);
  }
  void take_one(const Bounds& extreme, std::uint64_t& left, BoundedTable& table) const {
    if (left == 0) return;
    const Bounds m = common::magnitude_bounds(extreme);
    table.add({clipped(m.low), clipped(m.high), false, 1});
    --left;
  }

  const PaddleEntry& entry_;
  Magnitude least_, most_;
};

/// Backward operators are called OP_grad; the tensor's name shows if it is a parameter's gradient.
/// Outputs of an optimizer's operators are not activations.
Role role_of(const PaddleEntry& entry) {
  if (entry.op.ends_with("_grad")) {
    const bool of_parameter = entry.tensor.find(".w_") != std::string_view::npos ||
                              entry.tensor.find(".b_") != std::string_view::npos;
    return of_parameter ? Role::weight_grad : Role::activation_grad;
  }
  constexpr std::string_view optimizers[] = {"adam",  "sgd",     "momentum", "lamb", "lars",
                                             "adagr", "rmsprop", "adadelta", "ftrl", "merged_"};
  const bool of_optimizer =
      std::any_of(std::begin(optimizers), std::end(optimizers),
                  [&entry](std::string_view name) { return entry.op.starts_with(name); });
  return of_optimizer ? Role::unknown : Role::activation;
}

/// Reads the entries of one worker. Lines have no step: the n-th line of an operator and tensor,
/// from 0, counts as step n.
class Worker {
 public:
  Worker(std::string prefix, Timeline& timeline)
      : prefix_(std::move(prefix)), timeline_(timeline) {}

  void read(const fs::path& file, common::TextFiles& text, frames::Notes& notes) {
    common::Contradictions contradictions;
    text.read_lines(file, [&](std::string_view line, std::uint64_t number) {
      const std::size_t mark = line.find(kMark);
      return std::string(
          mark == std::string_view::npos ? "" : take(line.substr(mark), number, contradictions));
    });
    contradictions.tell(log::printable(file.string()), notes);
  }

 private:
  std::string_view take(std::string_view line, std::uint64_t number,
                        common::Contradictions& contradictions) {
    PaddleEntry entry;
    const std::string_view why = parse(line, entry);
    if (!why.empty()) return why;
    const std::string slash = entry.tensor.empty() ? "" : "/";
    frames::Frame frame;
    frame.name = fmt::format("{}{}{}{}", prefix_, entry.op, slash, entry.tensor);
    frame.step = entries_[frame.name]++;
    const Contradiction* const wrong = contradiction_in(entry);
    if (wrong != nullptr) contradictions.add(*wrong, number, found_text(frame, entry));
    if (wrong == &kCounts || !timeline_.wants(frame.name, frame.step)) return {};
    frame.role = role_of(entry);
    frame.source_dtype = entry.held->dtype;
    frame.table = wrong != nullptr ? table_in_doubt(entry, wrong) : Filler(entry).table();
    timeline_.tensor(std::move(frame));
    return {};
  }

  static std::string found_text(const frames::Frame& frame, const PaddleEntry& e) {
    return fmt::format(
        "'{}', entry {}: dtype={}, numel={}, num_nan={}, num_inf={}, num_zero={}, max={}, min={}",
        log::printable(frame.name), frame.step, e.held->name, e.numel, e.nan, e.inf, e.zero,
        log::printable(e.max_text), log::printable(e.min_text));
  }

  std::string prefix_;
  Timeline& timeline_;
  std::map<std::string, std::int64_t> entries_;
};

bool is_paddle_file(const log::OpenPath& file) {
  const std::string text = common::beginning_of(file, kPaddleLookedAt);
  const std::size_t mark = text.find(kMark);
  return mark != std::string::npos && text.find("numel=", mark) != std::string::npos;
}

}  // namespace

bool is_paddle(const log::OpenPath& log) { return common::any_file_below(log, 0, is_paddle_file); }

void read_paddle(const log::OpenPath& log, const common::TimelineSelection& selection,
                 const frames::Visitor& visit, frames::Notes& notes,
                 const frames::Progress& progress) {
  const std::vector<fs::path> files = common::files_below(log, 0, is_paddle_file);
  Timeline timeline(log.path.string(), selection, visit);
  common::TextFiles text(log, files, notes, progress);
  for (const fs::path& file : files) {
    const std::string prefix = files.size() > 1 ? file.filename().string() + "/" : "";
    Worker(prefix, timeline).read(file, text, notes);
  }
  if (visit.kind) {
    frames::LogKind kind{"Paddle tensor checks", {Gap::underflow, Gap::rounded}};
    kind.tool = frames::Tool::paddle;
    if (!selection.knows_scale()) kind.gaps.push_back(Gap::loss_scale);
    kind.gaps.insert(kind.gaps.end(), {Gap::counts, Gap::updates, Gap::steps});
    visit.kind(kind);
  }
  timeline.finish(notes);
}

}  // namespace halfscope::analyzers::readers::statistics
