// SPDX-License-Identifier: Apache-2.0
// A member that most of a million objects do not need: it takes only a pointer while unset.
#pragma once

#include <memory>

namespace halfscope {

/// A value that equals T{} until set() is called. Copies are deep.
template <typename T>
class Rare {
 public:
  Rare() = default;
  Rare(const Rare& other) : value_(other.value_ ? std::make_unique<T>(*other.value_) : nullptr) {}
  Rare(Rare&&) noexcept = default;
  Rare& operator=(const Rare& other) {
    if (this != &other) *this = Rare(other);
    return *this;
  }
  Rare& operator=(Rare&&) noexcept = default;
  ~Rare() = default;

  const T& operator*() const { return value_ ? *value_ : none(); }
  const T* operator->() const { return &**this; }
  /// Returns the value for changes.
  T& set() {
    if (!value_) value_ = std::make_unique<T>();
    return *value_;
  }

 private:
  static const T& none() {
    static const T value{};
    return value;
  }

  std::unique_ptr<T> value_;
};

}  // namespace halfscope
