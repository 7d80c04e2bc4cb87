// SPDX-License-Identifier: Apache-2.0
// The emulated device's memory: the processor's, with NaNs in what is fresh or freed and with guard
// bytes around.
#pragma once

#include <cstddef>

namespace halfscope::emulated {

enum class Space : unsigned char { device, pinned };

/// nullptr where the device would have no more.
void* allocate(std::size_t bytes, Space space);
/// False where p is no allocation of this space.
bool release(void* p, Space space);

/// Whether [p, p + bytes) lies inside one live allocation of this space.
bool inside(const void* p, std::size_t bytes, Space space);

constexpr std::size_t kDeviceBytes = std::size_t{4} << 30;
std::size_t device_bytes_allocated();

}  // namespace halfscope::emulated
