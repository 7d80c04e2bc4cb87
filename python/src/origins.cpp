// SPDX-License-Identifier: Apache-2.0
#include "origins.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <utility>

#include "halfscope/log/error.hpp"

namespace nb = nanobind;

namespace halfscope::python {
namespace {

/// Returns a pointer that any thread may release: it acquires the GIL to do so.
std::shared_ptr<nb::object> shared(nb::handle source) {
  return {new nb::object(nb::borrow(source)), [](const nb::object* object) {
            const nb::gil_scoped_acquire acquire;
            delete object;
          }};
}

/// The bytes of one file, which a Python object fetches.
class PythonArrival final : public log::Arrival {
 public:
  PythonArrival(std::shared_ptr<nb::object> source, const std::filesystem::path& path)
      : source_(std::move(source)), path_(path.string()) {}

  void need(std::uint64_t begin, std::uint64_t end) override {
    const std::string wrong = call("need", begin, end);
    if (!wrong.empty()) throw log::BadInput(wrong);
  }
  void leave(std::uint64_t begin, std::uint64_t end) override { call("leave", begin, end); }

 private:
  std::string call(const char* method, std::uint64_t begin, std::uint64_t end) {
    const nb::gil_scoped_acquire acquire;
    try {
      const nb::object said = source_->attr(method)(path_, begin, end);
      return said.is_none() ? "" : nb::cast<std::string>(said);
    } catch (const std::exception& error) {  // readers expect only BadInput
      return path_ + ": " + error.what();
    }
  }

  std::shared_ptr<nb::object> source_;
  std::string path_;
};

}  // namespace

analyzers::count::Origin origin_of(const std::vector<std::filesystem::path>& logs,
                                   nb::handle source) {
  if (source.is_none()) return analyzers::count::local_logs(logs);
  const nb::gil_scoped_acquire acquire;
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  std::vector<analyzers::count::Origin::Renamed> renamed;
  for (auto& [from, to] : nb::cast<Pairs>(source.attr("renamed"))) {
    renamed.push_back({std::move(from), std::move(to)});
  }
  const auto arrival = [kept = shared(source)](const std::filesystem::path& path) {
    return std::make_shared<PythonArrival>(kept, path);
  };
  return analyzers::count::arriving_logs(logs, arrival, std::move(renamed));
}

}  // namespace halfscope::python
