// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/count/magnitude_sums.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "halfscope/table/count/wide_sum.hpp"
#include "halfscope/table/packed_numbers.hpp"

namespace halfscope {
namespace {

__extension__ using Wide = unsigned __int128;

template <std::size_t N>
void add_limbs(std::array<std::uint64_t, N>& to, const std::array<std::uint64_t, N>& addend) {
  Wide carry = 0;
  for (std::size_t i = 0; i < N; ++i) {
    carry += Wide{to[i]} + addend[i];
    to[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
}

}  // namespace

MagnitudeSums::Part& MagnitudeSums::part_at(int exponent, std::size_t segment) {
  const Part wanted{exponent, static_cast<std::uint32_t>(segment), {}, {}};
  const auto place = [](const Part& part) { return std::pair(part.exponent, part.segment); };
  const auto at = std::ranges::lower_bound(parts_, place(wanted), {}, place);
  if (at != parts_.end() && place(*at) == place(wanted)) return *at;
  return *parts_.insert(at, wanted);
}

void MagnitudeSums::add(Magnitude m, std::uint64_t times) {
  if (times == 0) return;
  const std::uint64_t significand = m.fraction + kFractionUnit;
  const Wide sum = Wide{significand} * times;
  const Wide square = Wide{significand} * significand;
  const Wide low = Wide{static_cast<std::uint64_t>(square)} * times;
  const Wide high = (square >> 64) * times + (low >> 64);  // 42 + 64 bits and a carry
  Part& sums = part_at(m.exponent, cuts_.segment_of(m.fraction));
  add_limbs<2>(sums.magnitudes,
               {static_cast<std::uint64_t>(sum), static_cast<std::uint64_t>(sum >> 64)});
  add_limbs<3>(sums.squares, {static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high),
                              static_cast<std::uint64_t>(high >> 64)});
}

void MagnitudeSums::add(const Part& part) {
  constexpr int kMostExponent = 4096;
  if (part.segment > cuts().size() || part.exponent < -kMostExponent ||
      part.exponent > kMostExponent) {
    throw std::invalid_argument("magnitude sums: a segment that no number lies in");
  }
  Part& sums = part_at(part.exponent, part.segment);
  add_limbs(sums.magnitudes, part.magnitudes);
  add_limbs(sums.squares, part.squares);
}

void MagnitudeSums::merge(const MagnitudeSums& other, int log2_factor) {
  const bool equal = cuts_ == other.cuts_;
  if (!equal && !std::ranges::includes(other.cuts(), cuts())) {
    throw std::invalid_argument("magnitude sums: the other lacks one of these cuts");
  }
  for (const Part& part : other.parts_) {
    const std::size_t segment =
        equal ? part.segment : cuts_.segment_of(other.cuts_.first_of(part.segment));
    Part& sums = part_at(part.exponent + log2_factor, segment);
    add_limbs(sums.magnitudes, part.magnitudes);
    add_limbs(sums.squares, part.squares);
  }
}

/// Sums of the segments below a magnitude, at or above it, and of the one that contains it.
struct MagnitudeSums::Totals {
  detail::WideSum l1[3], l2[3];
};

MagnitudeSums::Totals MagnitudeSums::totals(Magnitude m) const {
  const int base = parts_.empty() ? 0 : parts_.front().exponent;
  Totals t;
  for (int part = 0; part < 3; ++part) {
    t.l1[part] = detail::WideSum(base - 52);
    t.l2[part] = detail::WideSum(2 * base - 104);
  }
  for (const Part& sums : parts_) {
    const int exponent = sums.exponent;
    const bool below = Magnitude{exponent, cuts_.last_of(sums.segment)} < m;
    const bool above = Magnitude{exponent, cuts_.first_of(sums.segment)} >= m;
    const int part = below ? 0 : above ? 1 : 2;
    t.l1[part].add(sums.magnitudes, exponent - 52);
    t.l2[part].add(sums.squares, 2 * exponent - 104);
  }
  return t;
}

namespace {

Bounds share(const detail::WideSum* parts) {
  detail::WideSum most = parts[0];
  most.add(parts[2]);
  detail::WideSum all = most;
  all.add(parts[1]);
  const double low = detail::WideSum::ratio(parts[0], all);
  return {low, parts[2].bit_length() == 0 ? low : detail::WideSum::ratio(most, all)};
}

/// Bounds of parts[sure], which may include the segment that contains the magnitude.
Bounds mass(const detail::WideSum* parts, int sure, int unit) {
  detail::WideSum most = parts[sure];
  most.add(parts[2]);
  return {parts[sure].rounded(unit, false), most.rounded(unit, true)};
}

}  // namespace

MassShare MagnitudeSums::share_below(Magnitude m) const {
  const Totals t = totals(m);
  return {share(t.l1), share(t.l2)};
}

MassSplit MagnitudeSums::split_at(Magnitude m, int reference) const {
  const Totals t = totals(m);
  return {{mass(t.l1, 0, reference), mass(t.l2, 0, 2 * reference)},
          {mass(t.l1, 1, reference), mass(t.l2, 1, 2 * reference)}};
}

std::optional<int> MagnitudeSums::top_exponent() const {
  if (parts_.empty()) return std::nullopt;
  return parts_.back().exponent;
}

PackedSums::PackedSums(const MagnitudeSums& sums) : cuts_(sums.cuts_) {
  std::vector<std::byte> bytes;
  Packer to(bytes);
  for (const MagnitudeSums::Part& part : sums.parts_) {
    to.integer(part.exponent);
    to.natural(part.segment);
    to.wide(part.magnitudes);
    to.wide(part.squares);
  }
  bytes_.assign(bytes.begin(), bytes.end());  // allocates exactly the needed size
}

MagnitudeSums PackedSums::unpacked() const {
  MagnitudeSums sums;
  sums.cuts_ = cuts_;
  sums.parts_.reserve(bytes_.size() / 8);  // a part takes about nine bytes
  Unpacker from(bytes_.data());
  while (from.at() != bytes_.data() + bytes_.size()) {
    MagnitudeSums::Part part;
    part.exponent = static_cast<std::int32_t>(from.integer());
    part.segment = static_cast<std::uint32_t>(from.natural());
    from.wide(part.magnitudes);
    from.wide(part.squares);
    sums.parts_.push_back(part);
  }
  return sums;
}

}  // namespace halfscope
