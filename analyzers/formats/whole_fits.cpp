// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/whole_fits.hpp"

#include <tbb/parallel_for_each.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "analyzers/formats/recipe_noise.hpp"
#include "analyzers/formats/whole_noise.hpp"
#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "halfscope/log/name_index.hpp"
#include "halfscope/table/rare.hpp"

namespace halfscope::analyzers::formats {

using frames::ProgressCallback;
using frames::Selection;
using frames::WholeStep;
using frames::WholeTensor;
using underflow::Analysis;
using underflow::FormatFit;
using underflow::TensorFindings;
using underflow::WholeFindings;

namespace {

/// Larger exponents do not occur in practice, and sums could leave binary64's range.
constexpr int kMostLog2 = 128;

/// Returns log2 of a scale that is a power of two of usable size.
std::optional<int> usable_log2(double scale) {
  const std::optional<int> k = exact_log2(scale);
  return k && std::abs(*k) <= kMostLog2 ? k : std::nullopt;
}

/// Returns the exponent that moves the largest value near 1, to keep squares in range.
int reference_of(const TensorFindings& t) {
  const int top = t.max_abs ? std::ilogb(*t.max_abs) : 0;
  return std::clamp(-top, -700, 700);
}

/// Returns a callback for a part that covers `first` to `last` of the whole.
ProgressCallback part_of(const ProgressCallback& whole, double first, double last) {
  if (!whole) return {};
  return [&whole, first, last](double part) { whole(first + part * (last - first)); };
}

/// Errors of rounding the whole tensors of one name to every format.
class FitCollector {
 public:
  FitCollector(const TensorFindings& tensor, const FitOptions& options)
      : enough_db_(options.sufficient_snr_db),
        mx_(mx_sums()),
        recipes_(recipe_sums(options.recipes, tensor.role)) {
    rounding_.reference = reference_of(tensor);
  }

  /// log2_recorded: empty if the recorded scale is no power of two, which only recipes allow.
  void take(const WholeTensor& whole, std::optional<int> log2_recorded,
            const TensorFindings& tensor, Subnormals subnormals, int threads,
            const ProgressCallback& tell) {
    constexpr double kRounded = 0.4;  // fraction of the time, roughly
    std::vector<RecipeSums*> wanted;
    const auto want = [&](std::vector<RecipeSums>& all) {
      for (RecipeSums& sums : all) wanted.push_back(&sums);
    };
    if (log2_recorded) {
      if (jobs_.empty()) plan(tensor, subnormals);
      add_rounding(rounding_, jobs_, whole, *log2_recorded, threads, part_of(tell, 0, kRounded));
      want(mx_);
    }
    if (whole.shape.size() > 1) want(recipes_);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double share = (1 - kRounded) / static_cast<double>(wanted.size());
      const double done = kRounded + share * static_cast<double>(i);
      add_recipe(*wanted[i], whole, threads, part_of(tell, done, done + share));
    }
  }

  void finish_recipes(TensorFindings& tensor) const {
    for (const RecipeSums& sums : recipes_) {
      const underflow::RecipeFit& fit = sums.fit;
      if (!fit.not_allowed && fit.values + fit.in_nan_blocks == 0) continue;
      tensor.whole.set().recipe_fits.push_back(sums.finished());
    }
  }

  void finish(TensorFindings& tensor) const {
    WholeFindings& whole = tensor.whole.set();
    for (FormatFit& fit : whole.fits) set_noise(fit, tensor);
    whole.narrowest = narrowest(tensor);
    for (const RecipeSums& sums : mx_) whole.mx_fits.push_back(sums.finished());
  }

 private:
  /// Plans one job at each fit's best scale, and one at scale 1 if nothing overflows there.
  void plan(const TensorFindings& tensor, Subnormals subnormals) {
    for (const FormatFit& fit : tensor.whole->fits) {
      if (fit.saturating || !fit.best_log2) continue;
      const Format format = find_format(fit.format)->format;
      jobs_.push_back({format, *fit.best_log2, subnormals});
      if (*fit.best_log2 > 0) jobs_.push_back({format, 0, subnormals});
    }
  }

  void set_noise(FormatFit& fit, const TensorFindings& tensor) const {
    const Format format = find_format(fit.format)->format;
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      const RoundingJob& job = jobs_[i];
      if (job.format != format) continue;
      const auto noise = noise_of(rounding_, i);
      if (job.log2_scale == fit.best_log2) fit.noise_at_best = noise;
      // If empty, the whole tensors have no finite nonzero value, and the estimate is kept.
      if (job.log2_scale == 0 && noise) {
        judge_at_1(fit, tensor, job.subnormals, noise, enough_db_);
      }
    }
    judge_at_best(fit, tensor, enough_db_);
  }

  double enough_db_;
  std::vector<RoundingJob> jobs_;
  RoundingSums rounding_;
  std::vector<RecipeSums> mx_, recipes_;
};

/// Collects the whole tensors of one name. There may be a million collectors, so shared data are
/// stored elsewhere.
class Collector {
 public:
  /// Settings shared by all tensors.
  struct SharedSettings {
    MagnitudeSums none;              ///< empty sums
    Subnormals subnormals;           ///< rule of the analysis' target
    std::optional<FitOptions> fits;  ///< empty: only sums are needed
  };

  void take(const WholeTensor& whole, const SharedSettings& asked, TensorFindings& tensor) {
    const bool known = tensor.per_step.contains(whole.step);
    const std::optional<int> recorded = known ? usable_log2(whole.scale) : std::nullopt;
    if (!recorded) complete_ = false;  // the best scale is from histograms, which lack this step
    if (asked.fits && !fits_ && tensor.counts.total > 0) {
      fits_ = std::make_unique<FitCollector>(tensor, *asked.fits);
    }
    const int threads = asked.fits ? asked.fits->threads : 0;
    const double summed = fits_ ? 0.05 : 1.0;  // fraction of the time, roughly
    if (recorded) {
      count(whole.step, whole.view.count);
      add_sums(sums_of(whole, asked.none, threads, part_of(whole.tell, 0, summed)), *recorded,
               asked.none, tensor);
    }
    if (!fits_) return;
    fits_->take(whole, recorded, tensor, asked.subnormals, threads, part_of(whole.tell, summed, 1));
  }

  void take(const frames::CountedSums& counted, const SharedSettings& asked,
            TensorFindings& tensor) {
    const std::optional<int> recorded = usable_log2(counted.scale);
    if (!tensor.per_step.contains(counted.step) || !recorded) {
      complete_ = false;
      return;
    }
    count(counted.step, counted.elements);
    add_sums(counted.sums, *recorded, asked.none, tensor);
  }

  void finish(TensorFindings& tensor) {
    if (fits_) fits_->finish_recipes(tensor);
    const Elements elements = all();
    if (elements.empty()) return;
    const bool all_steps = std::ranges::all_of(tensor.per_step, [&](const auto& step) {
      const auto found = elements.find(step.step);
      return found != elements.end() && found->second == step.counts.total;
    });
    if (!complete_ || !all_steps) tensor.sums = {};
    if (!fits_) return;
    for (const auto& [step, count] : elements) tensor.whole.set().whole_steps.push_back(step);
    fits_->finish(tensor);
  }

 private:
  using Elements = std::map<std::int64_t, std::uint64_t>;  // number by step, over ranks
  void count(std::int64_t step, std::uint64_t more) {
    if (any_ && step != step_) others_.set()[step_] += std::exchange(count_, 0);
    any_ = true;
    step_ = step;
    count_ += more;
  }
  Elements all() const {
    Elements elements = *others_;
    if (any_) elements[step_] += count_;
    return elements;
  }

  static MagnitudeSums sums_of(const WholeTensor& whole, const MagnitudeSums& none, int threads,
                               const ProgressCallback& tell) {
    constexpr std::size_t kSlice = std::size_t{1} << 24;
    MagnitudeSums sums = none;
    for (std::size_t first = 0; first < whole.view.count; first += kSlice) {
      const TensorView before{whole.view.dtype, nullptr, first};
      const std::size_t count = std::min(kSlice, whole.view.count - first);
      sums.add({whole.view.dtype, whole.view.data + before.bytes(), count}, threads);
      if (tell) tell(static_cast<double>(first + count) / static_cast<double>(whole.view.count));
    }
    return sums;
  }

  static void add_sums(const MagnitudeSums& sums, int log2_recorded, const MagnitudeSums& none,
                       TensorFindings& tensor) {
    std::optional<PackedSums>& kept = tensor.sums.set();
    MagnitudeSums all = kept ? kept->unpacked() : none;
    all.merge(sums, -log2_recorded);
    kept = PackedSums(all);
  }

  bool complete_ = true, any_ = false;
  std::int64_t step_ = 0;    // step of the last tensor
  std::uint64_t count_ = 0;  // number of its elements
  Rare<Elements> others_;
  std::unique_ptr<FitCollector> fits_;
};

/// Visits all tensors in parallel.
template <class Visit>
void for_each_tensor(Analysis& analysis, const Visit& visit) {
  for (underflow::LogFindings& log : analysis.logs) {
    tbb::parallel_for_each(log.tensors, visit);
  }
}

/// Sets the fits that histograms show, before whole tensors are read.
void set_fits(Analysis& analysis, double sufficient_snr_db) {
  set_skipped_nonfinite(analysis);
  for_each_tensor(analysis, [&](TensorFindings& t) {
    if (t.counts.total == 0) return;  // a file may have a million empty tensors
    WholeFindings& whole = t.whole.set();
    whole.fits = fits_from_tables(t, analysis.target.subnormals, sufficient_snr_db);
    whole.mx_fits.clear();
    whole.recipe_fits.clear();
    whole.narrowest = narrowest(t);
  });
}

void set_lost(Analysis& analysis) {
  const std::optional<int> log2 = exact_log2(analysis.loss_scale);
  for_each_tensor(analysis, [&](TensorFindings& t) {
    if (t.whole->fits.empty()) return;
    WholeFindings& whole = t.whole.set();
    whole.lost_at_1 = underflow::lost_mass(t, analysis.target, 0);
    if (log2) whole.lost = underflow::lost_mass(t, analysis.target, *log2);
  });
}

}  // namespace

WholePass::WholePass(Analysis& analysis, const Selection& selection,
                     const std::optional<FitOptions>& options)
    : analysis_(analysis), selection_(selection), options_(options) {
  if (options_) set_fits(analysis, options_->sufficient_snr_db);
}

struct WholePass::OfLog {
  underflow::LogFindings& log;
  Collector::SharedSettings asked;
  std::vector<Collector> collectors = std::vector<Collector>(log.tensors.size());
  log::NameIndex<std::vector<TensorFindings>> places{log.tensors};
  std::size_t next = 0;  // tensors usually arrive in order
  std::optional<frames::TensorsOfSteps> tensors = {};

  std::optional<std::size_t> place_of(const std::string& name) {
    if (log.tensors.empty()) return std::nullopt;
    if (next == log.tensors.size()) next = 0;
    if (log.tensors[next].name == name) return next++;
    if (!indexed) {
      for (std::size_t i = 0; i < log.tensors.size(); ++i) places.add(i);
      indexed = true;
    }
    const auto found = places.find(name);
    if (found) next = *found + 1;
    return found;
  }
  bool indexed = false;
};

WholePass::~WholePass() = default;

void WholePass::begin(underflow::LogFindings& log) {
  log_.reset(new OfLog{
      log, {underflow::sums_for(analysis_.target), analysis_.target.subnormals, options_}});
  for (TensorFindings& t : log.tensors) {
    t.sums = {};
    if (options_ && t.counts.total > 0) t.whole.set().whole_steps.clear();
  }
  log_->tensors.emplace(selection_, [this](const WholeTensor& whole) {
    OfLog& of = *log_;
    const auto place = of.place_of(whole.name);
    if (place) of.collectors[*place].take(whole, of.asked, of.log.tensors[*place]);
  });
}

void WholePass::take(const WholeStep& step, const log::NamedTensor& tensor,
                     const ProgressCallback& tell) {
  log_->tensors->take(step, tensor, tell);
}

void WholePass::take(const WholeStep& step, const ProgressCallback& tell) {
  log_->tensors->take(step, tell);
}

void WholePass::take(const frames::CountedSums& counted) {
  const auto place = log_->place_of(counted.name);
  if (place) log_->collectors[*place].take(counted, log_->asked, log_->log.tensors[*place]);
}

void WholePass::finish_log() {
  log_->tensors->finish(log_->log.name, notes_);
  for (std::size_t i = 0; i < log_->collectors.size(); ++i) {
    log_->collectors[i].finish(log_->log.tensors[i]);
    log_->collectors[i] = {};
  }
  log_.reset();
}

void WholePass::finish() {
  analysis_.notes.add_all(notes_);
  notes_.clear();
  if (options_) set_lost(analysis_);
  const auto has_fits = [](const TensorFindings& t) { return !t.whole->recipe_fits.empty(); };
  if (options_ && !options_->recipes.empty() &&
      std::ranges::none_of(analysis_.tensors(), has_fits)) {
    analysis_.notes.add(
        "no full tensor is a matrix of weights, activations or their gradients, so that no recipe "
        "of block formats was tried; a recorder writes full tensors with sample_every");
  }
}

}  // namespace halfscope::analyzers::formats
