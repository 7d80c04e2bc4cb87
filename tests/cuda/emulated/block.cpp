// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulated/block.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "cuda/emulated/device.hpp"
#include "cuda/emulated/fiber.hpp"

namespace halfscope::emulated {
namespace {

constexpr unsigned kMostThreads = 1024;

struct Aborted {};  // ends a held thread after another one has failed

enum class State : std::uint8_t { unborn, running, at_barrier, in_warp, ended };

struct Warp {
  // By turns: who is first at the next operation must not overwrite what others have yet to read.
  std::array<std::array<std::uint64_t, kWarp>, 2> values;
  unsigned turn = 0, arrived = 0;
};

struct Thread {
  State state = State::unborn;
  Fiber* fiber = nullptr;  ///< that it is held on
  Place place;             ///< where it is held
};

std::string text(const Place& place) {
  std::string file = place.where.file_name();
  file.erase(0, file.rfind('/') + 1);
  return std::string(place.operation) + " (" + file + ":" + std::to_string(place.where.line()) +
         ")";
}

bool same(const Place& a, const Place& b) {
  return a.where.line() == b.where.line() && a.where.column() == b.where.column() &&
         std::strcmp(a.where.file_name(), b.where.file_name()) == 0;
}

/// One block after another; fibers are kept for the next.
class Block {
 public:
  void run(const std::string& name, const std::function<void()>& thread, unsigned threads);

  // By threads of the block.
  void barrier(const Place& place);
  const std::uint64_t* gather(std::uint64_t mine, unsigned mask, const Place& place);

  Order order = Order::forward;
  unsigned char* shared = nullptr;  ///< nullptr: none was asked for

 private:
  Fiber& idle_fiber();
  void run_threads();
  void hold(State state, const Place& place);
  void release(unsigned thread);
  void release_barrier();
  void abort();
  std::runtime_error failure(const std::string& what) const;

  template <class Visit>
  void in_order(unsigned first, unsigned count, Visit visit) {
    for (unsigned i = 0; i < count; ++i) {
      visit(first + (order == Order::forward ? i : count - 1 - i));
    }
  }

  std::string name_;
  const std::function<void()>* thread_ = nullptr;
  unsigned threads_ = 0, begun_ = 0, alive_ = 0;
  bool aborting_ = false;
  std::exception_ptr error_;
  std::array<Thread, kMostThreads> states_;
  std::array<Warp, kMostThreads / kWarp> warps_;
  std::deque<unsigned> ready_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> idle_;
};

std::runtime_error Block::failure(const std::string& what) const {
  std::map<std::string, std::pair<unsigned, unsigned>> groups;  // how many, and the first
  for (unsigned i = 0; i < threads_; ++i) {
    const Thread& thread = states_[i];
    const std::string where = thread.state == State::ended     ? "have ended"
                              : thread.state == State::running ? "go on"
                              : thread.state == State::unborn  ? "have not begun"
                                                               : "wait at " + text(thread.place);
    ++groups.try_emplace(where, 0, i).first->second.first;
  }
  std::string out = "emulated device: " + name_ + ", block " + std::to_string(blockIdx.x) + " of " +
                    std::to_string(gridDim.x) + ": " + what + ":";
  const char* separator = " ";
  for (const auto& [where, count] : groups) {
    out += separator + std::to_string(count.first) + " of " + std::to_string(threads_) +
           " threads, from thread " + std::to_string(count.second) + ", " + where;
    separator = "; ";
  }
  return std::runtime_error(out);
}

Fiber& Block::idle_fiber() {
  if (idle_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>([this] { run_threads(); }));
    idle_.push_back(fibers_.back().get());
  }
  Fiber& out = *idle_.back();
  idle_.pop_back();
  return out;
}

/// On a fiber: thread after thread.
void Block::run_threads() {
  while (begun_ < threads_ && error_ == nullptr) {
    const unsigned i = order == Order::forward ? begun_ : threads_ - 1 - begun_;
    ++begun_;
    ++alive_;
    states_[i].state = State::running;
    threadIdx.x = i;
    try {
      (*thread_)();
    } catch (const Aborted&) {
    } catch (...) {
      if (error_ == nullptr) error_ = std::current_exception();
    }
    --alive_;
    states_[i].state = State::ended;
  }
  idle_.push_back(Fiber::current());
}

void Block::hold(State state, const Place& place) {
  const unsigned i = threadIdx.x;
  states_[i] = {state, Fiber::current(), place};
  Fiber::current()->leave();
  threadIdx.x = i;
  if (aborting_) throw Aborted{};
}

void Block::release(unsigned thread) {
  states_[thread].state = State::running;
  ready_.push_back(thread);
}

void Block::barrier(const Place& place) { hold(State::at_barrier, place); }

const std::uint64_t* Block::gather(std::uint64_t mine, unsigned mask, const Place& place) {
  const unsigned first = threadIdx.x / kWarp * kWarp, lane = threadIdx.x % kWarp;
  if (mask != 0xFFFFFFFF) throw failure(text(place) + " with a mask that is not full");
  if (first + kWarp > threads_) throw failure(text(place) + " in a warp of fewer than 32 threads");
  Warp& warp = warps_[first / kWarp];
  auto& values = warp.values[warp.turn];
  values[lane] = mine;
  if (++warp.arrived < kWarp) {
    hold(State::in_warp, place);
    return values.data();
  }
  warp.arrived = 0;
  warp.turn ^= 1;
  in_order(first, kWarp, [&](unsigned i) {
    if (i == threadIdx.x) return;
    if (!same(states_[i].place, place)) {
      throw failure(text(place) + ": another lane of the warp is elsewhere");
    }
    release(i);
  });
  return values.data();
}

void Block::release_barrier() {
  const Place* place = nullptr;
  for (unsigned i = 0; i < threads_; ++i) {
    const Thread& thread = states_[i];
    if (thread.state == State::in_warp) throw failure("threads wait in vain");
    if (thread.state != State::at_barrier) continue;
    if (place != nullptr && !same(*place, thread.place)) {
      throw failure("threads wait at different barriers");
    }
    place = &thread.place;
  }
  in_order(0, threads_, [&](unsigned i) {
    if (states_[i].state == State::at_barrier) release(i);
  });
}

/// Ends all held threads.
void Block::abort() {
  aborting_ = true;
  for (unsigned i = 0; i < threads_; ++i) {
    const State state = states_[i].state;
    if (state == State::at_barrier || state == State::in_warp) release(i);
  }
  for (const unsigned i : ready_) states_[i].fiber->resume();
  ready_.clear();
  aborting_ = false;
}

void Block::run(const std::string& name, const std::function<void()>& thread, unsigned threads) {
  name_ = name;
  thread_ = &thread;
  threads_ = threads;
  begun_ = 0;
  error_ = nullptr;
  for (unsigned i = 0; i < threads_; ++i) states_[i].state = State::unborn;
  for (Warp& warp : warps_) warp.arrived = 0;
  while (error_ == nullptr) {
    if (!ready_.empty()) {
      Fiber& fiber = *states_[ready_.front()].fiber;
      ready_.pop_front();
      fiber.resume();
    } else if (begun_ < threads_) {
      idle_fiber().resume();
    } else if (alive_ == 0) {
      return;
    } else {
      try {
        release_barrier();
      } catch (...) {
        error_ = std::current_exception();
      }
    }
  }
  abort();
  std::rethrow_exception(error_);
}

/// Never destroyed: fibers must not be unwound while the program ends.
Block& the_block() {
  static Block& block = *new Block;
  return block;
}

/// Dynamic shared memory of a block: NaNs at first, and guard bytes behind.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes), memory_(bytes / 16 + 1 + kGuard / 16) {}

  unsigned char* data() { return reinterpret_cast<unsigned char*>(memory_.data()); }
  void clear() {
    std::memset(data(), 0xFF, bytes_);
    std::memset(data() + bytes_, kMark, kGuard);
  }
  bool intact() {
    return std::all_of(data() + bytes_, data() + bytes_ + kGuard,
                       [](unsigned char x) { return x == kMark; });
  }

 private:
  static constexpr std::size_t kGuard = 64;
  static constexpr unsigned char kMark = 0xDB;
  struct alignas(16) Unit {
    unsigned char bytes[16];
  };
  std::size_t bytes_;
  std::vector<Unit> memory_;
};

Order first_order() {
  const char* said = std::getenv("HALFSCOPE_EMULATED_ORDER");
  return said != nullptr && std::string(said) == "backward" ? Order::backward : Order::forward;
}

Order& the_order() {
  static Order order = first_order();
  return order;
}

std::uint64_t launched = 0;

}  // namespace

void set_order(Order order) { the_order() = order; }
std::uint64_t launches() { return launched; }

void run_grid(const std::string& name, const std::function<void()>& thread, unsigned blocks,
              unsigned threads, std::size_t shared) {
  static std::mutex one_at_a_time;  // the built-in and the shared variables are there once
  const std::lock_guard lock(one_at_a_time);
  ++launched;
  Block& block = the_block();
  block.order = the_order();
  SharedMemory memory(shared);
  block.shared = shared != 0 ? memory.data() : nullptr;
  gridDim.x = blocks;
  blockDim.x = threads;
  for (unsigned i = 0; i < blocks; ++i) {
    blockIdx.x = block.order == Order::forward ? i : blocks - 1 - i;
    memory.clear();
    block.run(name, thread, threads);
    if (!memory.intact()) {
      throw std::runtime_error("emulated device: " + name + ", block " +
                               std::to_string(blockIdx.x) +
                               ": wrote behind its dynamic shared memory");
    }
  }
}

void block_barrier(const Place& place) { the_block().barrier(place); }

const std::uint64_t* warp_gather(std::uint64_t mine, unsigned mask, const Place& place) {
  return the_block().gather(mine, mask, place);
}

void* dynamic_shared_memory() {
  if (the_block().shared != nullptr) return the_block().shared;
  throw std::runtime_error("emulated device: dynamic_shared(), but the launch asked for none");
}

}  // namespace halfscope::emulated
