// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "sim/backend/random.hpp"
#include "sim/data_files.hpp"

namespace test_data_files {

using namespace data_test;

TEST_CASE("batches larger than the training part are refused", "[sim][data]") {
  const TempFolder folder;
  write_all(folder, mnist());
  const auto data = data::open_data((folder / "x").parent_path().string(), 1);
  CHECK(data->batch(0, 6).labels.size() == 6);
  CHECK_THAT(message_of([&] { data->batch(0, 7); }), Contains("batch of 7") && Contains("1 to 6"));
  CHECK_THAT(message_of([&] { data->batch(0, 0); }), Contains("batch of 0"));
}

TEST_CASE("scikit-learn's digits are as they are installed", "[sim][data]") {
  std::unique_ptr<data::Data> data;
  try {
    data = data::open_data("digits", 0);
  } catch (const log::BadInput& error) {
    WARN(error.what());
    CHECK_THAT(error.what(), Contains("python3-sklearn") && Contains("--data FOLDER"));
    return;
  }
  std::map<int, int> labels;
  double sum = 0;
  const auto add = [&](const data::Batch& batch) {
    for (const int label : batch.labels) ++labels[label];
    for (const float value : batch.inputs) sum += double{value} * 16;
  };
  add(data->batch(0, 1437));
  for (const data::Batch& batch : data->held_out(360)) add(batch);
  // As `python3 -c "import sklearn.datasets as d, numpy as n; x = d.load_digits(); print(
  // x.data.sum(), n.bincount(x.target))"` says.
  CHECK(sum == 561718);
  CHECK(labels == std::map<int, int>{{0, 178},
                                     {1, 182},
                                     {2, 177},
                                     {3, 183},
                                     {4, 181},
                                     {5, 182},
                                     {6, 181},
                                     {7, 179},
                                     {8, 174},
                                     {9, 180}});
}

TEST_CASE("digits.csv that is not scikit-learn's is refused", "[sim][data]") {
  const TempFolder folder;
  const std::string text = digits();
  const auto said = [&](const std::string& bytes) {
    return refused(folder.write("digits.csv", bytes));
  };
  CHECK_THAT(said(""), Contains("digits.csv: it has 0 images"));
  CHECK_THAT(said(text.substr(0, text.size() - 200)), Contains("line 1796: column"));
  CHECK_THAT(said(text.substr(0, text.rfind('\n', text.size() - 2) + 1)),
             Contains("1796 images") && Contains("1797"));
  CHECK_THAT(said(text + text), Contains("3594 images"));
  CHECK_THAT(said("17" + text.substr(1)), Contains("line 1: column 1 is 17: expected a pixel"));
  CHECK_THAT(said("-1" + text.substr(1)), Contains("column 1 is -1"));
  CHECK_THAT(said("1;" + text.substr(1)), Contains("column 1 does not end at a comma"));
  CHECK_THAT(said("x" + text), Contains("column 1 is not an integer"));
  std::string label = text;
  label.insert(label.find('\n') - 1, "1");
  CHECK_THAT(said(label), Contains("line 1: column 65 is 10: expected a label"));
  label = text;
  label.insert(label.find('\n'), ",1");
  CHECK_THAT(said(label), Contains("column 65 does not end at a line end"));
  CHECK_THAT(said(std::string(5 << 20, '1')), Contains("4 MiB"));
}

TEST_CASE("digits may be zipped, and end lines with CR", "[sim][data]") {
  const TempFolder folder;
  std::string text = digits();
  const auto plain = data::open_data(folder.write("digits.csv", text).string(), 1)->batch(0, 100);
  std::filesystem::remove(folder / "digits.csv");
  folder.write("digits.csv.gz", zipped(text));
  CHECK(same(data::open_data((folder / "x").parent_path().string(), 1)->batch(0, 100), plain));
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
    text.insert(at, "\r");
  }
  CHECK(same(data::open_data(folder.write("digits.csv", text).string(), 1)->batch(0, 100), plain));
}

TEST_CASE("IDX files are read in row order, zipped or not", "[sim][data]") {
  for (const bool zip : {false, true}) {
    const TempFolder folder;
    for (const auto& [name, bytes] : mnist()) {
      zip ? folder.write(name + ".gz", zipped(bytes)) : folder.write(name, bytes);
    }
    const auto data = data::open_data((folder / "x").parent_path().string(), 1);
    CHECK(data->example() == backend::Shape{2, 3, 1});
    CHECK_THAT(data->describe(), Contains("6 of 8 images"));
    const auto held = data->held_out(5);
    REQUIRE(held.size() == 1);
    CHECK(held[0].shape == backend::Shape{2, 2, 3, 1});
    CHECK(held[0].labels == std::vector<std::int32_t>{0, 1});
    for (std::size_t i = 0; i < 12; ++i) {
      CHECK(held[0].inputs[i] == Approx(static_cast<double>(i) / 255).epsilon(1e-6));
    }
    const data::Batch all = data->batch(0, 6);
    for (std::size_t i = 0; i < 6; ++i) {
      CHECK(all.inputs[6 * i] == Approx(all.labels[i] * 6 / 255.0).epsilon(1e-6));
    }
  }
}

TEST_CASE("IDX files that are not what they say are refused", "[sim][data]") {
  const auto files = mnist();
  const std::string& images = files.at(kTrain);
  const auto said = [&](const std::string& bytes) { return refused(files, kTrain, bytes); };
  CHECK_THAT(said(""), Contains("0 of the 4 bytes of the IDX header"));
  CHECK_THAT(said(images.substr(0, 10)), Contains("6 of the 12 bytes"));
  CHECK_THAT(said(images.substr(0, images.size() - 1)),
             Contains("35 of the 36 bytes") && Contains("6 x 2 x 3"));
  CHECK_THAT(said(images + "x"), Contains("longer than the 36 bytes"));
  CHECK_THAT(said("P" + images.substr(1)), Contains("begins with 50 00"));
  CHECK_THAT(said(idx(0xD03, {6, 2, 3}, "")), Contains("type 0D (binary32) in 3"));
  CHECK_THAT(said(idx(0x801, {6}, "")), Contains("in 1 dimensions: expected 08"));
  CHECK_THAT(said(idx(kImages, {6, 0, 3}, "")), Contains("dimension 2") && Contains("is 0"));
  // Products that do not fit, in 64 bits either: 2^96 and a bit over 2^64.
  CHECK_THAT(said(idx(kImages, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "")), Contains("more than"));
  CHECK_THAT(said(idx(kImages, {0x80000000, 0x80000000, 4}, std::string(64, 'x'))),
             Contains("more than"));
  CHECK_THAT(said(idx(kImages, {32767, 32767, 1}, "few")), Contains("3 of the 1073676289 bytes"));
  CHECK_THAT(said(idx(kImages, {1, 1, 2000}, std::string(2000, 'x'))), Contains("1 x 2000"));
  CHECK_THAT(said(idx(kImages, {5, 2, 3}, std::string(30, 'x'))),
             Contains("6 labels") && Contains("5 images"));
  CHECK_THAT(refused(files, kLabels, idx(0x801, {6}, std::string("\0\1\2\12\4\5", 6))),
             Contains("label 3 is 10: expected 0 to 9"));
  CHECK_THAT(
      refused(files, "t10k-images-idx3-ubyte", idx(kImages, {2, 3, 2}, std::string(12, 'x'))),
      Contains("2 x 3") && Contains("3 x 2"));
}

TEST_CASE("truncated and damaged gzip files are named", "[sim][data]") {
  std::map<std::string, std::string> files = mnist();
  std::string noise;
  backend::Random random(1, "noise");
  for (int i = 0; i < 60000; ++i) noise += static_cast<char>(random.word());
  const std::string whole = zipped(idx(kImages, {100, 20, 30}, noise));
  files.erase(kTrain);
  const std::string name = kTrain + ".gz";
  for (const std::size_t left : {std::size_t{15}, whole.size() / 2, whole.size() - 1}) {
    INFO(left << " of " << whole.size());
    CHECK_THAT(refused(files, name, whole.substr(0, left)), Contains("gzip file ends too early"));
  }
  std::string damaged = whole;
  damaged[whole.size() - 6] = static_cast<char>(damaged[whole.size() - 6] ^ 1);  // its CRC
  CHECK_THAT(refused(files, name, damaged), Contains("gzip file is damaged"));
}

TEST_CASE("missing files of a set are named", "[sim][data]") {
  for (const auto& [missing, bytes] : mnist()) {
    const TempFolder folder;
    auto files = mnist();
    files.erase(missing);
    write_all(folder, files);
    CHECK_THAT(refused((folder / "x").parent_path()), Contains("no " + missing));
  }
  for (const auto& [missing, bytes] : cifar()) {
    if (missing == "data_batch_1.bin") continue;
    const TempFolder folder;
    auto files = cifar();
    files.erase(missing);
    write_all(folder, files);
    CHECK_THAT(refused((folder / "x").parent_path()), Contains("no " + missing));
  }
}

TEST_CASE("CIFAR-10's planes become channels", "[sim][data]") {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "cifar-10-batches-bin");
  for (const auto& [name, bytes] : cifar()) folder.write("cifar-10-batches-bin/" + name, bytes);
  const auto data = data::open_data((folder / "x").parent_path().string(), 1);
  CHECK(data->describe() == "CIFAR-10, 10 of 12 images");
  CHECK(data->example() == backend::Shape{32, 32, 3});
  const auto held = data->held_out(2);
  REQUIRE(held.size() == 1);
  CHECK(held[0].labels == std::vector<std::int32_t>{3, 7});
  const auto value = [](double byte) { return (byte - 120) * 4 / 255; };
  const std::vector<double> wanted = {10, 20, 30, 11, 20, 30, 10, 20};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(held[0].inputs[i] == Approx(value(wanted[i])));
  }
}

TEST_CASE("CIFAR-10 files of another size or with other labels are refused", "[sim][data]") {
  const auto files = cifar();
  const std::string& two = files.at("test_batch.bin");
  const auto said = [&](const std::string& bytes) {
    return refused(files, "data_batch_3.bin", bytes);
  };
  CHECK_THAT(said(""), Contains("0 bytes are no whole number"));
  CHECK_THAT(said(two.substr(1)), Contains("6145 bytes are no whole number of records of 3073"));
  CHECK_THAT(said(std::string(3074, '\1')), Contains("CIFAR-100"));
  std::string label = two;
  label[3073] = '\12';
  CHECK_THAT(said(label), Contains("label of image 1, at byte 3073, is 10"));
}

TEST_CASE("text gives windows and the characters that follow", "[sim][data]") {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += static_cast<char>('a' + i % 7);
  const auto data = data::open_data(folder.write("a.txt", text).string(), 1);
  CHECK(data->classes() == 7);
  CHECK(data->example() == backend::Shape{32});
  CHECK_THAT(data->describe(), Contains("1800 of 2000 characters, 7 different"));
  const data::Batch batch = data->batch(0, 5);
  REQUIRE(batch.ids.size() == 160);
  REQUIRE(batch.labels.size() == 160);
  for (std::size_t i = 0; i < 160; ++i) {
    CHECK(batch.labels[i] == (batch.ids[i] + 1) % 7);
    if (i >= 5) CHECK(batch.ids[i] == batch.labels[i - 5]);  // time first
  }
  std::size_t windows = 0;
  for (const data::Batch& held : data->held_out(4)) windows += held.ids.size() / 32;
  CHECK(windows == 6);  // of 200 characters, the last one a label
  CHECK_THAT(refused(folder.write("b.txt", "")), Contains("it has 0 bytes"));
  CHECK_THAT(refused(folder.write("c.txt", "short")), Contains("it has 5 bytes"));
  const std::string whole = zipped(text + std::string(3000, 'x'));
  CHECK_THAT(refused(folder.write("d.gz", whole.substr(0, whole.size() - 4))),
             Contains("ends too early"));
}

}  // namespace test_data_files
