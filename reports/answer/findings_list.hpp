// SPDX-License-Identifier: Apache-2.0
// The parts of findings(): each adds its findings to `to`, or nothing. Internal to findings*.cpp.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/finding.hpp"

namespace halfscope::reports::answer::found {

using List = std::vector<Finding>;

/// Returns the usual name of the target format, for example "FP16".
std::string format_name(const analyzers::underflow::Analysis& analysis);
/// Returns at most three names, and the number of the others.
std::string some_names(const std::vector<std::string>& names);

// findings_broken.cpp: failures that no loss scale prevents
void carried(const analyzers::Study& study, List& to);
void alarms(const analyzers::Study& study, List& to);
void collapse(const analyzers::Study& study, List& to);
void lasting(const analyzers::Study& study, List& to);
void in_model(const analyzers::Study& study, List& to);
void without_cure(const analyzers::Study& study, List& to);
// findings_adam.cpp
void adam(const analyzers::Study& study, List& to);
// findings_layers.cpp
void shifts(const analyzers::Study& study, List& to);
void scores(const analyzers::Study& study, List& to);
// findings_updates.cpp
void lost_updates(const analyzers::Study& study, List& to);
// findings_overflow.cpp
void overflow(const analyzers::Study& study, List& to);
void thin_headroom(const analyzers::Study& study, List& to);
// findings_policies.cpp
void policies(const analyzers::Study& study, List& to);
// findings_underflow.cpp
void underflow(const analyzers::Study& study, List& to);
void no_single_scale(const analyzers::Study& study, List& to);
void rounding_noise(const analyzers::Study& study, List& to);
void unusual_scale(const analyzers::Study& study, List& to);
void unknown(const analyzers::Study& study, List& to);
// findings_quantised.cpp
void quantised(const analyzers::Study& study, List& to);
// findings_formats.cpp
void formats(const analyzers::Study& study, List& to);
void delayed_scaling(const analyzers::Study& study, List& to);
void mx_gradients(const analyzers::Study& study, List& to);
// findings.cpp
void dimensions(const analyzers::Study& study, List& to);
void summed_loss(const analyzers::Study& study, List& to);
void ranks(const analyzers::Study& study, List& to);

}  // namespace halfscope::reports::answer::found
