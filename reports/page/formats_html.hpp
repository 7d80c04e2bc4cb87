// SPDX-License-Identifier: Apache-2.0
// Which tensors fit which formats, tensor by tensor. HTML.
#pragma once

#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::page {

/// The evidence; empty where no tensor has fits.
std::string formats_html(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::page
