// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/wandb/wandb_rows.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "analyzers/readers/common/json_text.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::analyzers::readers::wandb {
namespace {

constexpr std::size_t kMostBins = std::size_t{1} << 16;     // W&B has 512 at most
constexpr std::size_t kMostNumbers = std::size_t{1} << 20;  // of one object
constexpr std::size_t kDeepest = 16;                        // of objects whose values are kept
constexpr std::size_t kShown = 40;                          // of what is wrong

/// An object that is open.
struct Object {
  std::string prefix;  ///< of its values' names
  std::string key;     ///< of the value that comes
  bool is_histogram = false;
  std::vector<std::pair<std::string, double>> numbers;
  common::Histogram histogram;
};

double number_of(const Object& packed, std::string_view key) {
  for (const auto& [name, value] : packed.numbers) {
    if (name == key) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

/// "packedBins": what W&B's server makes of bins of one width.
std::vector<double> edges_of(const Object& packed) {
  const double min = number_of(packed, "min"), size = number_of(packed, "size");
  const double count = number_of(packed, "count");
  std::vector<double> edges;
  if (!(count >= 0 && count < static_cast<double>(kMostBins))) return edges;
  const auto bins = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i <= bins; ++i) edges.push_back(min + static_cast<double>(i) * size);
  return edges;
}

/// Builds rows; of everything else it counts how deep it is.
class RowBuilder : public common::JsonEvents {
 public:
  explicit RowBuilder(const std::function<void(HistoryRow&&)>& visit) : visit_(visit) {}

  void text(const std::string& text) override {
    if (skipped_ > 0 || in_list_ || open_.empty()) return;
    if (open_.back().key == "_type") open_.back().is_histogram = text == "histogram";
    if (open_.size() == 1 && open_.back().key == "_step") {
      row_.odd_step = "'" + text.substr(0, kShown) + "'";
    }
  }

  void start_object() override {
    if (skipped_ > 0 || in_list_ || open_.size() == kDeepest) {
      ++skipped_;
      return;
    }
    Object object;
    if (!open_.empty()) object.prefix = open_.back().prefix + open_.back().key + '.';
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
    close(object);
  }

  void start_array() override {
    if (skipped_ > 0 || in_list_ || (open_.empty() && in_rows_)) {
      ++skipped_;
      return;
    }
    (open_.empty() ? in_rows_ : in_list_) = true;
  }
  void end_array() override {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      in_list_ = false;
    }
  }

  void number(double value) override {
    if (skipped_ > 0 || open_.empty()) return;
    Object& object = open_.back();
    if (!in_list_) {
      if (object.numbers.size() < kMostNumbers) object.numbers.emplace_back(object.key, value);
      return;
    }
    std::vector<double>* const list = object.key == "values" ? &object.histogram.counts
                                      : object.key == "bins" ? &object.histogram.edges
                                                             : nullptr;
    if (list != nullptr && list->size() <= kMostBins) list->push_back(value);
  }

 private:
  void close(const Object& object) {
    if (open_.empty()) return finish_row(object);
    Object& parent = open_.back();
    if (object.is_histogram) {
      row_.histograms.emplace_back(parent.prefix + parent.key, object.histogram);
    } else if (parent.key == "packedBins") {
      parent.histogram.edges = edges_of(object);
    } else {
      add_scalars(object);
    }
  }

  void finish_row(const Object& object) {
    add_scalars(object);
    for (const auto& [name, value] : object.numbers) {
      if (name != "_step") continue;
      if (std::abs(value) < 0x1p53 && value == std::trunc(value)) {
        row_.step = static_cast<std::int64_t>(value);
      } else {
        row_.odd_step = fmt::format("{}", value);
      }
    }
    visit_(std::exchange(row_, HistoryRow{}));
  }

  void add_scalars(const Object& object) {
    for (const auto& [name, value] : object.numbers) {
      row_.scalars.emplace_back(object.prefix + name, value);
    }
  }

  const std::function<void(HistoryRow&&)>& visit_;
  HistoryRow row_;
  std::vector<Object> open_;
  std::uint64_t skipped_ = 0;  // arrays and objects inside of one that is not kept
  bool in_rows_ = false;       // in the array of all rows
  bool in_list_ = false;       // in an array of a row
};

/// One JSON text. Returns what is wrong with it; empty where nothing is.
std::string parse(std::string_view text, const std::function<void(HistoryRow&&)>& visit) {
  RowBuilder builder(visit);
  return common::read_json(text, builder);
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

/// Whether the file has one object a line.
bool has_lines_of_objects(const log::OpenPath& file) {
  common::TextLines lines(file);
  auto line = lines.next();
  while (line && is_blank(*line)) line = lines.next();
  if (!line) return true;
  const std::size_t first = line->find_first_not_of(" \t");
  const std::size_t last = line->find_last_not_of(" \t");
  return (*line)[first] == '{' && (*line)[last] == '}';
}

}  // namespace

void for_each_history_row(const log::OpenPath& file, const std::function<void(HistoryRow&&)>& visit,
                          common::BadLines& bad, const frames::Progress& progress,
                          std::uint64_t before, std::uint64_t in_all) {
  if (has_lines_of_objects(file)) {
    common::TextLines lines(file, progress, before, in_all);
    const std::function<void(HistoryRow &&)> visit_line = [&](HistoryRow&& row) {
      row.line = lines.number();
      visit(std::move(row));
    };
    while (const auto line = lines.next()) {
      if (is_blank(*line)) continue;
      const std::string why = parse(*line, visit_line);
      if (!why.empty()) bad.add(lines.number(), why);
    }
    return;
  }
  const std::string text = log::read_text(file);
  const std::string why = parse(text, visit);
  if (!why.empty()) bad.add(1, why + "; the rest is not read");
  if (progress) progress(before + text.size(), in_all);
}

}  // namespace halfscope::analyzers::readers::wandb
