// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/count/count_cuda.hpp"

#include <algorithm>

#include "halfscope/device/round_trip.hpp"
#include "halfscope/table/count/count_kernels.hpp"

namespace halfscope::cuda {
namespace {

/// A tensor's share of the arrays: its rows and sums.
struct Share {
  DeviceTensor tensor;
  bool by_encodings;
  std::size_t first_sum, sum_count;
};

/// The work to do, and the layout of all arrays.
struct CountPlan {
  std::vector<Part> parts;
  std::vector<Place> places;
  std::vector<Share> shares;
  std::size_t rows = 0, sums = 0;
  Layout sent, fetched;
  std::size_t segments_at = 0, places_at = 0, parts_at = 0;
  std::size_t extras_at = 0, rows_at = 0, sums_at = 0;

  CountPlan(std::span<const DeviceTensor> tensors, std::int64_t encodings_from);
};

CountPlan::CountPlan(std::span<const DeviceTensor> tensors, std::int64_t encodings_from) {
  for (const DeviceTensor& tensor : tensors) {
    require_device_tensor(tensor, "TableCount");
    const RowRange range = rows_of(tensor.dtype);
    const auto index = static_cast<unsigned>(places.size());
    places.push_back({rows, range.first});
    rows += range.count;
    const bool by_encodings = tensor.dtype != Dtype::f32 && tensor.count >= encodings_from;
    const std::size_t first = parts.size();
    if (!by_encodings) append_parts(tensor, index, parts);
    shares.push_back({tensor, by_encodings, first, parts.size() - first});
  }
  sums = parts.size();  // the sums of parts come first
  for (Share& share : shares) {
    if (!share.by_encodings) continue;
    share.first_sum = sums;
    share.sum_count = encoding_sums(share.tensor.count);
    sums += share.sum_count;
  }
  segments_at = sent.add<std::uint8_t>(kSegmentEntries);
  places_at = sent.add<Place>(places.size());
  parts_at = sent.add<Part>(parts.size());
  extras_at = fetched.add<Extras>(shares.size());
  rows_at = fetched.add<RowCounts>(rows);
  sums_at = fetched.add<PartSums>(sums);
}

void count_by_encodings(const CountPlan& plan, const CountWork& work, PartSums* sums,
                        cudaStream_t stream) {
  DeviceMemory encodings;
  for (std::size_t i = 0; i < plan.shares.size(); ++i) {
    const Share& share = plan.shares[i];
    if (!share.by_encodings) continue;
    if (encodings.data() == nullptr) {
      encodings = DeviceMemory(sizeof(Encodings), stream);
      check(cudaMemsetAsync(encodings.data(), 0, sizeof(Encodings), stream), "cudaMemsetAsync");
    }
    count_encodings(share.tensor, static_cast<unsigned>(i), work, encodings.as<Encodings>(),
                    sums + share.first_sum, stream);
  }
}

Moments moments_of(const BinadeTable& table, std::span<const PartSums> sums) {
  PartSums all{};
  for (const PartSums& part : sums) {
    all.sum += part.sum;
    all.sum_squares += part.sum_squares;
  }
  const std::uint64_t finite = table.finite_nonzero() + table.specials().zero;
  return {finite == 0 ? 0.0 : all.sum / static_cast<double>(finite), all.sum_squares};
}

}  // namespace

struct TableCount::State {
  CountPlan plan;
  RoundTrip trip;

  State(std::span<const DeviceTensor> tensors, std::int64_t encodings_from, cudaStream_t stream)
      : plan(tensors, encodings_from), trip(plan.sent.bytes(), plan.fetched.bytes(), stream) {}
};

TableCount::TableCount(std::span<const DeviceTensor> tensors, cudaStream_t stream,
                       std::int64_t encodings_from)
    : state_(std::make_unique<State>(tensors, encodings_from, stream)) {
  auto& [plan, trip] = *state_;
  static const std::array segments = segment_table();
  std::copy(segments.begin(), segments.end(), trip.outgoing<std::uint8_t>(plan.segments_at));
  std::copy(plan.places.begin(), plan.places.end(), trip.outgoing<Place>(plan.places_at));
  std::copy(plan.parts.begin(), plan.parts.end(), trip.outgoing<Part>(plan.parts_at));
  const DeviceMemory input(plan.sent.bytes(), stream), output(plan.fetched.bytes(), stream);
  trip.send(input);
  if (!tensors.empty()) {
    check(cudaMemsetAsync(output.data(), 0, plan.sums_at, stream), "cudaMemsetAsync");
  }
  const CountWork work = {at_offset<std::uint8_t>(input.data(), plan.segments_at),
                          at_offset<Place>(input.data(), plan.places_at),
                          at_offset<Extras>(output.data(), plan.extras_at),
                          at_offset<RowCounts>(output.data(), plan.rows_at)};
  auto* const sums = at_offset<PartSums>(output.data(), plan.sums_at);
  count_parts(at_offset<Part>(input.data(), plan.parts_at), plan.parts.size(), work, sums, stream);
  count_by_encodings(plan, work, sums, stream);
  trip.fetch(output);
}

TableCount::TableCount(TableCount&&) noexcept = default;
TableCount::~TableCount() = default;

std::vector<TensorFacts> TableCount::get() {
  auto& [plan, trip] = *state_;
  const void* const result = trip.result();
  std::vector<TensorFacts> out;
  for (std::size_t i = 0; i < plan.shares.size(); ++i) {
    const Share& share = plan.shares[i];
    const auto* const rows = at_offset<RowCounts>(result, plan.rows_at) + plan.places[i].rows;
    const auto* const sums = at_offset<PartSums>(result, plan.sums_at) + share.first_sum;
    BinadeTable table =
        table_of(share.tensor.dtype, rows, at_offset<Extras>(result, plan.extras_at)[i]);
    const Moments moments = moments_of(table, {sums, share.sum_count});
    out.push_back({std::move(table), moments});
  }
  return out;
}

}  // namespace halfscope::cuda
