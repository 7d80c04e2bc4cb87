// SPDX-License-Identifier: Apache-2.0
#include "cuda/graph_api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "sim/backend/cudnn/api.hpp"

namespace halfscope::test {
namespace {

constexpr std::size_t kFirstWithProperties = 90800;

GraphApi load() {
  const sim::backend::cudnn::CudaLibraries& libraries = sim::backend::cudnn::load_cuda_libraries();
  void* const library = dlopen(libraries.cudnn_path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  const auto find = [&](const char* name, auto& function) {
    void* const found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) {
      throw sim::backend::BackendMissing(fmt::format("{} has no {}", libraries.cudnn_path, name));
    }
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  GraphApi api;
  find("cudnnBackendCreateDescriptor", api.create);
  find("cudnnBackendDestroyDescriptor", api.destroy);
  find("cudnnBackendSetAttribute", api.set);
  find("cudnnBackendGetAttribute", api.get);
  find("cudnnBackendFinalize", api.finalize);
  api.error_string = libraries.cudnn.cudnnGetErrorString;
  api.last_error = libraries.cudnn.cudnnGetLastErrorString;
  api.version = libraries.cudnn.cudnnGetVersion();
  return api;
}

void require_properties() {
  if (graph_api().version >= kFirstWithProperties) return;
  throw sim::backend::BackendMissing(
      fmt::format("cuDNN {} cannot plan without a device: that takes 9.8", graph_api().version));
}

}  // namespace

const GraphApi& graph_api() {
  static const GraphApi api = load();
  return api;
}

void check_graph(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::string words(512, '\0');
  graph_api().last_error(words.data(), words.size());
  words.resize(words.find_first_of(std::string_view("\0\n", 2)));
  throw std::runtime_error(
      fmt::format("cuDNN: {}: {}: {}", call, graph_api().error_string(status), words));
}

GraphDescriptor::GraphDescriptor(cudnnBackendDescriptorType_t type) {
  check_graph(graph_api().create(type, &handle_), "cudnnBackendCreateDescriptor");
}

GraphDescriptor::~GraphDescriptor() {
  if (handle_ != nullptr) graph_api().destroy(handle_);
}

void GraphDescriptor::get(cudnnBackendAttributeName_t name, GraphDescriptor& into) const {
  std::int64_t count = 0;
  check_graph(
      graph_api().get(handle_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &into.handle_),
      "cudnnBackendGetAttribute");
}

GraphDescriptor device_properties(const std::string& json) {
  require_properties();
  GraphDescriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                 std::span<const char>(json));
  properties.finalize();
  return properties;
}

std::string device_properties_json() {
  require_properties();
  GraphDescriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_DEVICE_ID, CUDNN_TYPE_INT32, std::int32_t{0});
  properties.finalize();
  const auto text =
      properties.get<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 1 << 16);
  std::string json(text.begin(), text.end());
  json.resize(json.find_last_of('}') + 1);  // it may end in a zero
  return json;
}

}  // namespace halfscope::test
