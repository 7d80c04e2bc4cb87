// SPDX-License-Identifier: Apache-2.0
// add, multiply and fused_multiply_add of arrays against the scalar emulator, for every mode and
// every set of instructions that this processor has.
#include "catch.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "inputs.hpp"

namespace test_arithmetic {

using namespace arrays;

using Words = std::vector<std::uint16_t>;
using View = std::span<const std::uint16_t>;

const std::vector<Modes> kAllModes = all_modes();
const std::vector<std::string> kTargets = targets();

struct Operands {
  Words a, b, c;

  void append(std::uint16_t x, std::uint16_t y, std::uint16_t z) {
    a.push_back(x);
    b.push_back(y);
    c.push_back(z);
  }
};

/// All pairs of hard encodings, and random ones; c as a pair's third.
Operands pairs(Format f, int random_ones) {
  const Words hard = hard_encodings(f);
  Operands all;
  for (const std::uint16_t x : hard) {
    for (const std::uint16_t y : hard) all.append(x, y, 0);
  }
  std::mt19937 random(7);
  for (int i = 0; i < random_ones; ++i) {
    const auto r = static_cast<std::uint32_t>(random());
    all.append(static_cast<std::uint16_t>(r), static_cast<std::uint16_t>(r >> 16),
               static_cast<std::uint16_t>(random()));
  }
  return all;
}

/// Hard triples, random ones, and ones whose sum nearly cancels, where binary32 drops bits.
Operands triples(Format f, int random_ones) {
  Words some;
  const Words hard = hard_encodings(f);
  for (std::size_t i = 0; i < hard.size(); i += 2) some.push_back(hard[i]);
  Operands all;
  for (const std::uint16_t x : some) {
    for (const std::uint16_t y : some) {
      for (const std::uint16_t z : some) all.append(x, y, z);
    }
  }
  std::mt19937 random(11);
  for (int i = 0; i < random_ones; ++i) {
    const auto x = static_cast<std::uint16_t>(random()), y = static_cast<std::uint16_t>(random());
    all.append(x, y, static_cast<std::uint16_t>(random()));
    const std::uint64_t product = multiply(f, x, y).bits ^ f.sign_mask();
    all.append(x, y, static_cast<std::uint16_t>(product + random() % 5 - 2));
  }
  all.append(0x39C0, 0xC3FE, 0x07FE);  // binary16: C1BF, by way of binary32's fma C1BE
  return all;
}

enum class Op { add, multiply, fma };

Rounded scalar(Op op, Format f, const Operands& x, std::size_t i, const Modes& modes) {
  switch (op) {
    case Op::add: return add(f, x.a[i], x.b[i], modes);
    case Op::multiply: return multiply(f, x.a[i], x.b[i], modes);
    case Op::fma: break;
  }
  return fused_multiply_add(f, x.a[i], x.b[i], x.c[i], modes);
}

Flags array(Op op, Format f, View a, View b, View c, std::span<std::uint16_t> out,
            const ArrayOptions& options) {
  switch (op) {
    case Op::add: return add(f, a, b, out, options);
    case Op::multiply: return multiply(f, a, b, out, options);
    case Op::fma: break;
  }
  return fused_multiply_add(f, a, b, c, out, options);
}

/// Empty, or the first difference on any target: encodings, flags of all, flags of each alone.
std::string difference(Op op, Format f, const Operands& x, const ArrayOptions& options,
                       std::size_t alone_stride) {
  Words want, out(x.a.size());
  std::vector<Flags> flags;
  Flags all;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Rounded r = scalar(op, f, x, i, modes_of(options, i));
    want.push_back(static_cast<std::uint16_t>(r.bits));
    flags.push_back(r.flags);
    all |= r.flags;
  }
  const auto where = [&](const std::string& target, std::size_t i) {
    return fmt::format("{}, operation {}, {:04X} {:04X} {:04X} -> {:04X}: ", target,
                       static_cast<int>(op), x.a[i], x.b[i], x.c[i], want[i]);
  };
  for (const std::string& target : kTargets) {
    const OnTarget only(target);
    const Flags raised = array(op, f, x.a, x.b, x.c, out, options);
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i] != want[i]) return where(target, i) + fmt::format("{:04X}", out[i]);
    }
    if (!(raised == all)) return "flags " + text(raised) + ", not " + text(all);
    for (std::size_t i = 0; i < out.size(); i += alone_stride) {
      ArrayOptions own = options;
      own.first_index += i;
      const Flags alone = array(op, f, View(x.a).subspan(i, 1), View(x.b).subspan(i, 1),
                                View(x.c).subspan(i, 1), std::span(out).subspan(i, 1), own);
      if (!(alone == flags[i])) return where(target, i) + text(alone) + ", not " + text(flags[i]);
    }
  }
  return {};
}

ArrayOptions one_thread(const Modes& modes) {
  return {.modes = modes, .seed = 99, .first_index = 5, .threads = 1};
}

void check_all_modes(Format f) {
  const Operands two = pairs(f, 1000), three = triples(f, 1000);
  for (const Modes& modes : kAllModes) {
    INFO(text(modes));
    REQUIRE(difference(Op::add, f, two, one_thread(modes), 5) == "");
    REQUIRE(difference(Op::multiply, f, two, one_thread(modes), 5) == "");
    REQUIRE(difference(Op::fma, f, three, one_thread(modes), 23) == "");
  }
}

TEST_CASE("binary16 arithmetic, all modes", "[array][arithmetic]") { check_all_modes(kBinary16); }

TEST_CASE("bfloat16 arithmetic, all modes", "[array][arithmetic]") { check_all_modes(kBfloat16); }

TEST_CASE("binary16 arithmetic, F16C's modes, random operands", "[array][arithmetic]") {
  const Operands two = pairs(kBinary16, 200000 / kOneIn),
                 three = triples(kBinary16, 100000 / kOneIn);
  for (const Modes& modes : f16c_modes()) {
    if (modes.nan == NanPolicy::canonical) continue;  // as cuda, with another constant
    INFO(text(modes));
    REQUIRE(difference(Op::add, kBinary16, two, one_thread(modes), 3) == "");
    REQUIRE(difference(Op::multiply, kBinary16, two, one_thread(modes), 3) == "");
    REQUIRE(difference(Op::fma, kBinary16, three, one_thread(modes), 3) == "");
  }
}

TEST_CASE("formats that only the scalar code computes", "[array][arithmetic]") {
  for (const Format& f : {Format{6, 31, 12}, Format{13, 3, 16}, Format{5, 1023, 16}}) {
    Operands x = pairs(f, 3000);
    for (Words* words : {&x.a, &x.b, &x.c}) {
      for (std::uint16_t& w : *words) w &= static_cast<std::uint16_t>(2 * f.sign_mask() - 1);
    }
    for (const Op op : {Op::add, Op::multiply, Op::fma}) {
      REQUIRE(difference(op, f, x, one_thread({}), 7) == "");
    }
  }
}

TEST_CASE("fused_multiply_add rounds once", "[array][arithmetic][table]") {
  const Words a(100, 0x39C0), b(100, 0xC3FE), c(100, 0x07FE);
  for (const std::string& target : kTargets) {
    const OnTarget only(target);
    Words out(100);
    const Flags flags = fused_multiply_add(kBinary16, a, b, c, out);
    CHECK(out == Words(100, 0xC1BF));
    CHECK(flags == Flags{.inexact = true});
  }
}

}  // namespace test_arithmetic
