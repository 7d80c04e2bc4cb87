// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <utility>
#include <vector>

#include "halfscope/log/error.hpp"
#include "reports/answer/policy_paste.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

namespace {

/// Frameworks whose name differs from that of their policy, with the policy.
constexpr std::pair<std::string_view, std::string_view> kFrameworks[] = {
    {"pytorch", "torch"},      {"fastai", "torch"},
    {"lightning", "torch"},    {"accelerate", "torch"},
    {"transformers", "torch"}, {"tensorflow", "keras2"},
    {"keras", "keras3"},       {"jax", "flax"}};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

struct Known {
  std::string_view name;
  std::string about;  ///< its framework
};

std::vector<Known> known_names() {
  std::vector<Known> all;
  for (const policy::Policy& policy : policy::all()) {
    const policy::Info& info = policy::info_of(policy);
    all.push_back({info.name, lower(info.framework)});
  }
  for (const auto& [name, policy] : kFrameworks) all.push_back({name, ""});
  return all;
}

/// fewest letters of a name that is searched for within other names
constexpr std::size_t kTelling = 3;

/// Returns nearly equal names, and names of policies whose framework contains `name`.
std::vector<std::string_view> near(const std::string& name) {
  constexpr std::size_t kMostNear = 4, kMostCompared = 40;
  std::vector<std::pair<std::size_t, std::string_view>> found;
  if (name.size() > kMostCompared) return {};
  for (const Known& known : known_names()) {
    const std::size_t far = edit_distance(name, known.name);
    const bool part = name.size() >= kTelling && (known.about.find(name) != std::string::npos ||
                                                  known.name.find(name) != std::string::npos);
    const bool whole = known.name.size() >= kTelling && name.find(known.name) != std::string::npos;
    if (part || whole || far <= 1 + name.size() / 5) found.emplace_back(far, known.name);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string_view> names;
  for (const auto& [far, known] : found) {
    if (names.size() < kMostNear) names.push_back(known);
  }
  return names;
}

[[noreturn]] void refuse(const std::string& name) {
  std::string out = fmt::format("policy '{}' is unknown; ", log::printable(name));
  const std::vector<std::string_view> meant = near(name);
  if (!meant.empty()) out += fmt::format("did you mean {}? ", fmt::join(meant, " or "));
  std::vector<std::string> stand_for;
  for (const auto& [framework, policy] : kFrameworks) {
    stand_for.push_back(fmt::format("{} for {}", framework, policy));
  }
  std::vector<std::string_view> names;
  for (const policy::Policy& policy : policy::all()) names.push_back(policy::info_of(policy).name);
  throw std::invalid_argument(out + fmt::format("use one of {}; also {}", fmt::join(names, ", "),
                                                fmt::join(stand_for, ", ")));
}

}  // namespace

std::string policy_name_in(std::string_view text) {
  std::string name = lower(text.substr(0, text.find(',')));
  std::erase(name, ' ');
  return name;
}

std::string policy_of_framework(std::string_view framework) {
  for (const auto& [name, policy] : kFrameworks) {
    if (name == framework) return std::string(policy);
  }
  return std::string(framework);
}

policy::Policy policy_called(std::string_view text) {
  const std::string given = policy_name_in(text), name = policy_of_framework(given);
  const std::vector<Known> known = known_names();
  if (std::none_of(known.begin(), known.end(), [&](const Known& k) { return k.name == name; })) {
    refuse(given);
  }
  std::string settings(text.substr(std::min(text.find(','), text.size())));
  std::erase(settings, ' ');
  return policy::make(name + settings);
}

}  // namespace halfscope::reports::answer
