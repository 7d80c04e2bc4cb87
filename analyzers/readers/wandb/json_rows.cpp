// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/wandb/json_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "analyzers/readers/common/json_text.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/lines/scalar_log.hpp"

namespace halfscope::analyzers::readers::wandb {
namespace {

constexpr std::size_t kMostBins = std::size_t{1} << 16;     // W&B has 512 at most
constexpr std::size_t kMostNumbers = std::size_t{1} << 20;  // of one object
constexpr std::size_t kDeepest = 16;                        // of objects whose values are kept
constexpr std::size_t kShown = 40;                          // of what is wrong

using Numbers = std::vector<std::pair<std::string, double>>;

std::optional<double> number_of(const Numbers& numbers, std::string_view key) {
  const auto found = std::ranges::find(numbers, key, &Numbers::value_type::first);
  return found == numbers.end() ? std::nullopt : std::optional(found->second);
}

/// An object that is open.
struct Object {
  std::string prefix;  ///< of its values' names
  std::string key;     ///< of the value that comes
  bool is_histogram = false;
  Numbers numbers;
  common::Histogram histogram;
};

/// "packedBins": what W&B's server makes of bins of one width.
std::vector<double> edges_of(const Object& packed) {
  const auto number = [&](std::string_view key) {
    return number_of(packed.numbers, key).value_or(std::numeric_limits<double>::quiet_NaN());
  };
  const double min = number("min"), size = number("size"), count = number("count");
  std::vector<double> edges;
  if (!(count >= 0 && count < static_cast<double>(kMostBins))) return edges;
  const auto bins = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i <= bins; ++i) edges.push_back(min + static_cast<double>(i) * size);
  return edges;
}

/// Builds rows; of everything else it counts how deep it is.
class RowBuilder : public common::JsonEvents {
 public:
  RowBuilder(const RowLayout& layout, const std::function<bool(JsonRow&&)>& visit)
      : layout_(layout), visit_(visit), outside_(layout.list.empty() ? 0 : 1) {}

  void start_object() override {
    if (is_skipped() || open_.size() == kDeepest) {
      ++skipped_;
      return;
    }
    Object object;
    if (open_.size() > outside_) object.prefix = open_.back().prefix + open_.back().key + '.';
    open_.push_back(std::move(object));
  }
  void key(const std::string& name) override {
    if (skipped_ == 0) open_.back().key = name;
  }
  void end_object() override {
    if (skipped_ > 0) {
      --skipped_;
      return;
    }
    const Object object = std::move(open_.back());
    open_.pop_back();
    if (open_.size() > outside_) {
      close(object);
    } else if (open_.size() == outside_ && (in_rows_ || outside_ == 0)) {
      finish_row(object);
    }
  }

  void start_array() override {
    if (is_skipped() || open_.size() < outside_ || (open_.size() == outside_ && in_rows_)) {
      ++skipped_;
      return;
    }
    const bool of_rows =
        open_.size() == outside_ && (outside_ == 0 || open_.back().key == layout_.list);
    (of_rows ? in_rows_ : in_list_) = true;
  }
  void end_array() override {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      (in_list_ ? in_list_ : in_rows_) = false;
    }
  }

  void number(double value) override {
    if (skipped_ > 0 || open_.empty()) return;
    Object& object = open_.back();
    if (!in_list_) {
      const bool between = in_rows_ && open_.size() == outside_;
      if (!between && object.numbers.size() < kMostNumbers) {
        object.numbers.emplace_back(object.key, value);
      }
      return;
    }
    std::vector<double>* const list = object.key == "values" ? &object.histogram.counts
                                      : object.key == "bins" ? &object.histogram.edges
                                                             : nullptr;
    if (list != nullptr && list->size() <= kMostBins) list->push_back(value);
  }
  void text(const std::string& text) override {
    if (is_skipped() || open_.empty()) return;
    if (const auto found = common::number_in(text)) return number(*found);
    const std::string& key = open_.back().key;
    if (key == "_type") open_.back().is_histogram = text == "histogram";
    if (open_.size() == outside_ + 1 && key == layout_.step) {
      row_.odd_step = "'" + text.substr(0, kShown) + "'";
    }
  }
  bool done() const override { return done_; }

 private:
  bool is_skipped() const { return skipped_ > 0 || in_list_; }

  /// An object in a row.
  void close(const Object& object) {
    Object& parent = open_.back();
    if (object.is_histogram) {
      row_.histograms.emplace_back(parent.prefix + parent.key, object.histogram);
    } else if (parent.key == "packedBins") {
      parent.histogram.edges = edges_of(object);
    } else if (outside_ == 0) {
      add_scalars(object);
    }
  }

  void finish_row(const Object& object) {
    add_scalars(object);
    if (const auto step = number_of(object.numbers, layout_.step)) {
      row_.step = lines::whole_step(*step);
      if (!row_.step) row_.odd_step = fmt::format("{}", *step);
    }
    if (outside_ > 0) {
      row_.around_step = number_of(open_.front().numbers, layout_.around_step).value_or(0);
    }
    done_ = !visit_(std::exchange(row_, {}));
  }

  void add_scalars(const Object& object) {
    for (const auto& [name, value] : object.numbers) {
      row_.scalars.emplace_back(object.prefix + name, value);
    }
  }

  const RowLayout& layout_;
  const std::function<bool(JsonRow&&)>& visit_;
  std::size_t outside_;  // objects around the rows
  JsonRow row_;
  std::vector<Object> open_;
  std::uint64_t skipped_ = 0;  // arrays and objects inside of one that is not kept
  bool in_rows_ = false;       // in the array of all rows
  bool in_list_ = false;       // in another array
  bool done_ = false;
};

}  // namespace

std::optional<double> JsonRow::scalar(std::string_view name) const {
  return number_of(scalars, name);
}

std::string read_json_rows(std::string_view text, const RowLayout& layout,
                           const std::function<bool(JsonRow&&)>& visit) {
  RowBuilder builder(layout, visit);
  return common::read_json(text, builder);
}

}  // namespace halfscope::analyzers::readers::wandb
