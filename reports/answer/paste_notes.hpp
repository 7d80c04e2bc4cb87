// SPDX-License-Identifier: Apache-2.0
// What lines to paste need to be told with: for a static scale (snippets) and for a policy's
// settings (policy_paste) alike.
#pragma once

#include <string_view>

namespace halfscope::reports::answer {

inline constexpr std::string_view kOlderPyTorch =
    "Before PyTorch 2.3 it is torch.cuda.amp.GradScaler, without \"cuda\".";
inline constexpr std::string_view kFastaiArguments =
    "to_fp16 hands its arguments to PyTorch's GradScaler.";
inline constexpr std::string_view kLightningPrecision =
    "Give Trainer no precision beside it: the plugin sets it.";
inline constexpr std::string_view kTransformersOrder =
    "After the Trainer is made with fp16=True, before trainer.train().";
inline constexpr std::string_view kKerasWraps =
    "Give model.compile the wrapped optimizer and auto_scale_loss=False, or it wraps it again.";

}  // namespace halfscope::reports::answer
