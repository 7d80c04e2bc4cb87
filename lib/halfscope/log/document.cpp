// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/document.hpp"

#include <nlohmann/json.hpp>

#include <utility>

namespace halfscope::log {

Document::Document() : Document(nlohmann::json::object()) {}
Document::Document(nlohmann::json value)
    : value_(std::make_unique<nlohmann::json>(std::move(value))) {}
Document::Document(const Document& other) : Document(*other) {}
Document::Document(Document&& other) noexcept = default;
Document& Document::operator=(const Document& other) { return *this = Document(other); }
Document& Document::operator=(Document&& other) noexcept = default;
Document::~Document() = default;

}  // namespace halfscope::log
