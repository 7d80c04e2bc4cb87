// SPDX-License-Identifier: Apache-2.0
// The numbers in a file of Transformer Engine's statistics, by name and step, and the names under
// which its debug features log them. A log has millions of numbers, so each is held in a few bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "analyzers/frames/quantised.hpp"

namespace halfscope::analyzers::readers::statistics {

/// A statistic of a tensor in high precision (LogTensorStats).
enum class Magnitude : std::uint8_t { min, max, amax, norm, dynamic_range };
inline constexpr std::size_t kMagnitudes = 5;

/// A statistic of a quantised tensor (LogFp8TensorStats, LogNvfp4TensorStats).
struct Quantised {
  frames::QuantisedStatistic statistic = frames::QuantisedStatistic::underflows;
  frames::Recipe recipe = frames::Recipe::own;
  bool columnwise = false;
};

/// The parts of a logged name such as "mlp.fc1_gradient_mxfp8_underflows%_columnwise". They refer
/// to the text of the logged name, which must outlive them.
struct TeName {
  std::string_view tensor;  ///< "mlp.fc1_gradient"
  std::string_view layer;   ///< "mlp.fc1"; equal to `tensor` if there is no kind
  std::string_view kind;    ///< "gradient"; empty if the name has no known kind
  log::Role role = log::Role::unknown;
  std::variant<Magnitude, Quantised> statistic;
};

/// Splits a logged name. Empty if it does not end with the name of a known statistic.
std::optional<TeName> te_name(std::string_view logged);

/// The steps of all files of a log, numbered from 0 in the order in which they first occur.
class Steps {
 public:
  /// Returns the number of a step, which is added if it is new.
  std::uint32_t number_of(std::int64_t step);
  std::int64_t operator[](std::uint32_t number) const { return steps_[number]; }
  std::size_t size() const { return steps_.size(); }

 private:
  std::vector<std::int64_t> steps_;
  std::unordered_map<std::int64_t, std::uint32_t> numbers_;
  std::uint32_t last_ = 0;  ///< the number returned last: adjacent lines mostly share a step
};

/// The values of one statistic of a tensor, an entry for each line.
struct PrintedSeries {
  std::string_view logged;  ///< the whole logged name
  TeName name;
  std::vector<std::uint32_t> steps;  ///< numbers of the steps
  std::vector<double> values;        ///< as printed
  std::vector<std::uint32_t> lines;  ///< from 1; empty for statistics of quantised tensors
  PrintedSeries* next = nullptr;  ///< the series of the next line; lines mostly repeat their order

  void add(std::uint32_t step, double value);
  void add_line(std::uint64_t line);
  /// Sorts by step and keeps the last value of each step.
  void sort(const Steps& steps_of_log);
};

/// The series of one file, in the order of their first lines.
class PrintedFile {
 public:
  /// Returns the series of a logged name, which is added if it is new. Null if te_name() is empty.
  PrintedSeries* find(std::string_view logged);
  /// Returns the series of a logged name; null if there is none.
  PrintedSeries* known(std::string_view logged);
  void sort(const Steps& steps);
  std::deque<PrintedSeries>& all() { return series_; }
  const std::deque<PrintedSeries>& all() const { return series_; }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>()(name);
    }
  };
  std::unordered_map<std::string, PrintedSeries*, Hash, std::equal_to<>> by_name_;
  std::deque<PrintedSeries> series_;  ///< refer to the names in by_name_
  PrintedSeries* last_ = nullptr;     ///< the result of the last call of find()
};

}  // namespace halfscope::analyzers::readers::statistics
