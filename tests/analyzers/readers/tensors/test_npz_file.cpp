// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>
#include <vector>

#include "analyzers/npy_bytes.hpp"
#include "analyzers/readers/tensors/open.hpp"
#include "analyzers/zip_bytes.hpp"
#include "catch.hpp"
#include "temp_folder.hpp"

namespace test_npz_file {

using namespace halfscope;
using namespace halfscope::test;

TEST_CASE("NPZ members are read in their order", "[readers][npz]") {
  const std::string one = npy(dict("<f4", "(2,)"), "01234567");
  const std::string two = npy(dict(">f2", "(4,)"), "01234567");
  const std::string large(200'000, 'x');  // more than one deflate block
  const std::string three = npy(dict("<f8", "(25000,)"), large);
  const TempFolder folder;
  const auto file = open_npz(folder.write(
      "g.npz",
      zip_of({{.name = "weight_grad/w.npy", .packed = one},
              {.name = "b.npy",
               .packed = deflate_stored(two),
               .method = 8,
               .unpacked_size = two.size(),
               .crc = test::crc32_of(two)},
              {.name = "c.npy",
               .packed = deflate_stored(three),
               .method = 8,
               .unpacked_size = three.size(),
               .crc = test::crc32_of(three),
               .zip64 = true},
              {.name = "ids.npy", .packed = npy(dict("<i4", "(2,)"), "01234567")},
              {.name = "README.txt", .packed = "text"},
              {.name = "empty.npy", .packed = npy(dict("<f4", "(0,)"), ""), .zip64 = true}})));
  for (int pass = 0; pass < 2; ++pass) {  // members can be read again
    const auto tensors = read_all(*file);
    REQUIRE(tensors.size() == 4);
    CHECK(tensors[0].name == "weight_grad/w");
    CHECK(tensors[0].bytes == "01234567");
    CHECK(tensors[1].name == "b");
    CHECK(tensors[1].dtype == Dtype::f16);
    CHECK(tensors[1].bytes == "10325476");
    CHECK(tensors[2].bytes == large);
    CHECK(tensors[3].name == "empty");
    CHECK(tensors[3].bytes.empty());
  }
  REQUIRE(file->skipped().size() == 2);
  CHECK(file->skipped()[0].name == "ids");
  CHECK(file->skipped()[0].reason == "dtype <i4 is not a floating-point type");
  CHECK(file->skipped()[1].name == "README.txt");
}

TEST_CASE("names of NPZ members are names, and no paths", "[readers][npz]") {
  const std::string one = npy(dict("<f4", "(2,)"), "01234567");
  const TempFolder folder;
  const auto file =
      open_npz(folder.write("g.npz", zip_of({{.name = "../../up.npy", .packed = one},
                                             {.name = "/tmp/absolute.npy", .packed = one},
                                             {.name = "C:\\w.npy", .packed = one},
                                             {.name = ".npy", .packed = one}})));
  std::vector<std::string> names;
  for (const Copy& tensor : read_all(*file)) names.push_back(tensor.name);
  CHECK(names == std::vector<std::string>{"../../up", "/tmp/absolute", "C:\\w", ""});
  CHECK(names == file->names());
  for (const std::string& name : names) CHECK(file->tensor(name)->name == name);
  CHECK(file->tensor("none") == nullptr);
}

TEST_CASE("stored NPZ members are as they lie, deflated ones are unpacked", "[readers][npz]") {
  const std::string one = npy(dict("<f4", "(2,)"), "01234567");
  const TempFolder folder;
  const auto file = open_npz(folder.write("g.npz", zip_of({{.name = "stored.npy", .packed = one},
                                                           {.name = "deflated.npy",
                                                            .packed = deflate_stored(one),
                                                            .method = 8,
                                                            .unpacked_size = one.size(),
                                                            .crc = test::crc32_of(one)}})));
  for (const char* name : {"stored", "deflated"}) {
    const auto tensor = file->tensor(name);
    CHECK(std::memcmp(tensor->view.data, "01234567", 8) == 0);
  }
}

TEST_CASE("an NPZ without members is fine", "[readers][npz]") {
  const TempFolder folder;
  CHECK(read_all(*open_npz(folder.write("g.npz", zip_of({})))).empty());
}

TEST_CASE("an NPZ that is damaged or dangerous is refused", "[readers][npz][table]") {
  struct Row {
    const char* what;
    std::vector<ZipMember> members;
    std::string message;
  };
  const std::string good = npy(dict("<f4", "(2,)"), "01234567");
  const std::string objects = npy(dict("|O", "(1,)"), "\x80\x04K\x01.");
  const Row row = GENERATE_COPY(values<Row>({
      {"pickled objects",
       {{.name = "w.npy", .packed = objects}},
       "tensor 'w' holds pickled Python"},
      {"a checksum that differs",
       {{.name = "w.npy", .packed = good, .crc = 1}},
       "tensor 'w' cannot be unpacked (CRC error), expected 136 bytes"},
      {"a stored member of two sizes",
       {{.name = "w.npy", .packed = good, .unpacked_size = 4096}},
       "claims to unpack from 136 bytes to 4096, expected the same, stored, at most"},
      {"more than deflate can give",
       {{.name = "w.npy",
         .packed = deflate_stored(good),
         .method = 8,
         .unpacked_size = 1'000'000'000}},
       "claims to unpack from 141 bytes to 1000000000, expected 1032 times as many at most"},
      {"2^63 bytes",
       {{.name = "w.npy",
         .packed = deflate_stored(good),
         .method = 8,
         .unpacked_size = std::uint64_t{1} << 63,
         .zip64 = true}},
       "claims to unpack from 141 bytes to 9223372036854775808, expected 1032 times as many at "
       "most"},
      {"less than it says",
       {{.name = "w.npy", .packed = deflate_stored(good), .method = 8, .unpacked_size = 2000}},
       "tensor 'w' holds 1872 bytes, expected 8 for shape [2] of <f4"},
      {"a stream that ends early",
       {{.name = "w.npy",
         .packed = deflate_stored(good).substr(0, 60),
         .method = 8,
         .unpacked_size = 136}},
       "tensor 'w' cannot be unpacked"},
      {"no deflate stream",
       {{.name = "w.npy", .packed = std::string(64, '\xFF'), .method = 8, .unpacked_size = 136}},
       "tensor 'w' cannot be unpacked"},
      {"a packed size beyond the file",
       {{.name = "w.npy", .packed = good, .unpacked_size = 100'000, .packed_size = 100'000}},
       "tensor 'w' names 100000 packed bytes, but the file holds"},
      {"members that overlap",
       {{.name = "v.npy", .packed = good},
        {.name = "w.npy", .packed = good, .unpacked_size = 450, .packed_size = 450}},
       "so they overlap; the file is damaged or a ZIP bomb"},
      {"a name twice",
       {{.name = "w.npy", .packed = good}, {.name = "w.npy", .packed = good}},
       "tensor 'w' is there twice, expected every name once"},
      {"another method",
       {{.name = "w.npy", .packed = good, .method = 12}},
       "tensor 'w' is packed by ZIP method 12, expected 0 (stored) or 8 (deflated)"},
      {"a password", {{.name = "w.npy", .packed = good, .flags = 1}}, "tensor 'w' is encrypted"},
      {"shape and size differ",
       {{.name = "w.npy", .packed = npy(dict("<f4", "(3,)"), "01234567")}},
       "tensor 'w' holds 8 bytes, expected 12 for shape [3] of <f4"},
      {"no NPY",
       {{.name = "w.npy", .packed = "hello"}},
       "tensor 'w' begins with 'hello', expected an NPY"},
  }));
  CAPTURE(row.what);
  CHECK_THAT(refusal("g.npz", zip_of(row.members)), Catch::Contains(row.message));
}

TEST_CASE("what is not a ZIP archive is refused", "[readers][npz]") {
  CHECK_THAT(refusal("g.npz", ""), Catch::StartsWith("holds 0 bytes, expected an NPZ file"));
  CHECK_THAT(
      refusal("g.npz", "hello"),
      Catch::StartsWith("is not a ZIP archive that can be read (Not a zip archive), expected"));
  const std::string zip =
      zip_of({{.name = "w.npy", .packed = npy(dict("<f4", "(2,)"), "01234567")}});
  CHECK_THAT(refusal("g.npz", zip.substr(0, zip.size() - 30)), Catch::Contains("cut short"));
  const TempFolder folder;
  CHECK_THAT(message_of([&] { open_npz(folder / "none.npz"); }),
             Catch::Contains("none.npz: cannot be read (No such file or directory)"));
}

}  // namespace test_npz_file
