// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/log/safetensors.hpp"
#include "temp_folder.hpp"
#include "tensors_of.hpp"

namespace test_safetensors {

using namespace halfscope;
using log::NamedTensor;
using log::Safetensors;
using log::write_safetensors;
using test::little_endian;
using test::message_of;
using test::TempFolder;
using test::TensorsOf;

/// A file: the header's length, the header, and `data_bytes` bytes of data.
std::string file_of(const std::string& header, std::size_t data_bytes = 0) {
  return little_endian(header.size(), 8) + header + std::string(data_bytes, '\x01');
}

std::string row(const std::string& name, const std::string& dtype, const std::string& shape,
                const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

/// The message a file of these bytes is refused with.
std::string refusal(const std::string& bytes) {
  const TempFolder folder;
  const auto path = folder.write("g.safetensors", bytes);
  const std::string message = message_of([&] { Safetensors file(path); });
  const std::string file = path.string() + ": ";
  INFO(message);
  if (message.empty()) return message;
  REQUIRE(message.starts_with(file));
  CHECK(log::printable(message) == message);
  return message.substr(file.size());
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

template <typename T, std::size_t N>
NamedTensor tensor(const std::string& name, std::vector<std::uint64_t> shape, Dtype dtype,
                   const std::array<T, N>& values) {
  const auto* const data = reinterpret_cast<const std::byte*>(values.data());
  return {name, std::move(shape), {dtype, data, N}};
}

TEST_CASE("tensors of every counted dtype are read in file order", "[log][safetensors]") {
  const TempFolder folder;
  // The header's order is not the file's; data starts at an odd byte, so views are unaligned.
  const std::string header =
      "{" + row("b", "BF16", "[2]", "[1,5]") + "," + row("a", "F8_E4M3", "[1,1]", "[0,1]") + "," +
      row("c", "F64", "[]", "[5,13]") + "," + row("层/d", "F8_E5M2", "[3]", "[13,16]") +
      ",\"__metadata__\":{\"scale\":\"65536\"}}   ";
  const Safetensors file(
      folder.write("g.safetensors", little_endian(header.size(), 8) + header + "0123456789ABCDEF"));
  std::vector<std::string> seen;
  std::string bytes;
  file.for_each([&](const NamedTensor& t) {
    seen.push_back(t.name);
    bytes.append(reinterpret_cast<const char*>(t.view.data), t.view.bytes());
  });
  CHECK(seen == std::vector<std::string>{"a", "b", "c", "层/d"});
  CHECK(bytes == "0123456789ABCDEF");
  REQUIRE(file.names().size() == 4);
  CHECK(TensorsOf(file).all()[0].view.dtype == Dtype::f8_e4m3);
  CHECK(TensorsOf(file).all()[0].shape == std::vector<std::uint64_t>{1, 1});
  CHECK(TensorsOf(file).all()[1].view.dtype == Dtype::bf16);
  CHECK(TensorsOf(file).all()[2].shape.empty());
  CHECK(TensorsOf(file).all()[2].view.count == 1);
  CHECK(TensorsOf(file).all()[3].view.dtype == Dtype::f8_e5m2);
  CHECK(file.skipped().empty());
  CHECK(file.metadata() == std::map<std::string, std::string>{{"scale", "65536"}});
}

TEST_CASE("a file without tensors, and tensors without elements, are fine", "[log][safetensors]") {
  CHECK(refusal(file_of("{}")).empty());
  const TempFolder folder;
  const Safetensors file(folder.write(
      "g.safetensors",
      file_of("{" + row("a", "F32", "[0]", "[0,0]") + "," +
                  row("b", "F32", "[18446744073709551615,18446744073709551615,0]", "[4,4]") + "," +
                  row("c", "F32", "[1]", "[0,4]") + "}",
              4)));
  REQUIRE(file.names().size() == 3);
  CHECK(TensorsOf(file).all()[0].view.count == 0);
  CHECK(TensorsOf(file).all()[1].name == "c");
  CHECK(TensorsOf(file).all()[2].view.count == 0);
}

TEST_CASE("dtypes that are not counted are skipped with the reason", "[log][safetensors]") {
  const TempFolder folder;
  const Safetensors file(folder.write(
      "g.safetensors",
      file_of("{" + row("ids", "I64", "[1]", "[0,8]") + "," + row("mask", "BOOL", "[2]", "[8,10]") +
                  "," + row("new", "F5_X\\u001b", "[3]", "[10,12]") + "," +
                  row("packed", "U16", "[1]", "[12,14]") + "," + row("w", "F16", "[1]", "[14,16]") +
                  "}",
              16)));
  REQUIRE(file.names().size() == 1);
  CHECK(TensorsOf(file).all()[0].name == "w");
  REQUIRE(file.skipped().size() == 4);
  CHECK(file.skipped()[0].name == "ids");
  CHECK(file.skipped()[0].reason == "dtype I64 is not a floating-point type");
  CHECK(file.skipped()[1].reason == "dtype BOOL is not a floating-point type");
  CHECK(file.skipped()[2].name == "new");
  CHECK(file.skipped()[2].reason ==
        "dtype F5_X\\x1B is unknown, expected F4, F6_.., F8_.., F16, BF16, F32 or F64");
  CHECK(file.skipped()[3].reason == "dtype U16 is not a floating-point type");
}

TEST_CASE("a damaged header is refused", "[log][safetensors][table]") {
  struct Row {
    const char* what;
    std::string bytes, message;
  };
  using namespace std::string_literals;
  const std::string good = row("w", "F32", "[1]", "[0,4]");
  const Row row = GENERATE_COPY(values<Row>({
      {"empty file", "", "holds 0 bytes, expected at least 8"},
      {"cut in the length", "\x02\0\0"s, "holds 3 bytes, expected at least 8"},
      {"cut in the header", little_endian(100, 8) + "{}",
       "names a header of 100 bytes, but holds 2 after the length; the file is cut short"},
      {"length above the limit", little_endian(100'000'001, 8) + "{}",
       "names a header of 100000001 bytes, expected at most 100000000"},
      {"length of all ones", std::string(8, '\xFF') + "{}",
       "names a header of 18446744073709551615 bytes, expected at most 100000000"},
      {"empty header", file_of(""), "the header is not JSON: found its end at byte 0 of 0"},
      {"no JSON", file_of("hello"), "found 'h' at byte 0 of 5, expected a JSON object in UTF-8"},
      {"a blank before the brace", file_of(" {}"), "found ' ' at byte 0 of 3"},
      {"JSON that ends early", file_of("{\"w\":"), "found its end at byte 5 of 5"},
      {"text after the object", file_of("{} x"), "found 'x' at byte 3 of 4"},
      {"a NUL, at which the parser would stop", file_of("{}\0{"s), "found '\\x00' at byte 2 of 4"},
      {"a name that is not UTF-8", file_of("{\"\xff\":1}"), "found '\\xFF' at byte 2"},
      {"an array", file_of("[]"), "found '[' at byte 0"},
      {"a tensor that is a number", file_of("{\"w\":3}"),
       "holds 3, expected an object with dtype, shape and data_offsets"},
      {"a tensor that is an array", file_of("{\"w\":[]}"),
       "holds an array, expected an object with"},
      {"a name twice", file_of("{" + good + "," + good + "}", 4), "holds 'w' twice"},
      {"a field twice", file_of("{\"w\":{\"dtype\":\"F32\",\"dtype\":\"F16\"}}"),
       "holds 'dtype' twice, expected every key once"},
      {"metadata twice", file_of("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}"),
       "holds 'a' twice"},
      {"metadata that is not text", file_of("{\"__metadata__\":{\"a\":1}}"),
       "__metadata__: holds 1 for 'a', expected a string"},
      {"a field too many", file_of("{\"w\":{\"stride\":[1]}}"),
       "tensor 'w': holds the field 'stride', expected dtype, shape and data_offsets"},
      {"a field too few", file_of("{\"w\":{\"dtype\":\"F32\",\"shape\":[1]}}"),
       "tensor 'w': lacks data_offsets, expected dtype, shape and data_offsets"},
      {"a dtype that is a number", file_of("{\"w\":{\"dtype\":32}}"),
       "tensor 'w': holds 32 for 'dtype', expected a string"},
      {"a negative extent", file_of("{\"w\":{\"shape\":[-1]}}"),
       "tensor 'w': holds -1 for 'shape', expected whole numbers from 0 to 2^64 - 1"},
      {"a fraction", file_of("{\"w\":{\"shape\":[1.5]}}"), "tensor 'w': holds 1.5 for 'shape'"},
      {"an extent of 2^64", file_of("{\"w\":{\"shape\":[18446744073709551616]}}"),
       "tensor 'w': holds 18446744073709551616 for 'shape', expected whole numbers"},
      {"a shape in a shape", file_of("{\"w\":{\"shape\":[[1]]}}"),
       "tensor 'w': holds an array for 'shape', expected whole numbers"},
      {"three offsets", file_of("{" + test_safetensors::row("w", "F32", "[1]", "[0,4,8]") + "}", 4),
       "tensor 'w': data_offsets holds 3 numbers, expected 2"},
      {"an escape in a name", file_of("{\"a\\u001b[2J\":null}"), "tensor 'a\\x1B[2J': holds null"},
  }));
  CAPTURE(row.what);
  CHECK_THAT(refusal(row.bytes), Catch::Contains(row.message));
}

TEST_CASE("data that the header does not describe is refused", "[log][safetensors][table]") {
  struct Row {
    const char* what;
    std::vector<std::string> tensors;
    std::size_t data_bytes;
    std::string message;
  };
  const Row row = GENERATE(values<Row>({
      {"size and shape differ",
       {test_safetensors::row("weight_grad/conv1.weight", "F32", "[10, 20]", "[0,400]")},
       400,
       "tensor 'weight_grad/conv1.weight' holds 400 bytes, expected 800 for shape [10, 20] of F32; "
       "the "
       "file is damaged, write it again"},
      {"more data named than the file holds",
       {test_safetensors::row("w", "F32", "[2]", "[0,8]")},
       7,
       "tensor 'w' ends at byte 8 of the data, but the file holds 7; it is cut short"},
      {"a tensor larger than any memory",
       {test_safetensors::row("w", "F32", "[1099511627776]", "[0,4398046511104]")},
       8,
       "tensor 'w' ends at byte 4398046511104 of the data, but the file holds 8"},
      {"elements overflow 64 bits",
       {test_safetensors::row("w", "F32", "[4294967296,4294967296]", "[0,0]")},
       0,
       "tensor 'w' holds 0 bytes, but its shape [4294967296, 4294967296] needs more than any file"},
      {"bits overflow 64 bits, their product would be 0",
       {test_safetensors::row("w", "F32", "[576460752303423488]", "[0,0]")},
       0,
       "tensor 'w' holds 0 bytes, but its shape [576460752303423488] needs more than any file"},
      {"end before begin",
       {test_safetensors::row("w", "F32", "[0]", "[4,0]")},
       4,
       "tensor 'w' ends at byte 0, expected 4 (its begin) or more"},
      {"a first tensor that begins late",
       {test_safetensors::row("w", "F32", "[1]", "[4,8]")},
       8,
       "tensor 'w' begins at byte 4 and leaves a hole, expected 0"},
      {"a hole",
       {test_safetensors::row("v", "F32", "[1]", "[0,4]"),
        test_safetensors::row("w", "F32", "[1]", "[8,12]")},
       12,
       "tensor 'w' begins at byte 8 and leaves a hole, expected 4"},
      {"an overlap",
       {test_safetensors::row("v", "F32", "[2]", "[0,8]"),
        test_safetensors::row("w", "F32", "[1]", "[4,8]")},
       8,
       "tensor 'w' begins at byte 4 and overlaps the tensor before it, expected 8"},
      {"the same bytes twice",
       {test_safetensors::row("v", "F32", "[2]", "[0,8]"),
        test_safetensors::row("w", "F32", "[2]", "[0,8]")},
       8,
       "tensor 'w' begins at byte 0 and overlaps the tensor before it, expected 8"},
      {"data after the last tensor",
       {test_safetensors::row("w", "F32", "[1]", "[0,4]")},
       5,
       "holds 5 bytes of data, expected 4 as its tensors take"},
      {"data and no tensor", {}, 5, "holds 5 bytes of data, expected 0"},
      {"a skipped dtype is checked too",
       {test_safetensors::row("ids", "I64", "[2]", "[0,8]")},
       8,
       "tensor 'ids' holds 8 bytes, expected 16 for shape [2] of I64"},
      {"half a byte",
       {test_safetensors::row("p", "F4", "[3]", "[0,2]")},
       2,
       "tensor 'p' has 12 bits in shape [3] of F4, expected whole bytes"},
  }));
  CAPTURE(row.what);
  std::string header = "{";
  for (const std::string& tensor : row.tensors) header += (header == "{" ? "" : ",") + tensor;
  CHECK_THAT(refusal(file_of(header + "}", row.data_bytes)), Catch::Contains(row.message));
}

TEST_CASE("nesting of any depth is refused at the first level too many", "[log][safetensors]") {
  const std::string arrays(5'000'000, '[');
  CHECK_THAT(refusal(file_of("{\"w\":" + arrays)), Catch::Contains("tensor 'w'"));
  std::string objects;
  for (int i = 0; i < 500'000; ++i) objects += "{\"a\":";
  CHECK_THAT(refusal(file_of(objects)), Catch::Contains("tensor 'a'"));
}

TEST_CASE("what is no file is refused", "[log][safetensors]") {
  const TempFolder folder;
  CHECK_THAT(message_of([&] { Safetensors file(folder / "none.safetensors"); }),
             Catch::Contains("none.safetensors: cannot be read (No such file or directory)"));
  CHECK_THAT(message_of([&] { Safetensors file(folder / "."); }), Catch::Contains("is a folder"));
  const auto pipe = folder / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);  // and opening it does not wait for a writer
  CHECK_THAT(message_of([&] { Safetensors file(pipe); }), Catch::Contains("pipe: is a pipe"));
}

TEST_CASE("what is written is read back, aligned and in order", "[log][safetensors]") {
  const TempFolder folder;
  const std::array<std::uint16_t, 3> half = {0x3C00, 0x7C00, 0x0001};
  const std::array<float, 2> single = {1.5f, -0.0f};
  const std::array<double, 1> wide = {0x1p-1074};
  const std::array<std::uint8_t, 5> narrow = {1, 2, 3, 4, 5};
  const auto path = folder / "out.safetensors";
  write_safetensors(
      path,
      {tensor("weight_grad/é", {3}, Dtype::f16, half), tensor("n", {5}, Dtype::f8_e4m3, narrow),
       tensor("b", {2, 1}, Dtype::f32, single), tensor("d", {}, Dtype::f64, wide),
       NamedTensor{"a", {0, 7}, {Dtype::f32, nullptr, 0}}},
      {{"z", "last"}, {"scale", "65536"}});
  const std::string bytes = contents(path);
  const std::string header = bytes.substr(
      8, static_cast<unsigned char>(bytes[0]) + 256u * static_cast<unsigned char>(bytes[1]));
  CHECK(header.size() % 8 == 0);
  CHECK(header.starts_with(R"({"__metadata__":{"scale":"65536","z":"last"},"d":{"dtype":"F64",)"));

  const Safetensors file(path);
  std::vector<std::string> names;
  const TensorsOf tensors(file);
  for (const NamedTensor& t : tensors.all()) names.push_back(t.name);
  CHECK(names == std::vector<std::string>{"d", "a", "b", "weight_grad/é", "n"});
  for (const NamedTensor& t : tensors.all()) {
    CAPTURE(t.name);
    const auto width = static_cast<std::size_t>(format_of(t.view.dtype).width / 8);
    CHECK(reinterpret_cast<std::uintptr_t>(t.view.data) % width == 0);
  }
  CHECK(TensorsOf(file).all()[2].shape == std::vector<std::uint64_t>{2, 1});
  CHECK(std::memcmp(TensorsOf(file).all()[2].view.data, single.data(), sizeof single) == 0);
  CHECK(std::memcmp(TensorsOf(file).all()[3].view.data, half.data(), sizeof half) == 0);
  CHECK(std::memcmp(TensorsOf(file).all()[0].view.data, wide.data(), sizeof wide) == 0);
  CHECK(std::memcmp(TensorsOf(file).all()[4].view.data, narrow.data(), sizeof narrow) == 0);
  CHECK(file.metadata().at("scale") == "65536");
}

TEST_CASE("a file is replaced whole or stays as it was", "[log][safetensors]") {
  const TempFolder folder;
  const std::array<float, 1> one = {1.0f};
  const auto path = folder.write("out.safetensors", "old");
  const auto refused = GENERATE(table<const char*, std::vector<const char*>, std::uint64_t>({
      {"tensor 'w' is there twice", {"w", "w"}, 1},
      {"tensor '__metadata__' is there twice or named as the metadata", {"__metadata__"}, 1},
      {"tensor '\\xFF' has a name or text that is not UTF-8", {"\xff"}, 1},
      {"tensor 'w' has 1 elements, expected 2 for shape [2]", {"w"}, 2},
  }));
  std::vector<NamedTensor> tensors;
  for (const char* const name : std::get<1>(refused)) {
    tensors.push_back(tensor(name, {std::get<2>(refused)}, Dtype::f32, one));
  }
  CHECK_THAT(message_of([&] { write_safetensors(path, tensors); }),
             Catch::Contains("out.safetensors: " + std::string(std::get<0>(refused))));
  CHECK(contents(path) == "old");

  write_safetensors(path, {tensor("w", {1}, Dtype::f32, one)});
  CHECK(Safetensors(path).names().size() == 1);
  const auto entries = std::filesystem::directory_iterator(folder / ".");
  CHECK(std::distance(begin(entries), end(entries)) == 1);  // nothing is left beside it
}

TEST_CASE("an output that cannot be written is refused", "[log][safetensors]") {
  const TempFolder folder;
  const std::array<float, 1> one = {1.0f};
  const auto refusal_of = [&](const std::filesystem::path& path) {
    return message_of([&] { write_safetensors(path, {tensor("w", {1}, Dtype::f32, one)}); });
  };
  CHECK_THAT(refusal_of(folder / "none/out"),
             Catch::Contains("none/out: cannot be written (No such file or directory)"));
  CHECK_THAT(refusal_of(folder / "."), Catch::Contains("is a folder, pipe or device"));
  CHECK_THAT(refusal_of("/dev/null"), Catch::Contains("/dev/null: is a folder, pipe or device"));
  CHECK_THAT(refusal_of(folder.write("file", "") / "out"), Catch::Contains("(Not a directory)"));
  std::filesystem::create_directory(folder / "locked");
  std::filesystem::permissions(folder / "locked", std::filesystem::perms::owner_read);
  if (::geteuid() != 0) {  // root may write anywhere
    CHECK_THAT(refusal_of(folder / "locked/out"), Catch::Contains("(Permission denied)"));
  }
}

TEST_CASE("a disk that fills up leaves the old file and nothing else", "[log][safetensors]") {
  const TempFolder folder;
  const std::vector<float> much(100'000, 1.0f);
  const NamedTensor large{
      "w",
      {much.size()},
      {Dtype::f32, reinterpret_cast<const std::byte*>(much.data()), much.size()}};
  const auto path = folder.write("out.safetensors", "old");
  // A limit on the size of files stands in for the full disk: write() stores a part, then fails.
  rlimit before = {};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  const rlimit small = {65536, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  const std::string message = message_of([&] { write_safetensors(path, {large}); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(message, Catch::Contains("out.safetensors: cannot be written (File too large)"));
  CHECK(contents(path) == "old");
  const auto entries = std::filesystem::directory_iterator(folder / ".");
  CHECK(std::distance(begin(entries), end(entries)) == 1);
}

}  // namespace test_safetensors
