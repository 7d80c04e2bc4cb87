// SPDX-License-Identifier: Apache-2.0
#include "cuda/plans.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace halfscope::test {
namespace {

using Kind = ConvolutionCall::Kind;

/// N, C, H, W in memory as N, H, W, C; of filters K, C, R, S as K, R, S, C.
GraphDescriptor tensor(std::int64_t id, const sim::backend::Shape& nhwc, Dtype dtype) {
  const std::array dimensions = {nhwc[0], nhwc[3], nhwc[1], nhwc[2]};
  const std::array<std::int64_t, 4> strides = {nhwc[1] * nhwc[2] * nhwc[3], 1, nhwc[2] * nhwc[3],
                                               nhwc[3]};
  GraphDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
           dtype == Dtype::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, std::int64_t{16})
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64,
           std::span<const std::int64_t>(dimensions))
      .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, std::span<const std::int64_t>(strides));
  made.finalize();
  return made;
}

GraphDescriptor convolution(const sim::backend::Convolution& conv) {
  const std::array<std::int64_t, 2> ones = {1, 1}, strides = {conv.stride, conv.stride},
                                    paddings = {conv.padding, conv.padding};
  const auto pair = [](const std::array<std::int64_t, 2>& of) {
    return std::span<const std::int64_t>(of);
  };
  GraphDescriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, std::int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, pair(ones))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, pair(strides))
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, pair(paddings))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, pair(paddings));
  made.finalize();
  return made;
}

/// The attributes of one of the three operations.
struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t conv, x, w, y, alpha, beta;
};
Names names_of(Kind kind) {
  switch (kind) {
    case Kind::fprop:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Kind::dgrad:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    default:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
}

/// A graph of one operation; the tensors and the operation live with it.
struct Graph {
  Graph(const ConvolutionCall& call, Dtype dtype)
      : x(tensor(1, call.x, dtype)),
        w(tensor(2, call.w, dtype)),
        y(tensor(3, call.y(), dtype)),
        conv(convolution(call.conv)),
        operation(names_of(call.kind).operation),
        graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR) {
    const Names names = names_of(call.kind);
    operation.set(names.conv, conv)
        .set(names.x, x)
        .set(names.w, w)
        .set(names.y, y)
        .set(names.alpha, CUDNN_TYPE_FLOAT, 1.0F)
        .set(names.beta, CUDNN_TYPE_FLOAT, call.add ? 1.0F : 0.0F);
    operation.finalize();
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    graph.finalize();
  }
  GraphDescriptor x, w, y, conv, operation, graph;
};

/// Engine configurations, best first; none where a heuristic knows none.
std::vector<GraphDescriptor> configurations(const Graph& graph, const GraphDescriptor& device,
                                            cudnnBackendHeurMode_t mode) {
  constexpr std::int64_t kMost = 64;
  GraphDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.graph)
      .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode)
      .set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device);
  std::vector<GraphDescriptor> found;
  if (heuristic.try_finalize() != CUDNN_STATUS_SUCCESS) return found;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (std::int64_t i = 0; i < kMost; ++i) {
    found.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    handles.push_back(found.back().handle());
  }
  std::int64_t count = 0;
  check_graph(graph_api().get(heuristic.handle(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                              CUDNN_TYPE_BACKEND_DESCRIPTOR, kMost, &count, handles.data()),
              "the results of a heuristic");
  while (std::ssize(found) > count) found.pop_back();
  return found;
}

Engine engine_of(const GraphDescriptor& configuration) {
  GraphDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, engine);
  const auto numerical = engine.get<cudnnBackendNumericalNote_t>(
      CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  const auto behaviour = engine.get<cudnnBackendBehaviorNote_t>(
      CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, CUDNN_BEHAVIOR_NOTE_TYPE_COUNT);
  const auto has = [](const auto& notes, auto note) {
    return std::find(notes.begin(), notes.end(), note) != notes.end();
  };
  Engine made;
  made.index = engine.get<std::int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1).at(0);
  made.deterministic = !has(numerical, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
  made.tensor_core = has(numerical, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
  made.run_time_compiled = has(behaviour, CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION);
  return made;
}

void make_plan(const GraphDescriptor& configuration, const GraphDescriptor& device,
               Engine& engine) {
  GraphDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration)
      .set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device);
  if (plan.try_finalize() != CUDNN_STATUS_SUCCESS) return;
  engine.planned = true;
  engine.workspace =
      plan.get<std::int64_t>(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1).at(0);
}

}  // namespace

std::vector<Engine> Planner::engines(const ConvolutionCall& call, Dtype dtype,
                                     bool (*wanted)(const Engine&)) const {
  const Graph graph(call, dtype);
  std::vector<Engine> found;
  std::set<std::int64_t> planned;  // an engine has many configurations
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const GraphDescriptor& configuration : configurations(graph, device_, mode)) {
      Engine engine = engine_of(configuration);
      if (planned.contains(engine.index)) continue;
      if (wanted(engine)) make_plan(configuration, device_, engine);
      if (engine.planned || !wanted(engine)) planned.insert(engine.index);
      found.push_back(engine);
    }
  }
  return found;
}

}  // namespace halfscope::test
