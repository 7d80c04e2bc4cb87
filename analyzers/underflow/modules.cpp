// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/modules.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <sstream>
#include <vector>

namespace halfscope::analyzers::underflow {
namespace {

using log::Role;

/// Returns true if a role's tensors are parameters, named module.parameter.
bool of_parameter(Role role) {
  return role == Role::weight || role == Role::weight_grad || role == Role::local_weight_grad ||
         role == Role::master_weight || role == Role::update || role == Role::weight_after;
}

bool is_index(std::string_view word) {
  return !word.empty() &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns "a.b" for "a.b.c", and an empty path if there is no dot.
std::string_view parent(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string_view last_word(std::string_view path) { return path.substr(path.rfind('.') + 1); }

/// Parses "(conv1): Conv2d(3, 8, ...)" after its indentation. Returns false for other lines.
bool read_line(std::string_view line, std::size_t& depth, std::string& name, std::string& text) {
  const std::size_t indent = line.find_first_not_of(' ');
  if (indent == std::string_view::npos || indent == 0 || line[indent] != '(') return false;
  const std::size_t close = line.find("): ", indent);
  if (close == std::string_view::npos) return false;
  depth = indent / 2;  // PyTorch indents each level by two
  name = line.substr(indent + 1, close - indent - 1);
  text = line.substr(close + 3);
  return !name.empty() && text.find('(') != 0 && !text.empty();
}

/// Returns the names of one line: "(0-2): 3 x Block(...)" stands for three equal modules, whose
/// class is then left in `text`.
std::vector<std::string> names_of(const std::string& name, std::string& text) {
  const std::size_t dash = name.find('-'), times = text.find(" x ");
  const std::string_view first = std::string_view(name).substr(0, dash);
  if (dash == std::string::npos || times == std::string::npos || !is_index(first) ||
      !is_index(std::string_view(name).substr(dash + 1)) || name.size() > 2 * 6) {
    return {name};
  }
  text.erase(0, times + 3);
  std::vector<std::string> names;
  for (int i = std::stoi(name), last = std::stoi(name.substr(dash + 1)); i <= last; ++i) {
    names.push_back(std::to_string(i));
  }
  return names;
}

/// Returns each path with each name appended.
std::vector<std::string> joined(const std::vector<std::string>& paths,
                                const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& path : paths) {
    for (const std::string& name : names) all.push_back(path.empty() ? name : path + "." + name);
  }
  return all;
}

}  // namespace

std::string_view path_of(std::string_view tensor_name) {
  if (!log::role_in_name(tensor_name)) return tensor_name;
  return tensor_name.substr(tensor_name.find('/') + 1);
}

Modules::Modules(const LogFindings& log) {
  for (const TensorFindings& t : log.tensors) {
    if (!of_parameter(t.role)) continue;
    const std::string_view module = parent(path_of(t.name));
    if (!module.empty()) classes_.try_emplace(std::string(module));
  }
  if (!log.manifest) return;
  const auto network = log.manifest->about->find("network");
  if (network == log.manifest->about->end() || !network->is_object()) return;
  const auto text = network->find("text");
  if (text != network->end() && text->is_string()) read_text(text->get<std::string>());
}

void Modules::read_text(const std::string& text) {
  constexpr std::size_t kMost = 1'000'000;               // modules; a damaged text may repeat many
  std::vector<std::vector<std::string>> above = {{""}};  // paths, by depth
  std::istringstream lines(text);
  std::size_t depth = 0;
  std::string name, module;
  classes_[""] = text.substr(0, text.find('('));
  for (std::string line; std::getline(lines, line);) {
    if (!read_line(line, depth, name, module) || depth > above.size()) continue;
    above.resize(depth);
    const std::vector<std::string> names = names_of(name, module);
    if (order_.size() + above.back().size() * names.size() > kMost) return;
    above.push_back(joined(above.back(), names));
    for (const std::string& path : above.back()) {
      classes_[path] = module;
      order_.push_back(path);
    }
  }
}

std::string Modules::of(const TensorFindings& tensor) const {
  const std::string_view path = path_of(tensor.name);
  for (std::string_view known = path; !known.empty(); known = parent(known)) {
    if (classes_.contains(known)) return std::string(known);
  }
  const bool ends_apart = of_parameter(tensor.role) || is_index(last_word(path));
  const std::string_view above = parent(path);
  return std::string(ends_apart && !above.empty() ? above : path);
}

std::string_view Modules::class_of(const std::string& module) const {
  const std::string_view text = text_of(module);
  return text.substr(0, text.find('('));
}

std::string_view Modules::text_of(const std::string& module) const {
  const auto found = classes_.find(module);
  return found == classes_.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace halfscope::analyzers::underflow
