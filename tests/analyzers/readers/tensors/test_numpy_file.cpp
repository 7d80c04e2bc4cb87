// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "analyzers/npy_bytes.hpp"
#include "analyzers/readers/tensors/open.hpp"
#include "analyzers/zip_bytes.hpp"
#include "catch.hpp"
#include "temp_folder.hpp"

namespace test_numpy_file {

using namespace halfscope;
using namespace halfscope::test;

TEST_CASE("Fortran's order becomes C's", "[readers][npy][npz]") {
  // Elements 0 to 23 of shape (2, 3, 4), an axis of one element between, the first axis fastest.
  std::string file, want;
  for (int k = 0; k < 4; ++k) {
    for (int j = 0; j < 3; ++j) {
      for (int i = 0; i < 2; ++i) file += {static_cast<char>(i * 12 + j * 4 + k), '\1'};
    }
  }
  for (int i = 0; i < 24; ++i) want += {static_cast<char>(i), '\1'};
  const TempFolder folder;
  for (const std::string descr : {"<f2", ">f2"}) {
    std::string swapped = want;
    if (descr[0] == '>') {
      for (std::size_t i = 0; i < swapped.size(); i += 2) std::swap(swapped[i], swapped[i + 1]);
    }
    const auto path = folder.write("w.npy", npy(dict(descr, "(2, 1, 3, 4)", true), file));
    const std::vector<Copy> read = read_all(*analyzers::readers::tensors::open_npy(path));
    REQUIRE(read.size() == 1);
    CHECK(read[0].shape == std::vector<std::uint64_t>{2, 1, 3, 4});
    CHECK(read[0].bytes == swapped);
  }
}

TEST_CASE("an NPY array is read whatever its order, version and bytes", "[readers][npy][table]") {
  struct Row {
    const char* what;
    std::string file;
    Dtype dtype;
    std::vector<std::uint64_t> shape;
    std::string bytes;
  };
  const std::string eight = "01234567";
  const Row row = GENERATE_COPY(values<Row>({
      {"binary32", npy(dict("<f4", "(2,)"), eight), Dtype::f32, {2}, eight},
      {"binary16", npy(dict("<f2", "(2, 2)"), eight), Dtype::f16, {2, 2}, eight},
      {"binary64, rank 0", npy(dict("<f8", "()"), eight), Dtype::f64, {}, eight},
      {"native order", npy(dict("=f8", "(1,)"), eight), Dtype::f64, {1}, eight},
      {"no order", npy(dict("f8", "(1,)"), eight), Dtype::f64, {1}, eight},
      {"big-endian binary16", npy(dict(">f2", "(4,)"), eight), Dtype::f16, {4}, "10325476"},
      {"big-endian binary32", npy(dict(">f4", "(2,)"), eight), Dtype::f32, {2}, "32107654"},
      {"big-endian binary64", npy(dict(">f8", "(1,)"), eight), Dtype::f64, {1}, "76543210"},
      {"big-endian, empty", npy(dict(">f8", "(0,)"), ""), Dtype::f64, {0}, ""},
      {"Fortran order keeps its shape",
       npy(dict("<f2", "(1, 4)", true), eight),
       Dtype::f16,
       {1, 4},
       eight},
      {"empty", npy(dict("<f4", "(3, 0)"), ""), Dtype::f32, {3, 0}, ""},
      {"version 2", npy(dict("<f4", "(2,)"), eight, 2), Dtype::f32, {2}, eight},
      {"version 3", npy(dict("<f4", "(2,)"), eight, 3), Dtype::f32, {2}, eight},
      {"Python 2's long numbers", npy(dict("<f4", "(2L, 1L)"), eight), Dtype::f32, {2, 1}, eight},
      {"any order of keys, other quotes",
       npy("{\"shape\":(2,),\"fortran_order\":False,\"descr\":\"<f4\"}", eight),
       Dtype::f32,
       {2},
       eight},
      {"data at an odd byte",  // the 59 bytes of a dict without padding
       "\x93NUMPY\x01" + std::string(1, '\0') + little_endian(dict("<f4", "(2,)").size(), 2) +
           dict("<f4", "(2,)") + eight,
       Dtype::f32,
       {2},
       eight},
  }));
  CAPTURE(row.what);
  const TempFolder folder;
  const auto file =
      analyzers::readers::tensors::open_npy(folder.write("conv1.weight.npy", row.file));
  const auto tensors = read_all(*file);
  REQUIRE(tensors.size() == 1);
  CHECK(tensors[0].name == "conv1.weight");
  CHECK(tensors[0].dtype == row.dtype);
  CHECK(tensors[0].shape == row.shape);
  CHECK(tensors[0].bytes == row.bytes);
  CHECK(file->skipped().empty());
}

TEST_CASE("NPY dtypes that are not counted are skipped with the reason", "[readers][npy][table]") {
  const auto [descr, reason] = GENERATE(table<std::string, std::string>({
      {"<i8", "dtype <i8 is not a floating-point type"},
      {"|b1", "dtype |b1 is not a floating-point type"},
      {"<U3", "dtype <U3 is not a floating-point type"},
      {"<M8[ns]", "dtype <M8[ns] is not a floating-point type"},
      {"|V6", "dtype |V6 is not a floating-point type"},
      {"<c8", "dtype <c8 is complex, expected f2, f4 or f8"},
      {"<f16", "dtype <f16 is not supported, expected f2, f4 or f8"},
      {"<f3", "dtype <f3 is not supported, expected f2, f4 or f8"},
      {"<q9", "dtype <q9 is unknown, expected f2, f4 or f8"},
      {"", "dtype  is unknown, expected f2, f4 or f8"},
      {"\x1b[2J", "dtype \\x1B[2J is unknown, expected f2, f4 or f8"},
  }));
  const TempFolder folder;
  const auto file = analyzers::readers::tensors::open_npy(
      folder.write("w.npy", npy(dict(descr, "(1,)"), "01234567")));
  CHECK(read_all(*file).empty());
  REQUIRE(file->skipped().size() == 1);
  CHECK(file->skipped()[0].name == "w");
  CHECK(file->skipped()[0].reason == reason);
}

TEST_CASE("elements of 2 bytes are what the caller says", "[readers][npy][npz][table]") {
  const std::string eight = "01234567";
  const auto [descr, bytes] = GENERATE(table<std::string, std::string>({
      {"'<V2'", "01234567"},
      {"'|V2'", "01234567"},
      {"'<u2'", "01234567"},
      {"'>u2'", "10325476"},
      {"[('', '<V2')]", "01234567"},
      {"[('bfloat16', '|V2')]", "01234567"},
  }));
  const Dtype as = GENERATE(Dtype::bf16, Dtype::f16);
  const std::string file =
      npy("{'descr': " + descr + ", 'fortran_order': False, 'shape': (4,), }", eight);
  const TempFolder folder;
  const auto alone = folder.write("w.npy", file);
  const auto packed = folder.write("w.npz", zip_of({{.name = "w.npy", .packed = file}}));
  for (const auto& opened :
       {analyzers::readers::tensors::open_npy(alone, as), open_npz(packed, as)}) {
    const auto tensors = read_all(*opened);
    REQUIRE(tensors.size() == 1);
    CHECK(tensors[0].dtype == as);
    CHECK(tensors[0].bytes == bytes);
  }
  if (descr.find("u2") == std::string::npos) {
    CHECK_THAT(message_of([&] { analyzers::readers::tensors::open_npy(alone); }),
               Catch::Contains("--as bf16"));
  } else {
    const auto plain = analyzers::readers::tensors::open_npy(alone);
    CHECK_THAT(plain->skipped().at(0).reason, Catch::EndsWith("is not a floating-point type"));
    CHECK(plain->skipped().at(0).may_be_bfloat16);
  }
}

TEST_CASE("what the caller says of 2 bytes holds for nothing else", "[readers][npy][table]") {
  const auto descr = GENERATE(as<std::string>(), "<f2", "<f4", "<i2", "|V6");
  const TempFolder folder;
  const auto file = folder.write(
      "w.npy",
      npy(dict(descr, "(1,)"), std::string(static_cast<std::size_t>(descr[2] - '0'), 'x')));
  const auto plain = analyzers::readers::tensors::open_npy(file),
             told = analyzers::readers::tensors::open_npy(file, Dtype::bf16);
  CHECK(plain->skipped().size() == told->skipped().size());
  const auto a = read_all(*plain), b = read_all(*told);
  REQUIRE(a.size() == b.size());
  if (!a.empty()) CHECK(a[0].dtype == b[0].dtype);
}

TEST_CASE("a structured NPY is skipped", "[readers][npy]") {
  const TempFolder folder;
  const std::string header =
      "{'descr': [('a]', '<f4'), ('b', [('c', '<f4', (2, 2))])], 'fortran_order': False, 'shape': "
      "(1,)}";
  const auto file = analyzers::readers::tensors::open_npy(
      folder.write("w.npy", npy(header, std::string(20, 'x'))));
  CHECK(read_all(*file).empty());
  REQUIRE(file->skipped().size() == 1);
  CHECK_THAT(file->skipped()[0].reason,
             Catch::StartsWith("dtype [('a]', '<f4')") &&
                 Catch::EndsWith("is structured, expected f2, f4 or f8"));
}

TEST_CASE("an NPY that is damaged or dangerous is refused", "[readers][npy][table]") {
  using namespace std::string_literals;
  const std::string eight = "01234567", magic = "\x93NUMPY";
  const auto [what, bytes, message] = GENERATE_COPY(table<const char*, std::string, std::string>({
      {"empty", "", "begins with '', expected an NPY stream's \\x93NUMPY"},
      {"another format", "PK\x03\x04 and so on",
       "begins with 'PK\\x03\\x04 a', expected an NPY stream's"},
      {"only the magic", magic, "holds 6 bytes, expected at least 12"},
      {"cut before the length", magic + "\x01\0\x10"s, "holds 9 bytes, expected at least 10"},
      {"cut in a long length", magic + "\x02\0\x10\0"s, "holds 10 bytes, expected at least 12"},
      {"version 0", magic + "\0\0\x10\0\0\0"s, "is of NPY version 0, expected 1, 2 or 3"},
      {"version 4", magic + "\x04\0\x10\0\0\0"s, "is of NPY version 4, expected 1, 2 or 3"},
      {"header beyond the file", magic + "\x01\0\xFF\xFF{}"s,
       "names an NPY header of 65535 bytes, expected at most 2"},
      {"header of 4 GiB", magic + "\x02\0\xFF\xFF\xFF\xFF{}"s,
       "names an NPY header of 4294967295 bytes, expected at most 2"},
      {"header above 1 MiB", npy(dict("<f4", "(2,)") + std::string(1 << 20, ' '), eight, 2),
       "expected at most 1048576"},
      {"pickled objects", npy(dict("|O", "(1,)"), "\x80\x04K\x01."),
       "holds pickled Python objects (dtype |O), expected numbers; nothing is ever unpickled"},
      {"pickled objects in a structure",
       npy("{'descr': [('a', '<f4'), ('b', '|O')], 'fortran_order': False, 'shape': (1,)}", eight),
       "holds pickled Python objects (dtype [('a', '<f4'), ('b', '|O')]), expected numbers"},
      {"bfloat16 without its name", npy(dict("<V2", "(4,)"), eight),
       "holds elements of 2 bytes without a type (dtype <V2), expected f2, f4 or f8; NPY has no "
       "name "
       "for bfloat16: if they are that, say so with --as bf16"},
      {"bfloat16 in a structure",
       npy("{'descr': [('', '<V2')], 'fortran_order': False, 'shape': "
           "(4,)}",
           eight),
       "holds elements of 2 bytes without a type (dtype [('', '<V2')])"},
      {"E4M3 without its name", npy(dict("|V1", "(8,)"), eight),
       "holds elements of 1 byte without a type (dtype |V1), expected f2, f4 or f8"},
      {"data cut short", npy(dict("<f4", "(10, 20)"), eight),
       "holds 8 bytes, expected 800 for shape [10, 20] of <f4; the file is cut short"},
      {"two arrays", npy(dict("<f4", "(2,)"), eight) + npy(dict("<f4", "(2,)"), eight),
       "holds 144 bytes, expected 8 for shape [2] of <f4; the file is damaged or holds several "
       "arrays"},
      {"a shape no memory holds", npy(dict("<f8", "(1099511627776,)"), eight),
       "holds 8 bytes, expected 8796093022208 for shape [1099511627776] of <f8"},
      {"elements overflow", npy(dict("<f8", "(4294967296, 4294967296)"), eight),
       "holds 8 bytes, but its shape [4294967296, 4294967296] needs more than any file can hold"},
      {"bytes overflow, their product would be 0", npy(dict("<f8", "(2305843009213693952,)"), ""),
       "holds 0 bytes, but its shape [2305843009213693952] needs more than any file can hold"},
      {"no dict", npy("[]", eight), "holds '[' at byte 0 of 54, expected '{'"},
      {"a key too few", npy("{'descr': '<f4', 'shape': (2,)}", eight),
       "lacks fortran_order, expected descr"},
      {"a key too many", npy("{'more': 1}", eight),
       "expected the keys descr, fortran_order and shape alone"},
      {"a key twice", npy("{'descr': '<f4', 'descr': '<f2'}", eight), "expected descr once"},
      {"code for a value", npy("{'descr': __import__('os')}", eight), "holds '_' at byte 10 of"},
      {"a number in brackets", npy(dict("<f4", "(2)"), eight), "expected ','"},
      {"a negative extent", npy(dict("<f4", "(-2,)"), eight),
       "expected a whole number from 0 to 2^64 - 1"},
      {"an extent of 2^64", npy(dict("<f4", "(18446744073709551616,)"), eight),
       "expected a whole number"},
      {"a fraction", npy(dict("<f4", "(2.5,)"), eight), "holds '.' at byte"},
      {"an order that is no boolean", npy("{'fortran_order': 1}", eight), "expected True or False"},
      {"a string that does not end", npy("{'descr", eight), "expected a string that ends"},
      {"escapes in a string", npy("{'descr': '\\x3cf4'}", eight),
       "expected a string without escapes"},
      {"a list that does not end", npy("{'descr': [[('a', '<f4')]", eight),
       "expected a list that ends"},
      {"a NUL in a list", npy("{'descr': [\0]"s, eight), "holds '\\x00' at byte 11"},
      {"text after the dict", npy(dict("<f4", "(2,)") + "import os", eight),
       "expected the header's end"},
  }));
  CAPTURE(what);
  const std::string refused = refusal("w.npy", bytes);
  CHECK_THAT(refused, Catch::StartsWith("tensor 'w'"));
  CHECK_THAT(refused, Catch::Contains(message));
}

}  // namespace test_numpy_file
