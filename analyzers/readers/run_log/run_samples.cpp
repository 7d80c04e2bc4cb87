// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/run_log/run_log.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "analyzers/readers/common/roles.hpp"
#include "halfscope/log/safetensors.hpp"

namespace halfscope::analyzers::readers::run_log {

using frames::Selection;

namespace {

using log::printable;

/// One rank of a run log, with the scalars and the tensor records of its sampled steps.
struct Rank {
  log::RunLog run;
  std::map<std::int64_t, log::StepScalars> scalars;
  std::map<std::int64_t, std::map<std::string, log::TensorRecord>> records;

  Rank(const log::OpenPath& folder, const Selection& selection) : run(folder) {
    for (log::StepScalars& s : run.scalars()) scalars.emplace(s.step, std::move(s));
    const auto samples = run.samples();
    const auto wanted = [&](const std::string&, std::int64_t step) {
      return frames::in_steps(selection, step) && samples.contains(step);
    };
    const auto keep = [&](log::TensorRecord&& record) {
      record.table = BinadeTable();  // not needed: the values are available
      auto& of_step = records[record.step];
      const std::string name = record.name;
      of_step.insert_or_assign(name, std::move(record));
    };
    run.for_each(keep, wanted);
  }
};

/// Returns the folders of a run's ranks, or its own without ranks. Empty if nothing was sampled.
std::vector<std::filesystem::path> sampled_folders(const std::filesystem::path& log) {
  std::vector<std::filesystem::path> folders = log::rank_folders(log);
  if (folders.empty()) folders.push_back(log);
  const bool any = std::any_of(folders.begin(), folders.end(), [](const auto& folder) {
    std::error_code ignored;
    return std::filesystem::is_directory(folder / "tensors", ignored);
  });
  return any ? folders : std::vector<std::filesystem::path>();
}

struct Sample {
  std::int64_t step = 0;
  std::size_t rank = 0;
  std::filesystem::path file;
};

std::vector<Sample> samples_of(const std::vector<Rank>& ranks, const Selection& selection) {
  std::vector<Sample> samples;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const auto& [step, file] : ranks[rank].run.samples()) {
      if (frames::in_steps(selection, step)) samples.push_back({step, rank, file});
    }
  }
  std::sort(samples.begin(), samples.end(), [](const Sample& a, const Sample& b) {
    return std::tie(a.step, a.rank) < std::tie(b.step, b.rank);
  });
  return samples;
}

std::uint64_t bytes_of(const std::filesystem::path& file) {
  std::error_code error;
  const std::uint64_t bytes = std::filesystem::file_size(file, error);
  return error ? 0 : bytes;
}

void note_skipped(const std::filesystem::path& file, const log::TensorFile& tensors,
                  frames::Notes& notes) {
  for (const log::SkippedTensor& skipped : tensors.skipped()) {
    notes.add(printable(file.string()) + ": tensor '" + printable(skipped.name) +
              "' skipped: " + skipped.reason);
  }
}

/// Returns the scale in a sampled file's metadata. Empty if there is none or it is not a number.
std::optional<double> scale_in(const std::map<std::string, std::string>& metadata) {
  const auto found = metadata.find("scale");
  if (found == metadata.end()) return std::nullopt;
  const std::string& text = found->second;
  double scale = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), scale);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return scale;
}

double scale_in_sample(const frames::WholeStep& step, const Selection& selection,
                       const std::string& name) {
  const auto record = step.records.find(name);
  if (record != step.records.end()) return frames::scale_of(record->second, selection, step.log);
  if (!step.says_scaled(step.role_of(selection, name))) return 1.0;
  log::TensorRecord stand_in;
  stand_in.name = name;
  stand_in.step = step.step;
  stand_in.state = log::ScaleState::scaled;
  std::optional<double> scale = scale_in(step.metadata);
  if (!scale && step.scalars != nullptr) scale = step.scalars->loss_scale;
  stand_in.scale_known = scale.has_value();
  stand_in.scale = scale.value_or(1.0);
  return frames::scale_of(stand_in, selection, step.file);
}

/// Fills `step` with one rank's tensors. It then refers to all arguments, and must not be moved.
void describe(const Sample& sample, std::shared_ptr<const log::Safetensors> tensors, Rank& rank,
              frames::WholeStep& step) {
  step.log = rank.run.folder();
  step.file = sample.file;
  step.step = sample.step;
  step.rank = static_cast<int>(sample.rank);
  step.metadata = tensors->metadata();
  step.tensors = std::move(tensors);
  step.run = &rank.run;
  const auto scalars = rank.scalars.find(sample.step);
  if (scalars != rank.scalars.end()) step.scalars = &scalars->second;
  step.records = std::move(rank.records[sample.step]);
  step.bytes = bytes_of(sample.file);
  step.role_of = [](const Selection& s, const std::string& name) {
    return readers::common::role_of(s, name).first;
  };
  step.scale_of = [&step](const Selection& s, const std::string& name) {
    return scale_in_sample(step, s, name);
  };
}

/// The open files of all ranks at one step.
class OpenStep {
 public:
  OpenStep(const log::OpenPath& log, std::span<const Sample> samples, std::vector<Rank>& ranks,
           frames::Notes& notes)
      : steps_(samples.size()) {
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Sample& sample = samples[i];
      const auto tensors = std::make_shared<const log::Safetensors>(log.at(sample.file));
      note_skipped(sample.file, *tensors, notes);
      describe(sample, tensors, ranks[sample.rank], steps_[i]);
      steps_[i].sharded = ranks.front().run.manifest().sharded;
    }
  }
  std::span<frames::WholeStep> ranks() { return steps_; }

 private:
  std::vector<frames::WholeStep> steps_;
};

}  // namespace

void visit_sampled_ranks(const log::OpenPath& log, const Selection& selection,
                         const frames::WholeRanksVisitor& visit, frames::Notes& notes,
                         const frames::Progress& progress) {
  std::vector<Rank> ranks;
  for (const std::filesystem::path& folder : sampled_folders(log.path)) {
    ranks.emplace_back(log.at(folder), selection);
  }
  const std::vector<Sample> samples = samples_of(ranks, selection);
  std::uint64_t all = 0, done = 0;
  for (const Sample& sample : samples) all += bytes_of(sample.file);
  for (auto first = samples.begin(); first != samples.end();) {
    const auto last = std::find_if(
        first, samples.end(), [&](const Sample& sample) { return sample.step != first->step; });
    OpenStep open(log, std::span(first, last), ranks, notes);
    for (frames::WholeStep& step : open.ranks()) {
      step.tell = frames::within(progress, done, step.bytes, all);
      done += step.bytes;
    }
    visit(open.ranks());
    if (progress) progress(std::min(done, all), all);
    first = last;
  }
}

void visit_run_samples(const log::OpenPath& log, const Selection& selection,
                       const frames::WholeStepVisitor& visit, frames::Notes& notes,
                       const frames::Progress& progress) {
  const auto each = [&](std::span<const frames::WholeStep> ranks) {
    for (const frames::WholeStep& step : ranks) visit(step);
  };
  visit_sampled_ranks(log, selection, each, notes, progress);
}

}  // namespace halfscope::analyzers::readers::run_log
