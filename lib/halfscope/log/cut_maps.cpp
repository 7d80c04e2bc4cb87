// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/cut_maps.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>

#include "halfscope/log/read_file.hpp"
#include "halfscope/log/write_all.hpp"

namespace halfscope::log {
namespace {

/// A mapped file. `line` is set before `begin` and does not change while `begin` is not 0.
struct MapPlace {
  std::atomic<bool> taken = false;
  std::atomic<std::uintptr_t> begin = 0, end = 0;
  std::string line;
};

/// Never destroyed, because the handler reads them.
std::atomic<std::array<MapPlace, 1024>*> places = nullptr;

/// Calls only functions that are safe in a signal handler.
void on_fault(int signal, siginfo_t* about, void* /*context*/) {
  const auto address = reinterpret_cast<std::uintptr_t>(about->si_addr);
  for (const MapPlace& place : *places.load()) {
    const std::uintptr_t begin = place.begin.load();
    if (begin == 0 || address < begin || address >= place.end.load()) continue;
    write_all(STDERR_FILENO, place.line);
    ::_exit(1);
  }
  // Any other fault has the default effect: the signal is delivered when this function returns.
  struct sigaction usual = {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  ::raise(signal);
}

}  // namespace

void end_where_maps_are_cut() {
  if (places.load() != nullptr) return;
  places = std::make_unique<std::array<MapPlace, 1024>>().release();
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, nullptr);
}

bool WatchedMap::reserve(const std::string& name) {
  auto* const all = places.load();
  if (all == nullptr) return false;
  for (std::size_t i = 0; i < all->size(); ++i) {
    if ((*all)[i].taken.exchange(true)) continue;
    (*all)[i].line = fmt::format("halfscope: {}: {}\n", name, kCutShort);
    place_ = i + 1;
    return true;
  }
  return false;
}

void WatchedMap::watch(std::span<const std::byte> bytes) {
  MapPlace& place = (*places.load())[place_ - 1];
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  place.end = begin + bytes.size();
  place.begin = begin;
}

WatchedMap::~WatchedMap() {
  if (place_ == 0) return;
  MapPlace& place = (*places.load())[place_ - 1];
  place.begin = 0;
  place.taken = false;
}

}  // namespace halfscope::log
