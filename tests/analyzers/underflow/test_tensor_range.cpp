// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"
#include "catch.hpp"

namespace test_tensor_range {

using namespace halfscope::analyzers;

/// Logs of so many tensors each, named 0, 1, 2, ...
underflow::Analysis of_sizes(const std::vector<std::size_t>& sizes) {
  underflow::Analysis analysis;
  int name = 0;
  for (const std::size_t size : sizes) {
    underflow::LogFindings& log = analysis.logs.emplace_back();
    log.name = "log" + std::to_string(analysis.logs.size());
    for (std::size_t i = 0; i < size; ++i) log.tensors.emplace_back().name = std::to_string(name++);
  }
  return analysis;
}

static_assert(std::forward_iterator<underflow::TensorRange::Iterator>);

TEST_CASE("The tensors of all logs follow each other", "[table]") {
  for (const std::vector<std::size_t>& sizes : std::vector<std::vector<std::size_t>>{
           {}, {0}, {3}, {0, 2}, {2, 0}, {2, 0, 0, 3, 0}, {0, 0, 1, 0}}) {
    const underflow::Analysis analysis = of_sizes(sizes);
    const underflow::TensorRange all = analysis.tensors();
    std::size_t wanted = 0;
    for (const std::size_t size : sizes) wanted += size;
    CAPTURE(sizes);
    CHECK(all.size() == wanted);
    CHECK(all.empty() == (wanted == 0));
    std::size_t i = 0;
    for (const underflow::TensorFindings& tensor : all) {
      CHECK(tensor.name == std::to_string(i));
      CHECK(&all[i] == &tensor);
      CHECK(all.index_of(tensor) == i);
      ++i;
    }
    CHECK(i == wanted);
    CHECK(std::ranges::distance(all.begin(), all.end()) == static_cast<std::ptrdiff_t>(wanted));
    CHECK(analysis.names().size() == sizes.size());
  }
}

TEST_CASE("A log is a run log where it has a manifest") {
  underflow::Analysis analysis = of_sizes({1, 1});
  CHECK_FALSE(analysis.has_run_log());
  analysis.logs[1].manifest.emplace();
  CHECK(analysis.has_run_log());
  analysis.logs[1].clipped = true;
  CHECK(analysis.logs[1].was_clipped(halfscope::log::Role::weight_grad));
  CHECK_FALSE(analysis.logs[1].was_clipped(halfscope::log::Role::activation_grad));
  CHECK_FALSE(analysis.logs[0].was_clipped(halfscope::log::Role::weight_grad));
}

}  // namespace test_tensor_range
