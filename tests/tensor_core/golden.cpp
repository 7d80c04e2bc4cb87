// SPDX-License-Identifier: Apache-2.0
#include "tensor_core/golden.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>

namespace probe {
namespace {

constexpr char kMagic[] = {'H', 'S', 'T', 'C'};
constexpr std::uint32_t kVersion = 1;

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

class Bytes {
 public:
  Bytes(const std::filesystem::path& file) : name_(file.string()) {
    std::ifstream in(file, std::ios::binary);
    if (!in) fail("cannot be opened");
    bytes_.assign(std::istreambuf_iterator<char>(in), {});
  }

  std::uint32_t take(int bytes) {
    if (bytes_.size() - at_ < static_cast<std::size_t>(bytes)) fail("ends too early");
    std::uint32_t value = 0;
    for (int i = 0; i < bytes; ++i) {
      value |= std::uint32_t{static_cast<unsigned char>(bytes_[at_++])} << (8 * i);
    }
    return value;
  }

  template <typename T>
  T take_below(std::uint32_t count) {
    const std::uint32_t value = take(1);
    if (value >= count) fail("has a value out of range");
    return static_cast<T>(value);
  }

  bool at_end() const { return at_ == bytes_.size(); }
  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(name_ + " " + why);
  }

 private:
  std::string name_, bytes_;
  std::size_t at_ = 0;
};

void put_row(std::string& out, const GoldenRow& row) {
  put(out, static_cast<std::uint64_t>(row.instruction), 1);
  put(out, static_cast<std::uint64_t>(row.accumulator), 1);
  put(out, static_cast<std::uint64_t>(row.distribution), 1);
  put(out, static_cast<std::uint64_t>(row.choice), 1);
  put(out, row.a.size(), 2);
  put(out, 0, 2);
  for (const std::uint16_t a : row.a) put(out, a, 2);
  for (const std::uint16_t b : row.b) put(out, b, 2);
  put(out, row.c, 4);
  put(out, row.d, 4);
}

GoldenRow take_row(Bytes& in) {
  GoldenRow row{};
  row.instruction = in.take_below<Instruction>(kInstructions.size());
  row.accumulator = in.take_below<Accumulator>(2);
  row.distribution = in.take_below<Distribution>(static_cast<std::uint32_t>(Distribution::count));
  row.choice = in.take_below<Choice>(3);
  const std::uint32_t k = in.take(2);
  in.take(2);
  for (auto* const side : {&row.a, &row.b}) {
    for (std::uint32_t i = 0; i < k; ++i) {
      side->push_back(static_cast<std::uint16_t>(in.take(2)));
    }
  }
  row.c = in.take(4);
  row.d = in.take(4);
  return row;
}

}  // namespace

void write_golden(const std::filesystem::path& file, const std::vector<GoldenRow>& rows) {
  std::string out(kMagic, sizeof kMagic);
  put(out, kVersion, 4);
  put(out, rows.size(), 4);
  for (const GoldenRow& row : rows) put_row(out, row);
  std::ofstream to(file, std::ios::binary);
  to.write(out.data(), static_cast<std::streamsize>(out.size()));
  if (!to.flush()) throw std::runtime_error(file.string() + " cannot be written");
}

std::vector<GoldenRow> read_golden(const std::filesystem::path& file) {
  Bytes in(file);
  for (const char c : kMagic) {
    if (in.take(1) != static_cast<std::uint32_t>(c)) in.fail("is no file of golden rows");
  }
  if (in.take(4) != kVersion) in.fail("has another version than 1");
  const std::uint32_t rows = in.take(4);
  std::vector<GoldenRow> out;
  for (std::uint32_t i = 0; i < rows; ++i) out.push_back(take_row(in));
  if (!in.at_end()) in.fail("goes on after its last row");
  return out;
}

GoldenRow row_at(const Place& at, Instruction instruction, Accumulator d, std::uint32_t output) {
  const auto row = static_cast<int>(output / kColumns),
             column = static_cast<int>(output % kColumns);
  GoldenRow out{instruction, d, at.distribution, Choice::even, {}, {}, 0, 0};
  for (int k = 0; k < at.k; ++k) {
    out.a.push_back(a_element(at, row, k));
    out.b.push_back(b_element(at, column, k));
  }
  out.c = c_element(at, d, row, column);
  return out;
}

std::vector<Chosen> choose(const std::vector<std::uint32_t>& masks, std::size_t most) {
  std::map<std::uint32_t, std::vector<std::size_t>> by_mask;
  for (std::size_t i = 0; i < masks.size(); ++i) {
    if (masks[i] != 0) by_mask[masks[i]].push_back(i);
  }
  std::vector<const std::vector<std::size_t>*> groups;
  for (const auto& [mask, outputs] : by_mask) groups.push_back(&outputs);
  std::ranges::stable_sort(groups, {}, [](const auto* group) { return group->size(); });
  std::vector<Chosen> out;
  const std::size_t differing = most - most / 4;
  for (std::size_t turn = 0; turn < differing && out.size() < differing; ++turn) {
    for (const auto* const group : groups) {
      if (turn >= group->size() || out.size() == differing) continue;
      const std::size_t output = (*group)[turn];
      out.push_back({output, (masks[output] & 1) != 0 ? Choice::surprise : Choice::disagree});
    }
  }
  const std::size_t left = std::min(most - out.size(), masks.size());
  for (std::size_t i = 0; i < left; ++i) {
    out.push_back({i * masks.size() / left, Choice::even});
  }
  return out;
}

}  // namespace probe
