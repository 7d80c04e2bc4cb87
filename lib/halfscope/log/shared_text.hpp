// SPDX-License-Identifier: Apache-2.0
// A text shared by up to millions of objects, such as the name of their log.
#pragma once

#include <memory>
#include <string>
#include <utility>

namespace halfscope::log {

/// An immutable text; copies share it.
class SharedText {
 public:
  SharedText() = default;
  SharedText(std::string text)  // NOLINT(google-explicit-constructor): a conversion
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
