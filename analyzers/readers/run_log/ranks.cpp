// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/run_log/ranks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "analyzers/readers/run_log/read_run_log.hpp"

namespace halfscope::analyzers::readers::run_log {

using frames::Frame;
using frames::Notes;
using frames::Selection;

namespace {

using Key = std::tuple<std::int64_t, std::string>;  // step, name

/// Frames by key, in order of first appearance.
struct Frames {
  std::map<Key, std::size_t> index;
  std::vector<Frame> frames;
};

std::string where(const std::filesystem::path& rank, const Frame& frame) {
  return log::printable(rank.string()) + ": tensor '" + log::printable(frame.name) + "', step " +
         std::to_string(frame.step);
}

/// The largest magnitude of a frame, unscaled; infinity and NaN are themselves.
double peak_of(const Frame& frame) {
  if (frame.table.nan().low != 0) return std::numeric_limits<double>::quiet_NaN();
  if (frame.table.inf().low != 0) return std::numeric_limits<double>::infinity();
  return frame.table.largest() ? to_double(*frame.table.largest()) / frame.scale : 0.0;
}

/// NaN and infinity stay.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

/// Another rank's gradients are not counted, but a scale must hold for them too.
void tell_peak(const Frame& frame, const frames::PeakVisitor& peak) {
  if (!peak || !frame.loss_scaled) return;
  const bool scaled = frame.scale != 1.0;
  peak({.role = frame.role,
        .step = frame.step,
        .max_abs = peak_of(frame),
        .loss_scale = scaled ? std::optional(frame.scale) : std::nullopt});
}

void add_rank(Frames& all, Frame&& frame, bool sharded, const std::filesystem::path& rank,
              const frames::PeakVisitor& peak, Notes& notes) {
  const auto [at, is_new] = all.index.try_emplace({frame.step, frame.name}, all.frames.size());
  if (is_new) {
    all.frames.push_back(std::move(frame));
    return;
  }
  Frame& first = all.frames[at->second];
  ++first.ranks;
  if (!sharded) {
    if (!(first.table == frame.table)) {
      notes.push_back(where(rank, frame) + ": differs from rank 0, whose values are used");
      first.rank_max_abs = larger(first.rank_max_abs, peak_of(frame));
      tell_peak(frame, peak);
    }
    return;
  }
  if (first.scale != frame.scale) {
    throw log::BadInput(where(rank, frame) + ": carries loss scale " + std::to_string(frame.scale) +
                        ", rank 0 " + std::to_string(first.scale) +
                        "; sharded tensors of one step must agree: analyse the ranks one by one");
  }
  first.table.merge(frame.table);
}

std::vector<log::StepScalars> selected(const log::RunLog& log, const Selection& selection) {
  std::vector<log::StepScalars> scalars = log.scalars();
  std::erase_if(scalars, [&](const auto& step) { return !frames::in_steps(selection, step.step); });
  return scalars;
}

/// Shards that are not there would be missing from every sum.
void require_all_ranks(const std::vector<std::filesystem::path>& ranks,
                       const log::Manifest& manifest, Notes& notes) {
  if (static_cast<int>(ranks.size()) == manifest.world_size) return;
  notes.push_back(log::printable(ranks.front().parent_path().string()) + ": holds " +
                  std::to_string(ranks.size()) + " ranks, its manifest says " +
                  std::to_string(manifest.world_size) + "; sharded tensors are incomplete");
}

}  // namespace

void read_ranks(const log::OpenPath& folder, const Selection& selection,
                const frames::Visitor& visit, Notes& notes, const frames::Progress& progress) {
  const std::vector<std::filesystem::path> ranks = log::rank_folders(folder.path);
  Frames all;
  std::vector<log::Role> sharded;
  for (const std::filesystem::path& rank : ranks) {
    const log::RunLog log(folder.at(rank), progress);
    if (rank == ranks.front()) {
      sharded = log.manifest().sharded;
      require_all_ranks(ranks, log.manifest(), notes);
    }
    const auto take = [&](Frame&& frame) {
      const bool adds = std::find(sharded.begin(), sharded.end(), frame.role) != sharded.end();
      add_rank(all, std::move(frame), adds, rank, visit.peak, notes);
    };
    frames::Visitor of_rank{take, visit.peak, {}, {}};
    if (rank == ranks.front()) {
      of_rank.manifest = visit.manifest;
      of_rank.scalars = visit.scalars;
    }
    read_run_log(log, selection, of_rank, notes, progress);
    if (rank != ranks.front() && visit.other_rank) visit.other_rank(selected(log, selection));
  }
  for (Frame& frame : all.frames) visit.frame(std::move(frame));
}

std::size_t rank_count(const log::OpenPath& log) {
  if (!std::filesystem::is_directory(log.path)) return 0;
  const std::vector<std::filesystem::path> ranks = log::rank_folders(log.path);
  if (ranks.empty()) return 0;
  const int wanted = log::RunLog(log.at(ranks.front())).manifest().world_size;
  return static_cast<int>(ranks.size()) == wanted ? ranks.size() : 0;
}

void for_each_rank_frame(const log::OpenPath& log, const Selection& selection,
                         const std::function<void(std::size_t rank, Frame&&)>& visit) {
  Notes known;  // of an earlier reading
  std::size_t rank = 0;
  for (const std::filesystem::path& folder : log::rank_folders(log.path)) {
    const auto take = [&](Frame&& frame) { visit(rank, std::move(frame)); };
    read_run_log(log::RunLog(log.at(folder)), selection, {take, {}, {}, {}}, known, {});
    ++rank;
  }
}

}  // namespace halfscope::analyzers::readers::run_log
