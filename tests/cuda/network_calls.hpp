// SPDX-License-Identifier: Apache-2.0
// Every convolution that our networks ask for, at their own batch sizes.
#pragma once

#include <map>
#include <set>
#include <string>

#include "cuda/shape_backend.hpp"

namespace halfscope::test {

/// By network and size of image.
std::map<std::string, std::set<ConvolutionCall>> network_convolutions();

}  // namespace halfscope::test
