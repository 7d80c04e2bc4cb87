// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulated/memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cuda/emulated/device.hpp"

namespace halfscope::emulated {
namespace {

constexpr std::size_t kGuard = 256;  // also what cudaMalloc's addresses are multiples of
constexpr unsigned char kMark = 0xDB, kPoison = 0xFF;
constexpr std::size_t kFreedKept = std::size_t{64} << 20;

using Bytes = unsigned char;

struct Allocation {
  Bytes* data = nullptr;
  std::size_t bytes = 0;
  Space space = Space::device;

  Bytes* base() const { return data - kGuard; }
  std::string name() const {
    return std::string(space == Space::device ? "device" : "pinned") + " memory of " +
           std::to_string(bytes) + " bytes";
  }
};

bool all(const Bytes* from, std::size_t count, Bytes value) {
  return std::all_of(from, from + count, [=](Bytes x) { return x == value; });
}

/// All allocations, and the last freed ones, which nobody may write any more.
class Table {
 public:
  void* allocate(std::size_t bytes, Space space);
  bool release(void* p, Space space);
  bool inside(const void* p, std::size_t bytes, Space space);
  std::size_t allocated(Space space);
  void report(const std::string& problem);
  std::string take_problems();

 private:
  void check_guards(const Allocation& a);
  void check_freed(const Allocation& a);
  void report_locked(const std::string& problem) { problems_ += problem + "\n"; }

  std::mutex mutex_;
  std::map<const Bytes*, Allocation> live_;
  std::deque<Allocation> freed_;
  std::size_t freed_bytes_ = 0;
  std::size_t allocated_[2] = {};
  std::string problems_;
};

void* Table::allocate(std::size_t bytes, Space space) {
  const std::lock_guard lock(mutex_);
  if (space == Space::device && bytes > kDeviceBytes - allocated_[0]) return nullptr;
  const std::size_t whole = (bytes + 3 * kGuard - 1) / kGuard * kGuard;
  auto* base = static_cast<Bytes*>(std::aligned_alloc(kGuard, whole));
  if (base == nullptr) return nullptr;
  const Allocation a = {base + kGuard, bytes, space};
  std::memset(base, kMark, whole);
  std::memset(a.data, kPoison, bytes);
  live_[a.data] = a;
  allocated_[static_cast<int>(space)] += bytes;
  return a.data;
}

void Table::check_guards(const Allocation& a) {
  if (!all(a.base(), kGuard, kMark)) report_locked("written before " + a.name());
  if (!all(a.data + a.bytes, kGuard, kMark)) report_locked("written behind " + a.name());
  std::memset(a.base(), kMark, kGuard);  // reported once
  std::memset(a.data + a.bytes, kMark, kGuard);
}

void Table::check_freed(const Allocation& a) {
  if (!all(a.data, a.bytes, kPoison)) report_locked("written after it was freed: " + a.name());
  std::memset(a.data, kPoison, a.bytes);
}

bool Table::release(void* p, Space space) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(static_cast<Bytes*>(p));
  if (found == live_.end() || found->second.space != space) {
    const bool before =
        std::any_of(freed_.begin(), freed_.end(), [&](const Allocation& a) { return a.data == p; });
    report_locked(before ? "freed twice" : "freed, but not allocated as such");
    return false;
  }
  const Allocation a = found->second;
  live_.erase(found);
  check_guards(a);
  std::memset(a.data, kPoison, a.bytes);
  allocated_[static_cast<int>(space)] -= a.bytes;
  freed_.push_back(a);
  freed_bytes_ += a.bytes;
  while (freed_bytes_ > kFreedKept || freed_.size() > 1000) {
    check_freed(freed_.front());
    freed_bytes_ -= freed_.front().bytes;
    std::free(freed_.front().base());
    freed_.pop_front();
  }
  return true;
}

bool Table::inside(const void* p, std::size_t bytes, Space space) {
  const std::lock_guard lock(mutex_);
  const auto* first = static_cast<const Bytes*>(p);
  auto found = live_.upper_bound(first);
  if (found == live_.begin()) return false;
  const Allocation& a = (--found)->second;
  const auto before = static_cast<std::size_t>(first - a.data);
  return a.space == space && before <= a.bytes && bytes <= a.bytes - before;
}

std::size_t Table::allocated(Space space) {
  const std::lock_guard lock(mutex_);
  return allocated_[static_cast<int>(space)];
}

void Table::report(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  report_locked(problem);
}

std::string Table::take_problems() {
  const std::lock_guard lock(mutex_);
  for (const auto& entry : live_) check_guards(entry.second);
  for (const Allocation& a : freed_) check_freed(a);
  return std::exchange(problems_, "");
}

/// Never destroyed: static objects may free memory while the program ends.
Table& table() {
  static Table& all = *new Table;
  return all;
}

/// Destroyed after all static objects of the tests, since it is constructed before them.
struct AtExit {
  ~AtExit() {
    std::string problems = take_problems();
    if (bytes_allocated() != 0) {
      problems += "never freed: " + std::to_string(bytes_allocated()) + " bytes\n";
    }
    if (objects_alive() != 0) {
      problems += "never destroyed: " + std::to_string(objects_alive()) + " streams, events...\n";
    }
    if (problems.empty()) return;
    std::fflush(nullptr);
    std::fprintf(stderr, "emulated device:\n%s", problems.c_str());
    _exit(1);
  }
};
__attribute__((init_priority(101))) AtExit at_exit;

}  // namespace

void* allocate(std::size_t bytes, Space space) { return table().allocate(bytes, space); }
bool release(void* p, Space space) { return table().release(p, space); }
bool inside(const void* p, std::size_t bytes, Space space) {
  return table().inside(p, bytes, space);
}
std::size_t device_bytes_allocated() { return table().allocated(Space::device); }
std::size_t bytes_allocated() {
  return table().allocated(Space::device) + table().allocated(Space::pinned);
}
bool on_device(const void* p, std::size_t bytes) { return inside(p, bytes, Space::device); }
void report_problem(const std::string& problem) { table().report(problem); }
std::string take_problems() { return table().take_problems(); }

}  // namespace halfscope::emulated
