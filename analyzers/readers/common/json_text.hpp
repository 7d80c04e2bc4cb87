// SPDX-License-Identifier: Apache-2.0
// JSON as Python's module json writes it, read object by object: no text is held as a whole tree.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halfscope::analyzers::readers::common {

/// Values by name, in the order of the text.
template <typename T>
class NamedValues : public std::vector<std::pair<std::string, T>> {
 public:
  /// Returns the first value of that name; empty if there is none.
  std::optional<T> named(std::string_view name) const {
    const auto found = std::ranges::find(*this, name, &std::pair<std::string, T>::first);
    return found == this->end() ? std::nullopt : std::optional<T>(found->second);
  }
};

/// The values of one JSON object, without the objects in it.
struct JsonObject {
  /// true and false are 1 and 0. NaN, Infinity and -Infinity are numbers, bare and as strings; so
  /// are strings of other numbers.
  NamedValues<double> numbers;
  NamedValues<std::string> texts;          ///< other strings, cut after 512 bytes
  NamedValues<std::vector<double>> lists;  ///< arrays: at most 2^16 + 1 numbers each
};

/// An object or array that is open while the values in it are read.
struct JsonLevel {
  bool is_array = false;
  std::string key;           ///< in an object: the name of the value that is read
  std::size_t index = 0;     ///< in an array: the position of the value that is read
  JsonObject object;         ///< the values read so far
  std::vector<double> list;  ///< in an array: the numbers read so far
};

/// Called at the end of each object with the levels around it, the outermost first. Returns false
/// to stop reading.
using JsonVisitor =
    std::function<bool(std::span<const JsonLevel> around, const JsonObject& object)>;

/// Reads one JSON text and calls `visit` at the end of each object, for inner objects first.
/// Returns the error, such as "is not JSON at 'x' in line 3, byte 5 of it" (without the line if the
/// text has one line), or an empty text. Values below 24 levels are skipped.
std::string read_json(std::string_view text, const JsonVisitor& visit);

}  // namespace halfscope::analyzers::readers::common
