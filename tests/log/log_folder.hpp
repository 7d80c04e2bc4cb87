// SPDX-License-Identifier: Apache-2.0
// What tests of the run log share: a folder of their own, its files as bytes, records to write.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "catch.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/run_log.hpp"
#include "temp_folder.hpp"

namespace log_test {

namespace fs = std::filesystem;

/// A new empty folder, removed at the end.
class Folder : public halfscope::test::TempFolder {
 public:
  fs::path path() const { return (*this / "file").parent_path(); }
};

inline std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

inline void put_bytes(const fs::path& file, std::string_view bytes) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << bytes;
  REQUIRE(out.good());
}

/// The one event file of a folder.
inline fs::path event_file(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) {
      files.push_back(entry.path());
    }
  }
  REQUIRE(files.size() == 1);
  return files.front();
}

inline halfscope::TensorView view(const std::vector<float>& values) {
  return {halfscope::Dtype::f32, reinterpret_cast<const std::byte*>(values.data()), values.size()};
}

inline halfscope::log::TensorRecord record(std::string name, std::int64_t step,
                                           const std::vector<float>& values) {
  halfscope::log::TensorRecord made;
  made.name = std::move(name);
  made.step = step;
  made.shape = {values.size()};
  made.moments = halfscope::moments(view(values));
  made.table = halfscope::count_binades(view(values), 1);
  return made;
}

inline std::vector<halfscope::log::TensorRecord> records(const halfscope::log::RunLog& log) {
  std::vector<halfscope::log::TensorRecord> all;
  log.for_each([&](halfscope::log::TensorRecord&& one) { all.push_back(std::move(one)); });
  return all;
}

/// What the BadInput of `call` says; fails when there is none, or when it is not one line.
template <typename Call>
std::string bad_input(Call call) {
  try {
    call();
  } catch (const halfscope::log::BadInput& error) {
    const std::string what = error.what();
    CHECK(what.find('\n') == std::string::npos);
    return what;
  }
  FAIL("no BadInput was thrown");
  return {};
}

inline bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace log_test
