// SPDX-License-Identifier: Apache-2.0
// JSON as Python's module json writes it, read from beginning to end: nothing of it is kept.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace halfscope::analyzers::readers::common {

/// Called for the parts of a JSON text, in order.
class JsonEvents {
 public:
  JsonEvents() = default;
  JsonEvents(const JsonEvents&) = delete;
  JsonEvents& operator=(const JsonEvents&) = delete;
  virtual ~JsonEvents() = default;

  virtual void start_object() = 0;
  virtual void key(const std::string& name) = 0;
  virtual void end_object() = 0;
  virtual void start_array() = 0;
  virtual void end_array() = 0;
  /// true and false are 1 and 0; NaN, Infinity and -Infinity are numbers, bare and as strings.
  virtual void number(double value) = 0;
  virtual void text(const std::string& value) = 0;
  virtual void null() {}

  /// Whether all that is wanted is read: the rest is not looked at.
  virtual bool done() const { return false; }
};

/// One JSON text. Returns what is wrong with it, "is not JSON at 'x' in line 3, byte 5 of it";
/// empty where nothing is. Of a text of one line the line is not told. What
/// is nested takes a bit of memory a level and no stack; a string of 16 MiB ends the text.
std::string read_json(std::string_view text, JsonEvents& events);

}  // namespace halfscope::analyzers::readers::common
