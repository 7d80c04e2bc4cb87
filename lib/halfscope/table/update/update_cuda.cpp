// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/update/update_cuda.hpp"

#include <algorithm>

#include "halfscope/table/update/pair_outcome.hpp"
#include "halfscope/table/update/update_kernels.hpp"
#include "halfscope/table/update/update_source.hpp"

namespace halfscope::cuda {
namespace {

void require_pair(const WeightUpdate& pair, const UpdateOptions& options) {
  for (const DeviceTensor* tensor : {&pair.weights, &pair.updates}) {
    require_device_tensor(*tensor, "UpdateCount");
  }
  const auto view = [](const DeviceTensor& t) {
    return TensorView{t.dtype, nullptr, static_cast<std::size_t>(t.count)};
  };
  require_pairs(view(pair.weights), view(pair.updates), options.format);
}

/// Calls visit(slice) for each slice of a weight and its update.
template <class Visit>
void for_each_pair_slice(const WeightUpdate& pair, unsigned tensor, const Visit& visit) {
  std::size_t first = 0;
  for_each_slice(pair.weights, Slice::kMost, [&](const Slice& slice) {
    const auto* const updates =
        static_cast<const std::byte*>(pair.updates.data) + width_of(pair.updates.dtype) * first;
    visit(PairSlice{slice.data, updates, slice.count, 0, slice.dtype, pair.updates.dtype, tensor});
    first += slice.count;
  });
}

/// Adds the outcomes of a part with `live` pairs; those that are not counted are applied.
void add_outcomes(UpdateOutcomes& to, const unsigned (&counts)[kOutcomes], std::uint64_t live) {
  const auto add = [&](std::uint64_t& total, Outcome outcome) {
    total += counts[static_cast<unsigned>(outcome)];
    live -= counts[static_cast<unsigned>(outcome)];
  };
  add(to.underflow, Outcome::underflow);
  add(to.swamped, Outcome::swamped);
  add(to.exact, Outcome::exact);
  add(to.overflow, Outcome::overflow);
  to.applied += live;
}

void add_part(UpdateCounts& to, const PairCounts& part, std::uint64_t pairs) {
  const std::uint64_t live = pairs - part.zero - part.nonfinite;
  to.pairs += pairs;
  to.zero += part.zero;
  to.nonfinite += part.nonfinite;
  to.rule_2048 += part.rule;
  add_outcomes(to.half, part.half, live);
  add_outcomes(to.fused, part.fused, live);
}

/// Adds one cell, and its ratios.
void add_cell(UpdateTable& table, unsigned row, int first_weight, int update,
              const CellCounts& counts) {
  const bool zero_weight = row == 0;
  const int weight = first_weight + static_cast<int>(row) - 1;
  for (const int less : {0, 1}) {
    const auto& [kept, lost] = counts.pairs[less];
    if (kept + lost == 0) continue;
    const UpdateCell cell = {kept + lost, lost};
    table.cells[{zero_weight ? UpdateTable::kZeroWeight : weight, update}] += cell;
    if (!zero_weight) table.ratios[update - weight - less] += cell;
  }
}

void add_distributions(UpdateTable& table, Format f, const CellCounts* cells,
                       const unsigned long long* errors) {
  const WeightBinades binades = weight_binades(f);
  for (unsigned row = 0; row < binades.rows; ++row) {
    for (int column = 0; column < kUpdateBinades; ++column) {
      add_cell(table, row, binades.first, kFirstUpdateBinade + column, *cells++);
    }
  }
  for (unsigned i = 0; i < kErrors; ++i) {
    if (errors[i] != 0) table.errors[kFirstError + static_cast<int>(i)] += errors[i];
  }
}

}  // namespace

struct UpdateCount::State {
  /// A part's tensor and number of pairs.
  struct Part {
    unsigned tensor, pairs;
  };

  UpdateOptions options;
  std::size_t tensors;
  std::size_t cells;  ///< cells of a tensor; 0 if distributions are not requested
  std::vector<Part> parts;
  const PairCounts* counts = nullptr;
  const CellCounts* cell_counts = nullptr;
  const unsigned long long* errors = nullptr;
  ChunkedMemory device, pinned;
  Completion completion;

  State(std::size_t count, const UpdateOptions& o, cudaStream_t stream)
      : options(o),
        tensors(count),
        cells(o.distributions ? std::size_t{weight_binades(o.format).rows} * kUpdateBinades : 0),
        device(zeroed_memory(stream)),
        pinned(pinned_memory()),
        completion(stream) {}

  void add(const PairSlice& slice) {
    for (unsigned first = 0; first < slice.count; first += kPairElements) {
      parts.push_back({slice.tensor, std::min(kPairElements, slice.count - first)});
    }
  }

  /// Queues the copy of an array from the device. Returns where it will be.
  template <class T>
  const T* fetched(const T* from, std::size_t count, cudaStream_t stream) {
    T* const to = pinned.take<T>(count);
    if (count != 0) {
      check(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyDeviceToHost, stream),
            "cudaMemcpyAsync");
    }
    return to;
  }
};

UpdateCount::UpdateCount(std::span<const WeightUpdate> tensors, const UpdateOptions& options,
                         cudaStream_t stream)
    : state_(std::make_unique<State>(tensors.size(), options, stream)) {
  WorkList<PairSlice> list(kPairElements);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    require_pair(tensors[i], options);
    for_each_pair_slice(tensors[i], static_cast<unsigned>(i), [&](const PairSlice& slice) {
      list.add(slice);
      state_->add(slice);
    });
  }
  const std::size_t cells = state_->cells * tensors.size();
  const std::size_t errors = cells == 0 ? 0 : kErrors * tensors.size();
  auto* const counts = state_->pinned.take<PairCounts>(list.parts());
  const UpdateWork work = {{},
                           counts,
                           state_->device.take<CellCounts>(cells),
                           state_->device.take<unsigned long long>(errors)};
  count_pairs(list, options.format, work, state_->pinned, stream);
  state_->counts = counts;
  state_->cell_counts = state_->fetched(work.cells, cells, stream);
  state_->errors = state_->fetched(work.errors, errors, stream);
  state_->completion.mark();
}

UpdateCount::UpdateCount(UpdateCount&&) noexcept = default;
UpdateCount::~UpdateCount() = default;

std::vector<UpdateTable> UpdateCount::get() {
  state_->completion.wait();
  std::vector<UpdateTable> out(state_->tensors);
  for (std::size_t i = 0; i < state_->parts.size(); ++i) {
    const State::Part& part = state_->parts[i];
    add_part(out[part.tensor].counts, state_->counts[i], part.pairs);
  }
  for (std::size_t i = 0; state_->cells != 0 && i < out.size(); ++i) {
    add_distributions(out[i], state_->options.format, state_->cell_counts + i * state_->cells,
                      state_->errors + i * kErrors);
  }
  return out;
}

}  // namespace halfscope::cuda
