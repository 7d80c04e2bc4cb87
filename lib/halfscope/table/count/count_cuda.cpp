// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/count/count_cuda.hpp"

#include <algorithm>
#include <stdexcept>

#include "halfscope/table/count/count_kernels.hpp"

namespace halfscope::cuda {
namespace {

/// The result of a slice, and its tensor.
struct Place {
  std::size_t tensor;
  const SliceResult* result;
  const RowCounts* rows;
};

/// The slices of one launch.
struct Launch {
  WorkList<TableSlice> list;
  std::size_t rows = 0;

  explicit Launch(unsigned part_elements) : list(part_elements) {}

  /// Adds a tensor in slices of `most` elements.
  void add(const DeviceTensor& tensor, std::size_t index, std::int64_t most) {
    const RowRange range = rows_of(tensor.dtype);
    for_each_slice(tensor, most, [&](const Slice& slice) {
      list.add({slice, range, rows, index});
      rows += range.count;
    });
  }
};

Moments moments_of(const BinadeTable& table, const PartSums& sums) {
  const std::uint64_t finite = table.finite_nonzero() + table.specials().zero;
  return {finite == 0 ? 0.0 : sums.sum / static_cast<double>(finite), sums.sum_squares};
}

}  // namespace

struct TableCount::State {
  cudaStream_t stream;
  CountLimits limits;
  std::size_t tensors = 0;
  std::vector<Place> places;  ///< in the order of the slices of a tensor
  ChunkedMemory device, pinned;
  Completion completion;

  State(cudaStream_t s, const CountLimits& l)
      : stream(s), limits(l), device(zeroed_memory(s)), pinned(pinned_memory()), completion(s) {}

  void queue(const Launch& launch, bool by_encodings) {
    const std::vector<TableSlice>& slices = launch.list.items();
    if (slices.empty()) return;
    static const CutFractions cuts = cut_fractions();
    CountWork work = {};
    work.cuts = cuts;
    work.results = pinned.take<SliceResult>(slices.size());
    work.result_rows = pinned.take<RowCounts>(launch.rows);
    work.extras = device.take<Extras>(slices.size());
    if (by_encodings) {
      work.encodings = device.take<unsigned>(slices.size() * kEncodings);
    } else {
      work.rows = device.take<RowCounts>(launch.rows);
      work.sums = device.take<PartSums>(launch.list.parts());
    }
    (by_encodings ? count_encodings : count_parts)(launch.list, work, pinned, stream);
    for (std::size_t i = 0; i < slices.size(); ++i) {
      places.push_back({slices[i].tensor, work.results + i, work.result_rows + slices[i].rows});
    }
  }
};

TableCount::TableCount(cudaStream_t stream, const CountLimits& limits)
    : state_(std::make_unique<State>(stream, limits)) {}

TableCount::TableCount(std::span<const DeviceTensor> tensors, cudaStream_t stream,
                       const CountLimits& limits)
    : TableCount(stream, limits) {
  add(tensors);
  finish();
}

TableCount::TableCount(TableCount&&) noexcept = default;
TableCount::~TableCount() = default;

std::size_t TableCount::add(std::span<const DeviceTensor> tensors) {
  if (state_->completion.marked()) throw std::logic_error("TableCount: add() after finish()");
  for (const DeviceTensor& tensor : tensors) require_device_tensor(tensor, "TableCount");
  Launch parts(kElementsByParts), encodings(kElementsByEncodings);
  const std::size_t first = state_->tensors;
  const CountLimits& limits = state_->limits;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const DeviceTensor& tensor = tensors[i];
    const bool many = tensor.dtype != Dtype::f32 && tensor.count >= limits.encodings_from;
    (many && can_count_encodings() ? encodings : parts).add(tensor, first + i, limits.slice);
  }
  const std::size_t places = state_->places.size();
  try {
    state_->queue(parts, false);
    state_->queue(encodings, true);
  } catch (...) {  // Slices that were queued have no results.
    state_->places.resize(places);
    throw;
  }
  state_->tensors += tensors.size();
  return first;
}

void TableCount::finish() { state_->completion.mark(); }

std::vector<TensorFacts> TableCount::get() {
  finish();
  state_->completion.wait();
  std::vector<TensorFacts> out(state_->tensors);
  std::vector<PartSums> sums(out.size());
  for (const Place& place : state_->places) {
    add_to_table(out[place.tensor].table, *place.result, place.rows);
    sums[place.tensor].sum += place.result->sums.sum;
    sums[place.tensor].sum_squares += place.result->sums.sum_squares;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].moments = moments_of(out[i].table, sums[i]);
  }
  return out;
}

}  // namespace halfscope::cuda
