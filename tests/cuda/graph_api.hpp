// SPDX-License-Identifier: Apache-2.0
// cuDNN's graph API, which can plan for a device that is not there (its properties given as JSON,
// cuDNN 9.8 and later). Loaded when it is first wanted, as the backend's functions are.
#pragma once

#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace halfscope::test {

struct GraphApi {
  decltype(&::cudnnBackendCreateDescriptor) create = nullptr;
  decltype(&::cudnnBackendDestroyDescriptor) destroy = nullptr;
  decltype(&::cudnnBackendSetAttribute) set = nullptr;
  decltype(&::cudnnBackendGetAttribute) get = nullptr;
  decltype(&::cudnnBackendFinalize) finalize = nullptr;
  decltype(&::cudnnGetErrorString) error_string = nullptr;
  decltype(&::cudnnGetLastErrorString) last_error = nullptr;
  std::size_t version = 0;  ///< 91900: 9.19.0
};

/// Throws sim::BackendMissing where there is no cuDNN.
const GraphApi& graph_api();

/// Throws std::runtime_error that names the call, the status and cuDNN's own last words.
void check_graph(cudnnStatus_t status, const char* call);

/// A descriptor of the graph API. What others refer to must live as long as they do.
class GraphDescriptor {
 public:
  explicit GraphDescriptor(cudnnBackendDescriptorType_t type);
  GraphDescriptor(GraphDescriptor&& other) noexcept : handle_(other.handle_) {
    other.handle_ = nullptr;
  }
  GraphDescriptor(const GraphDescriptor&) = delete;
  GraphDescriptor& operator=(const GraphDescriptor&) = delete;
  ~GraphDescriptor();

  template <class T>
  GraphDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       std::span<const T> values) {
    check_graph(graph_api().set(handle_, name, type, static_cast<std::int64_t>(values.size()),
                                values.data()),
                "cudnnBackendSetAttribute");
    return *this;
  }
  template <class T>
  GraphDescriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                       const T& value) {
    return set(name, type, std::span<const T>(&value, 1));
  }
  GraphDescriptor& set(cudnnBackendAttributeName_t name, const GraphDescriptor& other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.handle_);
  }
  void finalize() { check_graph(graph_api().finalize(handle_), "cudnnBackendFinalize"); }
  /// As finalize(), but a refusal is told by its status.
  cudnnStatus_t try_finalize() { return graph_api().finalize(handle_); }

  /// All of an attribute's values, `most` of them at most.
  template <class T>
  std::vector<T> get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     std::int64_t most) const {
    std::vector<T> values(static_cast<std::size_t>(most));
    std::int64_t count = 0;
    check_graph(graph_api().get(handle_, name, type, most, &count, values.data()),
                "cudnnBackendGetAttribute");
    values.resize(static_cast<std::size_t>(std::min(count, most)));
    return values;
  }
  /// A descriptor among the attributes, copied into one that was made for it.
  void get(cudnnBackendAttributeName_t name, GraphDescriptor& into) const;

  cudnnBackendDescriptor_t handle() const { return handle_; }

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

/// The properties of a device, as cuDNN has them. Throws where this cuDNN cannot (before 9.8).
GraphDescriptor device_properties(const std::string& json);
/// Those of the first device that is there, as JSON.
std::string device_properties_json();

}  // namespace halfscope::test
