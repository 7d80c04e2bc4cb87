// SPDX-License-Identifier: Apache-2.0
#include "analyzers/gates/condition.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <regex>
#include <span>
#include <stdexcept>

#include "analyzers/ranks/rank_comparison.hpp"

namespace halfscope::analyzers::gates {

using underflow::Answer;
using underflow::Share;
using underflow::TensorFindings;
using underflow::TensorPeaks;

namespace {

using Whole = boost::multiprecision::cpp_int;
using Exact = boost::multiprecision::cpp_rational;
using log::printable;

enum class Base { none, total, nonzero, updates, itself };

struct Field {
  std::string_view name;
  Base base;                                              ///< the total that a percentage refers to
  Interval (*count)(const underflow::Counts&) = nullptr;  ///< for counts of a tensor's values
  std::uint64_t (*updates)(const UpdateCounts&) = nullptr;  ///< for counts of a weight's updates
};

constexpr Field kTensorFields[] = {
    {"total", Base::none, [](const underflow::Counts& c) { return Interval(c.total); }},
    {"zero", Base::total, [](const underflow::Counts& c) { return c.zero; }},
    {"nan", Base::total, [](const underflow::Counts& c) { return c.nan; }},
    {"inf", Base::total, [](const underflow::Counts& c) { return c.inf; }},
    {"flushed_to_zero", Base::nonzero,
     [](const underflow::Counts& c) { return c.classes.flushed_to_zero; }},
    {"subnormal", Base::nonzero, [](const underflow::Counts& c) { return c.classes.subnormal; }},
    {"normal", Base::nonzero, [](const underflow::Counts& c) { return c.classes.normal; }},
    {"overflow", Base::nonzero, [](const underflow::Counts& c) { return c.classes.overflow; }},
    {"max_abs", Base::none},
    {"min_abs_nonzero", Base::none},
    {"updates", Base::none, nullptr, [](const UpdateCounts& c) { return c.updates(); }},
    {"update_underflow", Base::updates, nullptr,
     [](const UpdateCounts& c) { return c.half.underflow; }},
    {"swamped", Base::updates, nullptr, [](const UpdateCounts& c) { return c.half.swamped; }},
    {"updates_lost", Base::updates, nullptr, [](const UpdateCounts& c) { return c.half.lost(); }},
    {"swamped_fused", Base::updates, nullptr,
     [](const UpdateCounts& c) { return c.fused.swamped; }},
    {"rule_2048", Base::updates, nullptr, [](const UpdateCounts& c) { return c.rule_2048; }},
    {"undetermined", Base::updates},
    {"underflow_share", Base::itself},
    {"frozen_weights", Base::total},
    {"rounded_state", Base::none},
};
constexpr Field kRecommendationFields[] = {
    {"static_scale", Base::none},    {"highest", Base::none},
    {"lowest", Base::none},          {"headroom_bits", Base::none},
    {"flushed_at_1", Base::itself},  {"flushed_at_recommended", Base::itself},
    {"nonfinite_steps", Base::none},
};
constexpr Field kComparisonFields[] = {
    {"nan", Base::total},
    {"overflow", Base::nonzero},
    {"updates_lost", Base::updates},
    {"new_zeros", Base::total},
    {"zero_difference", Base::none},
    {"max_abs_shift", Base::none},
    {"median_shift", Base::none},
    {"largest_share_difference", Base::none},
    {"became_zero", Base::total},
    {"became_subnormal", Base::total},
    {"became_infinite", Base::total},
    {"became_nan", Base::total},
    {"largest_relative_error", Base::none},
    {"largest_ulps", Base::none},
    {"sums_above", Base::total},
};
constexpr Field kLogFields[] = {
    {"state", Base::none},           {"skipped", Base::none},
    {"skipped_share", Base::itself}, {"collapsed_since", Base::none},
    {"nonfinite_since", Base::none}, {"last_scale", Base::none},
    {"ranks_differ", Base::none},
};
constexpr Field kStepFields[] = {{"loss", Base::none}, {"grad_norm", Base::none}};

std::span<const Field> fields_of(Subject subject) {
  if (subject == Subject::tensor) return kTensorFields;
  if (subject == Subject::step) return kStepFields;
  if (subject == Subject::comparison) return kComparisonFields;
  return kRecommendationFields;
}

const Field* find_field(std::span<const Field> fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &Field::name);
  return found == fields.end() ? nullptr : &*found;
}

/// Returns true if the fields of a log are available in addition to the subject's own fields.
bool has_logs(Subject subject) {
  return subject == Subject::tensor || subject == Subject::recommendation;
}

const Field* find_field(Subject subject, std::string_view name) {
  const Field* const own = find_field(fields_of(subject), name);
  return own == nullptr && has_logs(subject) ? find_field(kLogFields, name) : own;
}

std::string names_of(Subject subject) {
  std::vector<std::string_view> names;
  for (const Field& field : fields_of(subject)) names.push_back(field.name);
  if (has_logs(subject)) {
    for (const Field& field : kLogFields) names.push_back(field.name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Returns " (halfscope analyze has it)" with the command that has the field; empty if none has.
std::string owner_text(std::string_view field) {
  constexpr std::pair<Subject, std::string_view> kCommands[] = {
      {Subject::tensor, "analyze"},
      {Subject::recommendation, "recommend"},
      {Subject::comparison, "compare"}};
  for (const auto& [subject, command] : kCommands) {
    if (find_field(subject, field)) return fmt::format(" (halfscope {} has it)", command);
  }
  return find_field(Subject::step, field) ? " (halfscope.torch.Recorder.alert() has it)" : "";
}

Relation relation_of(const std::string& text) {
  if (text == "<") return Relation::less;
  if (text == "<=") return Relation::less_equal;
  if (text == ">") return Relation::greater;
  if (text == ">=") return Relation::greater_equal;
  return text == "==" ? Relation::equal : Relation::not_equal;
}

/// Returns the binary64 number nearest to a limit; empty if it is out of range.
std::optional<double> nearest(std::string_view text) {
  if (text.starts_with("2^")) return std::ldexp(1.0, std::stoi(std::string(text.substr(2))));
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Exact power(unsigned base, int exponent) {
  const Whole whole =
      boost::multiprecision::pow(Whole(base), static_cast<unsigned>(std::abs(exponent)));
  return exponent < 0 ? Exact(Whole(1), whole) : Exact(whole);
}

/// Returns the limit as written, without rounding.
Exact exact(std::string_view text) {
  if (text.starts_with("2^")) return power(2, std::stoi(std::string(text.substr(2))));
  const std::size_t e = std::min(text.find_first_of("eE"), text.size());
  int exponent = e == text.size() ? 0 : std::stoi(std::string(text.substr(e + 1)));
  Whole digits = 0;
  bool after_point = false;
  for (const char c : text.substr(0, e)) {
    if (c == '.') after_point = true;
    if (c < '0' || c > '9') continue;
    digits = digits * 10 + (c - '0');
    if (after_point) --exponent;
  }
  const Exact magnitude = Exact(digits) * power(10, exponent);
  return text.starts_with("-") ? Exact(-magnitude) : magnitude;
}

template <typename T>
bool compare(Relation relation, const T& value, const T& limit) {
  switch (relation) {
    case Relation::less: return value < limit;
    case Relation::less_equal: return value <= limit;
    case Relation::greater: return value > limit;
    case Relation::greater_equal: return value >= limit;
    case Relation::equal: return value == limit;
    case Relation::not_equal: return value != limit;
  }
  return false;
}

template <typename T>
Verdict decide(Relation relation, const T& low, const T& high, const T& limit) {
  const bool at_low = compare(relation, low, limit);
  // With == and != both ends may agree although a value between them differs.
  const bool equality = relation == Relation::equal || relation == Relation::not_equal;
  const bool inside = equality && low != high && low <= limit && limit <= high;
  if (inside || at_low != compare(relation, high, limit)) return Verdict::undecided;
  return at_low ? Verdict::holds : Verdict::fails;
}

Exact quotient(std::uint64_t count, std::uint64_t of) {
  return of == 0 ? Exact(0) : Exact(Whole(count), Whole(of));
}

/// Empty if the tensor has no updates, or for `undetermined` if they are no differences of weights.
std::optional<Measured> measure_updates(const Condition& c, const TensorFindings& tensor) {
  if (!tensor.updates) return std::nullopt;
  const UpdateCounts& counts = tensor.updates->table.counts;
  if (const auto count = find_field(Subject::tensor, c.field)->updates) {
    return count_of(c, count(counts), counts.updates());
  }
  if (tensor.updates->source != underflow::UpdateSource::difference) return std::nullopt;
  const std::uint64_t unknown = tensor.updates->undetermined;
  return count_of(c, unknown, counts.updates() + unknown);
}

std::optional<Measured> as_power(std::optional<int> log2) {
  return log2 ? finite_number(std::ldexp(1.0, *log2)) : std::nullopt;
}

/// Returns bounds of a count: at least `least`, without an upper bound if there are or may be some.
Interval some(std::size_t least, bool perhaps) {
  return {least, least > 0 || perhaps ? std::numeric_limits<std::uint64_t>::max() : 0};
}

Interval some(Answer answer) { return some(answer == Answer::yes ? 1 : 0, answer != Answer::no); }

void require_sense(const Condition& c, Subject subject) {
  const auto reject = [&](const std::string& why) {
    throw std::invalid_argument(fmt::format("'{}': {}", printable(c.text), why));
  };
  const Field* field = find_field(subject, c.field);
  if (field == nullptr) {
    reject(fmt::format("unknown field '{}'{}; use one of {}", c.field, owner_text(c.field),
                       names_of(subject)));
  }
  if (c.percent && field->base == Base::none) {
    reject(fmt::format("'{}' is not a share of anything; remove the %", c.field));
  }
  if (!c.only.empty() && (subject == Subject::step || find_field(kLogFields, c.field))) {
    reject(fmt::format("'{}' is not of tensors; remove 'for'", c.field));
  }
  if (c.field == "state") return require_state(c);
  if (std::isalpha(static_cast<unsigned char>(c.limit.front()))) {
    reject(fmt::format("'{}' is not a number", c.limit));
  }
  const std::optional<double> limit = nearest(c.limit);
  if (!limit || !std::isfinite(*limit)) {
    reject(fmt::format("number {} is out of the range of binary64, {:.3g} to {:.3g}", c.limit,
                       std::numeric_limits<double>::denorm_min(),
                       std::numeric_limits<double>::max()));
  }
  if (!c.only.empty() && subject == Subject::recommendation) {
    reject("a recommendation is for all tensors; select some with --tensor instead of 'for'");
  }
}

}  // namespace

std::optional<Measured> finite_number(std::optional<double> value) {
  return value && std::isfinite(*value) ? std::optional<Measured>(*value) : std::nullopt;
}

std::optional<Measured> count_of(const Condition& c, const Interval& count, const Interval& of) {
  if (!c.percent) return count;
  return of.high == 0 ? std::nullopt : std::optional<Measured>(Share{count, of});
}

Condition parse_condition(std::string_view text, Subject subject) {
  static const std::regex form(
      R"(\s*(\w+)\s*(<=|>=|==|!=|<|>)\s*)"
      R"((2\^-?\d{1,3}|-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?|[a-z_]+))"
      R"(\s*(%?)(?:\s+for\s+(\S.*?))?\s*)");
  constexpr std::size_t kLongest = 1000;  // std::regex recurses
  const std::string typed(text);
  std::smatch parts;
  if (typed.size() > kLongest || !std::regex_match(typed, parts, form)) {
    throw std::invalid_argument(fmt::format(
        "found '{}', expected 'FIELD OP NUMBER[%] [for ROLE-OR-GLOB]' such as "
        "'flushed_to_zero > 0.1% for weight_grad', with OP of <, <=, >, >=, ==, != and FIELD of {}",
        printable(typed), names_of(subject)));
  }
  Condition c{typed, parts[1], relation_of(parts[2]), parts[3], parts[4].length() != 0, parts[5]};
  require_sense(c, subject);
  return c;
}

bool has_field(Subject subject, std::string_view name) {
  return find_field(subject, name) != nullptr;
}

bool is_of_timeline(const Condition& condition) {
  return find_field(kLogFields, condition.field) != nullptr && !is_of_ranks(condition);
}

bool is_of_ranks(const Condition& condition) { return condition.field == "ranks_differ"; }

bool is_of_quantised(const Condition& condition) { return condition.field == "underflow_share"; }

bool is_of_weights(const Condition& condition) {
  return condition.field == "frozen_weights" || condition.field == "rounded_state";
}

bool is_of_end(const Condition& condition) {
  return condition.field == "state" || condition.field == "nonfinite_since";
}

bool is_of_updates(const Condition& condition) {
  const Field* field = find_field(Subject::tensor, condition.field);
  return field != nullptr && (field->name == "updates" || field->base == Base::updates);
}

std::optional<Measured> measure(const Condition& condition, const TensorFindings& tensor) {
  if (condition.field == "max_abs") return finite_number(tensor.max_abs);
  if (condition.field == "min_abs_nonzero") return finite_number(tensor.min_abs_nonzero);
  if (is_of_updates(condition)) return measure_updates(condition, tensor);
  if (is_of_quantised(condition) || is_of_weights(condition)) return std::nullopt;
  const Field& field = *find_field(Subject::tensor, condition.field);
  const Interval all = tensor.counts.total;
  return count_of(condition, field.count(tensor.counts),
                  field.base == Base::total ? all : tensor.counts.finite_nonzero);
}

std::optional<Measured> measure(const Condition& condition, const TensorPeaks& tensor) {
  const std::size_t nan = tensor.nan_steps.size(), inf = tensor.inf_steps.size();
  if (condition.percent) return std::nullopt;
  if (condition.field == "nan") return some(nan, false);
  if (condition.field == "inf") return some(inf, nan > 0);  // a NaN hides them
  if (condition.field == "overflow") return some(tensor.overflows);
  if (condition.field == "flushed_to_zero") return some(tensor.flushes);
  const bool exact = condition.field == "max_abs" && !tensor.max_abs_at_least;
  return exact ? finite_number(tensor.max_abs) : std::nullopt;
}

std::optional<Measured> measure(const Condition& condition,
                                const recommend::Recommendation& advice) {
  if (condition.field == "static_scale") return as_power(advice.static_log2);
  if (condition.field == "highest") return as_power(advice.highest_log2);
  if (condition.field == "lowest") return as_power(advice.lowest_log2);
  if (condition.field == "nonfinite_steps") return Interval(advice.nonfinite_steps.size());
  if (!advice.static_log2) return std::nullopt;
  if (condition.field == "headroom_bits") return finite_number(advice.headroom_bits);
  return condition.field == "flushed_at_1" ? advice.flushed_at_1 : advice.flushed_at_recommended;
}

std::optional<Measured> measure(const Condition&, const ranks::RankStudy& study) {
  if (!study.judged() && !study.differ()) return std::nullopt;
  return Interval(study.differing().size());
}

bool selects(const Condition& condition, log::Role role, const std::string& name) {
  if (condition.only.empty()) {
    const bool is_weight = role == log::Role::weight || role == log::Role::master_weight;
    return is_weight || !is_of_updates(condition);
  }
  if (const auto wanted = log::find_role(condition.only)) return role == *wanted;
  frames::Selection selection;
  selection.tensor_glob = condition.only;
  return frames::selects(selection, name);
}

bool applies(const Condition& condition, const TensorFindings& tensor) {
  return selects(condition, tensor.role, tensor.name);
}

bool applies(const Condition& condition, const TensorPeaks& tensor) {
  return selects(condition, tensor.role, tensor.name);
}

Verdict test(const Condition& condition, const Measured& value) {
  if (const auto* state = std::get_if<scale_history::RunState>(&value)) {
    const bool same = *state == state_named(condition.limit);
    return same == (condition.relation == Relation::equal) ? Verdict::holds : Verdict::fails;
  }
  if (const auto* number = std::get_if<double>(&value)) {
    if (std::isnan(*number)) return Verdict::fails;  // there is no such step
    return decide(condition.relation, *number, *number, *nearest(condition.limit));
  }
  Exact limit = exact(condition.limit);
  if (condition.percent) limit /= 100;
  if (const auto* range = std::get_if<ShareRange>(&value)) {
    return decide(condition.relation, range->low, range->high, static_cast<double>(limit));
  }
  if (const auto* share = std::get_if<Share>(&value)) {
    const Share::Quotient least = share->least(), most = share->most();
    return decide(condition.relation, quotient(least.part, least.of), quotient(most.part, most.of),
                  limit);
  }
  const auto& count = std::get<Interval>(value);
  return decide(condition.relation, Exact(count.low), Exact(count.high), limit);
}

}  // namespace halfscope::analyzers::gates
