// SPDX-License-Identifier: Apache-2.0
// Notes from reading a log.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyzers/frames/message.hpp"

namespace halfscope::analyzers::frames {

/// Notes such as skipped tensors, assumed roles and cut tails: in order of arrival, none twice.
class Notes {
 public:
  Notes() = default;
  Notes(std::initializer_list<Message> notes) { add_all(notes); }
  void add(Message note) {
    if (known_.insert(note.text()).second) all_.push_back(std::move(note));
  }
  /// `more`: a range of messages or strings.
  void add_all(const auto& more) {
    for (const auto& note : more) add(note);
  }
  void clear() { *this = {}; }

  bool empty() const { return all_.empty(); }
  std::size_t size() const { return all_.size(); }
  const Message& front() const { return all_.front(); }
  const Message& operator[](std::size_t i) const { return all_[i]; }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  bool operator==(const Notes& other) const { return all_ == other.all_; }

 private:
  std::vector<Message> all_;
  std::unordered_set<std::string> known_;
};

}  // namespace halfscope::analyzers::frames
