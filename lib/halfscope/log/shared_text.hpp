// SPDX-License-Identifier: Apache-2.0
// A text that a million hold, such as the name of their log.
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace halfscope::log {

/// Copies are of one text, which does not change.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text)  // NOLINT(google-explicit-constructor): it is one
      : text_(std::make_shared<const std::string>(std::move(text))) {}

  const std::string& operator*() const { return text_ ? *text_ : none(); }
  operator const std::string&() const { return **this; }  // NOLINT(google-explicit-constructor)
  friend bool operator==(const SharedText& a, const SharedText& b) {
    return a.text_ == b.text_ || *a == *b;
  }

 private:
  static const std::string& none() {
    static const std::string empty;
    return empty;
  }
  std::shared_ptr<const std::string> text_;
};

}  // namespace halfscope::log
