// SPDX-License-Identifier: Apache-2.0
// The numbers headers in nvcc: its host code everywhere, its device code where there is a device.
#include <cstdint>
#include <iostream>
#include <iterator>
#include <vector>

#include "catch.hpp"
#include "cuda/number_twin.hpp"
#include "number/judge.hpp"
#include "number/samples.hpp"

using namespace halfscope;

namespace {

bool skipped() {
  if (twin::has_device()) return false;
  std::cout << "skipped: no CUDA device\n";  // CTest reports the test as skipped
  return true;
}

/// Every few of the hard encodings of `from`.
std::vector<std::uint64_t> inputs(const NamedFormat& from, const NamedFormat& to) {
  std::vector<std::uint64_t> in;
  const std::vector<std::uint64_t> all = samples::encodings(from.format, to.format);
  for (std::size_t i = 0; i < all.size(); i += 1 + all.size() / 997) {
    if (all[i] != 0) in.push_back(all[i]);
  }
  return in;
}

/// Index of the first output that the oracle finds wrong, plus one; 0 when none is.
std::size_t first_wrong(const std::vector<Rounded>& out, const oracle::Layout& to,
                        const std::vector<oracle::Located>& located, bool negative,
                        const judge::Direction& direction, Tininess tininess) {
  for (std::size_t i = 0; i < located.size(); ++i) {
    const oracle::Answer want = oracle::decide(to, located[i], negative, direction.direction);
    const bool after = tininess == Tininess::after_rounding;
    if (!judge::same(out.at(i), want, after ? want.underflow_after : want.underflow_before)) {
      return i + 1;
    }
  }
  return 0;
}

/// Runs a twin in every direction under both tininess rules. The library's own code is not called
/// here: the linker would keep one copy of an inline function, and nvcc's could be the one dropped.
template <typename Twin>
void judge_pair(const NamedFormat& from, const NamedFormat& to, bool negative, Twin run) {
  const oracle::Layout& target = oracle::layout(to.name);
  const oracle::Layout& source = oracle::layout(from.name);
  std::vector<std::uint64_t> in = inputs(from, to);
  std::vector<oracle::Located> located;
  for (std::uint64_t& code : in) {
    located.push_back(oracle::locate(target, oracle::value(source, code)));
    if (negative) code |= source.sign();
  }
  for (const judge::Direction& direction : judge::kDirections) {
    for (const Tininess tininess : {Tininess::after_rounding, Tininess::before_rounding}) {
      CAPTURE(from.name, to.name, negative, direction.name);
      const std::vector<Rounded> out = run({to.format, from.format, direction.mode, tininess}, in);
      REQUIRE(first_wrong(out, target, located, negative, direction, tininess) == 0);
    }
  }
}

/// Zeros, infinities and NaNs, which are no magnitudes.
template <typename Twin>
void judge_specials(Twin run) {
  const std::vector<Rounded> out =
      run({kBinary16, kBinary32}, {0x80000000, 0x7F800000, 0xFF800000, 0x7FD54000, 0xFF802000});
  const Rounded want[] = {
      {0x8000, {}}, {0x7C00, {}}, {0xFC00, {}}, {0x7EAA, {}}, {0xFE01, {.invalid = true}}};
  REQUIRE(out.size() == std::size(want));
  for (std::size_t i = 0; i < out.size(); ++i) {
    CAPTURE(i);
    CHECK(out[i].bits == want[i].bits);
    CHECK(out[i].flags == want[i].flags);
  }
}

template <typename Twin>
void judge_twin(Twin run) {
  for (const NamedFormat& from : kFormats) {
    for (const NamedFormat& to : kFormats) {
      judge_pair(from, to, false, run);
      judge_pair(from, to, true, run);
    }
  }
  judge_specials(run);
}

}  // namespace

TEST_CASE("nvcc's host code rounds like the oracle", "[cuda][number]") {
  judge_twin(twin::on_host);
}

TEST_CASE("CUDA's conversion to half on the host is ours", "[cuda][number]") {
  CHECK(twin::differences_to_cuda_host(2039) == 0);
}

TEST_CASE("device code rounds like the oracle", "[cuda][number][gpu]") {
  if (skipped()) return;
  judge_twin(twin::on_device);
}

TEST_CASE("the GPU's conversion to half is ours, all 2^32 inputs", "[cuda][number][gpu]") {
  if (skipped()) return;
  CHECK(twin::differences_to_cuda_device(1) == 0);
}
