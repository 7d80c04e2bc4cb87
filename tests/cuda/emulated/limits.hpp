// SPDX-License-Identifier: Apache-2.0
// The limits of sm_90 that launches are held against.
#pragma once

namespace halfscope::emulated {

constexpr int kMostThreads = 1024;
constexpr int kMostShared = 227 * 1024;  // a block's, when it is asked for
constexpr int kProcessors = 132;         // an H100 SXM's

}  // namespace halfscope::emulated
