// SPDX-License-Identifier: Apache-2.0
// A fiber that works again and again: resume() goes to it, leave() comes back, and when its work
// ends it leaves too, to begin anew when it is next resumed.
#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstddef>
#include <functional>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

namespace halfscope::emulated {

class Fiber {
 public:
  explicit Fiber(std::function<void()> work) : work_(std::move(work)) {
    boost::context::protected_fixedsize_stack allocator(kStack);
    const boost::context::stack_context stack = allocator.allocate();
    bottom_ = static_cast<char*>(stack.sp) - kStack;
    inside_ = boost::context::fiber(std::allocator_arg,
                                    boost::context::preallocated(stack.sp, stack.size, stack),
                                    allocator, [this](boost::context::fiber&& outside) {
                                      outside_ = std::move(outside);
                                      arrived_inside();
                                      for (;;) {
                                        work_();
                                        leave();
                                      }
                                      return std::move(outside_);
                                    });
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The one that runs now.
  static Fiber* current() { return running(); }

  void resume() {
    running() = this;
#ifdef __SANITIZE_ADDRESS__
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, bottom_, kStack);
#endif
    inside_ = std::move(inside_).resume();
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  }

  /// By the fiber itself.
  void leave() {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(&fake_, outside_bottom_, outside_size_);
#endif
    outside_ = std::move(outside_).resume();
    arrived_inside();
  }

 private:
  static constexpr std::size_t kStack = 256 * 1024;

  static Fiber*& running() {
    static Fiber* fiber = nullptr;
    return fiber;
  }

  void arrived_inside() {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake_, &outside_bottom_, &outside_size_);
#endif
  }

  std::function<void()> work_;
  boost::context::fiber inside_, outside_;
  char* bottom_ = nullptr;
#ifdef __SANITIZE_ADDRESS__
  void* fake_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_size_ = 0;
#endif
};

}  // namespace halfscope::emulated
