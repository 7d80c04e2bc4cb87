// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/kind_names.hpp"

namespace halfscope::analyzers::readers::common {

std::string names_of_kinds() {
  std::string names;
  for (const std::string_view& name : kKindNames) {
    const char* before = names.empty() ? "" : &name == &kKindNames.back() ? " or " : ", ";
    names += before + std::string(name);
  }
  return names;
}

}  // namespace halfscope::analyzers::readers::common
