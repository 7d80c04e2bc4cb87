// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/logs.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "analyzers/logs.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/whole_tensors.hpp"
#include "catch.hpp"

namespace test_logs {

using namespace halfscope;
using namespace halfscope::analyzers;
using namespace halfscope::test;

std::vector<std::string> frames_of(const readers::Log& log) {
  std::vector<std::string> names;
  frames::Notes notes;
  const auto visit = [&](frames::Frame&& frame) { names.push_back(frame.name); };
  readers::for_each_frame(log, {}, {visit, {}, {}, {}}, notes);
  return names;
}

std::vector<std::string> whole_of(const readers::Log& log) {
  std::vector<std::string> names;
  frames::Notes notes;
  const auto visit = [&](const frames::WholeTensor& tensor) { names.push_back(tensor.name); };
  for_each_whole_tensor(log, {}, visit, notes);
  return names;
}

TEST_CASE("logs: one that is open stays what it was", "[log]") {
  using Names = std::vector<std::string>;
  const TempFolder folder;
  const std::filesystem::path path = write_tensors(folder, {{"weight_grad/w", {1, 2}}});
  const readers::Logs logs;
  CHECK(frames_of(logs.at(path)) == Names{"weight_grad/w"});
  const log::OpenFiles files = logs.at(path).opened().files;
  const auto kept = [&] {
    return std::any_cast<std::shared_ptr<const log::TensorFile>>(files.kept(path));
  };
  const auto header = kept();  // is read once
  CHECK(header != nullptr);
  const TempFolder other;
  std::filesystem::rename(write_tensors(other, {{"weight_grad/v", {3}}}), path);
  CHECK(whole_of(logs.at(path)) == Names{"weight_grad/w"});
  CHECK(kept() == header);
  CHECK(whole_of(path) == Names{"weight_grad/v"});  // a path alone is read anew

  const auto kinds = logs.at(path).kinds();
  REQUIRE(kinds.size() == 1);
  std::filesystem::remove(path);
  CHECK(logs.at(path).kinds().front() == kinds.front());
  CHECK(readers::Log(path).kinds().empty());
}

TEST_CASE("logs: a log of scalars alone has no whole tensors", "[log]") {
  const TempFolder folder;
  folder.write("out.log",
               "OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 8, reducing to 4\n");
  CHECK(whole_of(folder / "out.log").empty());
  CHECK(whole_of(folder / "nothing").empty());
}

}  // namespace test_logs
