// SPDX-License-Identifier: Apache-2.0
// What the files of golden rows have in common: little endian, four letters, u32 version 1, u32
// rows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace probe {

inline void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

class Bytes {
 public:
  explicit Bytes(const std::filesystem::path& file) : name_(file.string()) {
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

  /// The number of rows.
  std::uint32_t take_beginning(std::string_view magic) {
    for (const char c : magic) {
      if (take(1) != static_cast<std::uint32_t>(c)) fail("is no file of golden rows");
    }
    if (take(4) != 1) fail("has another version than 1");
    return take(4);
  }

  void expect_end() const {
    if (at_ != bytes_.size()) fail("goes on after its last row");
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::runtime_error(name_ + " " + why);
  }

 private:
  std::string name_, bytes_;
  std::size_t at_ = 0;
};

/// Throw std::runtime_error that names the file.
template <typename Row>
void write_rows(const std::filesystem::path& file, std::string_view magic,
                const std::vector<Row>& rows, void (*put_row)(std::string&, const Row&)) {
  std::string out(magic);
  put(out, 1, 4);
  put(out, rows.size(), 4);
  for (const Row& row : rows) put_row(out, row);
  std::ofstream to(file, std::ios::binary);
  to.write(out.data(), static_cast<std::streamsize>(out.size()));
  if (!to.flush()) throw std::runtime_error(file.string() + " cannot be written");
}

template <typename Row>
std::vector<Row> read_rows(const std::filesystem::path& file, std::string_view magic,
                           Row (*take_row)(Bytes&)) {
  Bytes in(file);
  std::vector<Row> out;
  for (std::uint32_t left = in.take_beginning(magic); left > 0; --left) {
    out.push_back(take_row(in));
  }
  in.expect_end();
  return out;
}

}  // namespace probe
