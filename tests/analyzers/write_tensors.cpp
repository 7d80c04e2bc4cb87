// SPDX-License-Identifier: Apache-2.0
// Writes what the readers see in a tensor file to standard output, a JSON object a line, for tests
// in other languages (tests/python/test_tensor_files.py): write_tensors FILE [COPY.safetensors], or
// write_tensors FILE --as DTYPE
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "analyzers/readers/tensors/open.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/safetensors.hpp"
#include "tensors_of.hpp"

namespace {

using namespace halfscope;

void print(const nlohmann::json& line) { fmt::print("{}\n", line.dump()); }

void print_all(const log::TensorFile& file) {
  file.for_each([](const log::NamedTensor& tensor) {
    std::string hex;
    for (std::size_t i = 0; i < tensor.view.bytes(); ++i) {
      hex += fmt::format("{:02x}", std::to_integer<unsigned>(tensor.view.data[i]));
    }
    print({{"name", tensor.name},
           {"dtype", name_of(tensor.view.dtype)},
           {"shape", tensor.shape},
           {"bytes", hex}});
  });
  for (const log::SkippedTensor& skipped : file.skipped()) {
    print({{"name", skipped.name}, {"skipped", skipped.reason}});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  try {
    const std::filesystem::path path(argv[1]);
    const bool as = argc > 3 && std::string_view(argv[2]) == "--as";
    print_all(*analyzers::readers::tensors::open_tensor_file(
        path, as ? find_dtype(argv[3]) : std::nullopt));
    if (argc > 2 && !as) {
      const log::Safetensors file(path);
      log::write_safetensors(argv[2], test::TensorsOf(file).all(), file.metadata());
    }
    return 0;
  } catch (const log::BadInput& refused) {
    fmt::print(stderr, "{}\n", refused.what());
    return 1;
  }
}
