// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/update/update_cuda.hpp"

#include <stdexcept>
#include <string>

#include "halfscope/device/round_trip.hpp"
#include "halfscope/table/update/update_kernels.hpp"
#include "halfscope/table/update/update_source.hpp"

namespace halfscope::cuda {
namespace {

/// Layout of the results that are copied to the host.
struct UpdateLayout {
  Layout all;
  std::size_t counts_at = 0, cells_at = 0, errors_at = 0;

  explicit UpdateLayout(const UpdateOptions& options) {
    counts_at = all.add<PairCounts>(1);
    if (!options.distributions) return;
    cells_at =
        all.add<CellCounts>(std::size_t{weight_binades(options.format).rows} * kUpdateBinades);
    errors_at = all.add<unsigned long long>(kErrors);
  }
};

UpdateOptions checked(const DeviceTensor& weights, const DeviceTensor& updates,
                      const UpdateOptions& options) {
  for (const DeviceTensor* tensor : {&weights, &updates}) {
    require_device_tensor(*tensor, "UpdateCount");
  }
  const auto view = [](const DeviceTensor& t) {
    return TensorView{t.dtype, nullptr, static_cast<std::size_t>(t.count)};
  };
  require_pairs(view(weights), view(updates), options.format);
  return options;
}

UpdateOutcomes outcomes_of(const unsigned long long (&counts)[kOutcomes]) {
  return {.underflow = counts[0],
          .swamped = counts[1],
          .applied = counts[2],
          .exact = counts[3],
          .overflow = counts[4]};
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
  UpdateOptions options;
  std::uint64_t pairs;
  UpdateLayout layout;
  RoundTrip trip;

  State(const DeviceTensor& weights, const DeviceTensor& updates, const UpdateOptions& o,
        cudaStream_t stream)
      : options(checked(weights, updates, o)),
        pairs(static_cast<std::uint64_t>(weights.count)),
        layout(options),
        trip(0, layout.all.bytes(), stream) {}
};

UpdateCount::UpdateCount(const DeviceTensor& weights, const DeviceTensor& updates,
                         const UpdateOptions& options, cudaStream_t stream)
    : state_(std::make_unique<State>(weights, updates, options, stream)) {
  const UpdateLayout& layout = state_->layout;
  const DeviceMemory output(layout.all.bytes(), stream);
  check(cudaMemsetAsync(output.data(), 0, layout.all.bytes(), stream), "cudaMemsetAsync");
  UpdateWork work = {at_offset<PairCounts>(output.data(), layout.counts_at), nullptr, nullptr};
  if (options.distributions) {
    work.cells = at_offset<CellCounts>(output.data(), layout.cells_at);
    work.errors = at_offset<unsigned long long>(output.data(), layout.errors_at);
  }
  count_pairs(weights, updates, options.format, work, stream);
  state_->trip.fetch(output);
}

UpdateCount::UpdateCount(UpdateCount&&) noexcept = default;
UpdateCount::~UpdateCount() = default;

UpdateTable UpdateCount::get() {
  const void* const result = state_->trip.result();
  const UpdateLayout& layout = state_->layout;
  const auto& counts = *at_offset<PairCounts>(result, layout.counts_at);
  UpdateTable table;
  table.counts = {.pairs = state_->pairs,
                  .zero = counts.zero,
                  .nonfinite = counts.nonfinite,
                  .half = outcomes_of(counts.half),
                  .fused = outcomes_of(counts.fused),
                  .rule_2048 = counts.rule};
  if (state_->options.distributions) {
    add_distributions(table, state_->options.format, at_offset<CellCounts>(result, layout.cells_at),
                      at_offset<unsigned long long>(result, layout.errors_at));
  }
  return table;
}

}  // namespace halfscope::cuda
