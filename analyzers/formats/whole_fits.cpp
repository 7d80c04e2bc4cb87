// SPDX-License-Identifier: Apache-2.0
// What whole tensors add to the fits: exact noise, MX formats, exact sums.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/formats/whole_noise.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::formats {

using frames::Progress;
using frames::Selection;
using frames::Tell;
using frames::WholeTensor;
using underflow::Analysis;
using underflow::FormatFit;
using underflow::TensorFindings;

namespace {

/// Scales beyond this are no loss scales of this world; sums could leave binary64's range.
constexpr int kMostLog2 = 128;

/// log2 of a scale that is a power of two of usable size.
std::optional<int> usable_log2(double scale) {
  const std::optional<int> k = exact_log2(scale);
  return k && std::abs(*k) <= kMostLog2 ? k : std::nullopt;
}

/// The exponent that brings the tensor's largest value near 1, so that squares stay in range.
int reference_of(const TensorFindings& t) {
  const int top = t.max_abs ? std::ilogb(*t.max_abs) : 0;
  return std::clamp(-top, -700, 700);
}

/// Tells of a part that goes from `first` to `last` of the whole.
Tell part_of(const Tell& whole, double first, double last) {
  if (!whole) return {};
  return [&whole, first, last](double part) { whole(first + part * (last - first)); };
}

/// Collects the whole tensors of one name.
class Collector {
 public:
  Collector(TensorFindings& tensor, bool sums_alone) : tensor_(tensor), sums_alone_(sums_alone) {
    rounding_.reference = reference_of(tensor);
    for (BlockSums& block : blocks_) block.reference = rounding_.reference;
  }

  /// subnormals is a property of the analysis' target.
  void take(const WholeTensor& whole, Subnormals subnormals, int threads) {
    const bool known = std::any_of(tensor_.per_step.begin(), tensor_.per_step.end(),
                                   [&](const auto& step) { return step.step == whole.step; });
    const std::optional<int> recorded = usable_log2(whole.scale);
    if (!known || !recorded) {  // the best scale is the tables', which do not cover this step
      complete_ = false;
      return;
    }
    elements_[whole.step] += whole.view.count;
    // Shares of the time, roughly.
    const double summed = sums_alone_ ? 1.0 : 0.05, rounded = 0.4;
    add_sums(whole, *recorded, threads, part_of(whole.tell, 0, summed));
    if (sums_alone_) return;
    if (jobs_.empty()) plan(subnormals);
    add_rounding(rounding_, jobs_, whole, *recorded, threads, part_of(whole.tell, summed, rounded));
    add_blocks(blocks_, whole, *recorded, threads, part_of(whole.tell, rounded, 1));
  }

  void finish() {
    if (elements_.empty()) return;
    for (const auto& [step, count] : elements_) tensor_.whole_steps.push_back(step);
    const bool all_steps =
        std::all_of(tensor_.per_step.begin(), tensor_.per_step.end(), [&](const auto& step) {
          const auto found = elements_.find(step.step);
          return found != elements_.end() && found->second == step.counts.total;
        });
    if (complete_ && all_steps) tensor_.sums = std::move(sums_);
    if (sums_alone_) return;
    for (FormatFit& fit : tensor_.fits) set_noise(fit);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      underflow::BlockFit fit = blocks_[i].counts;
      fit.element = kMxElements[i];
      fit.noise = noise_of(blocks_[i]);
      tensor_.block_fits.push_back(fit);
    }
  }

 private:
  void add_sums(const WholeTensor& whole, int log2_recorded, int threads, const Tell& tell) {
    constexpr std::size_t kSlice = std::size_t{1} << 24;
    MagnitudeSums sums;
    for (std::size_t first = 0; first < whole.view.count; first += kSlice) {
      const TensorView before{whole.view.dtype, nullptr, first};
      const std::size_t count = std::min(kSlice, whole.view.count - first);
      sums.add({whole.view.dtype, whole.view.data + before.bytes(), count}, threads);
      if (tell) tell(static_cast<double>(first + count) / static_cast<double>(whole.view.count));
    }
    sums_.merge(sums, -log2_recorded);
  }

  void plan(Subnormals subnormals) {
    for (const FormatFit& fit : tensor_.fits) {
      if (fit.saturating || !fit.best_log2) continue;
      jobs_.push_back({find_format(fit.format)->format, *fit.best_log2, subnormals});
    }
  }

  void set_noise(FormatFit& fit) const {
    const Format format = find_format(fit.format)->format;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (jobs_[i].format == format) fit.noise_at_best = noise_of(rounding_, i);
    }
  }

  TensorFindings& tensor_;
  bool sums_alone_;
  bool complete_ = true;
  std::map<std::int64_t, std::uint64_t> elements_;  // by step, over ranks
  MagnitudeSums sums_;
  std::vector<RoundingJob> jobs_;
  RoundingSums rounding_;
  std::array<BlockSums, kMxElements.size()> blocks_;
};

/// Reads the whole tensors of all logs.
void collect(Analysis& analysis, const Selection& selection, bool sums_alone, int threads,
             const Progress& progress, const readers::Logs& opened) {
  for (underflow::LogFindings& log : analysis.logs) {
    std::map<std::string, Collector> collectors;
    for (TensorFindings& t : log.tensors) {
      t.sums.reset();
      t.whole_steps.clear();
      collectors.emplace(t.name, Collector(t, sums_alone));
    }
    const auto take = [&](const WholeTensor& whole) {
      const auto found = collectors.find(whole.name);
      if (found == collectors.end()) return;
      found->second.take(whole, analysis.target.subnormals, threads);
    };
    readers::for_each_whole_tensor(opened.at(log.name), selection, take, analysis.notes, progress);
    for (auto& [name, collector] : collectors) collector.finish();
  }
}

}  // namespace

void add_fits(Analysis& analysis, const Selection& selection, const FitOptions& options,
              const Progress& progress, const readers::Logs& opened) {
  set_skipped_nonfinite(analysis);
  for (underflow::LogFindings& log : analysis.logs) {
    for (TensorFindings& t : log.tensors) {
      t.fits = fits_from_tables(t, analysis.target.subnormals, options.target_underflow);
      t.block_fits.clear();
      t.narrowest = narrowest(t);
    }
  }
  collect(analysis, selection, false, options.threads, progress, opened);
  const std::optional<int> log2 = exact_log2(analysis.loss_scale);
  for (underflow::LogFindings& log : analysis.logs) {
    for (TensorFindings& t : log.tensors) {
      if (t.fits.empty()) continue;
      t.lost_at_1 = underflow::lost_mass(t, analysis.target, 0);
      if (log2) t.lost = underflow::lost_mass(t, analysis.target, *log2);
    }
  }
}

void add_sums(Analysis& analysis, const Selection& selection, const Progress& progress,
              const readers::Logs& opened) {
  collect(analysis, selection, true, 0, progress, opened);
}

}  // namespace halfscope::analyzers::formats
