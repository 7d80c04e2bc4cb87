// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/run_log/run_log.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "analyzers/frames/count_values.hpp"
#include "analyzers/frames/value_total.hpp"

namespace halfscope::analyzers::readers::run_log {

using frames::Frame;
using frames::Notes;
using frames::Part;
using frames::Parts;
using frames::Selection;

namespace {

using Key = std::tuple<std::int64_t, std::string>;  // step, name

/// Collects histograms of other ranks that should equal rank 0's but do not.
struct Differing {
  std::uint64_t tables = 0;
  std::set<std::uint64_t> ranks;
  std::string first;

  void add(const Part& rank, std::string&& where) {
    if (tables++ == 0) first = std::move(where);
    ranks.insert(rank.index);
  }
  void tell(Notes& notes) const {
    if (tables == 0) return;
    std::string text = first + ": differs from rank 0, whose values are used";
    if (tables > 1) {
      text += " (tables that differ: " + std::to_string(tables) +
              ", on other ranks: " + std::to_string(ranks.size()) + ")";
    }
    notes.add(std::move(text));
  }
};

/// Frames by key, in order of first appearance.
struct Frames {
  std::map<Key, std::size_t> index;
  std::vector<Frame> frames;
  Differing differing;
};

std::string where(const Part& rank, const Frame& frame) {
  return log::printable(rank.log + "/" + rank.name) + ": tensor '" + log::printable(frame.name) +
         "', step " + std::to_string(frame.step);
}

/// Returns a frame's largest unscaled magnitude: NaN if it holds NaN, else infinity if it holds it.
double peak_of(const Frame& frame) {
  if (frame.table.nan().low != 0) return std::numeric_limits<double>::quiet_NaN();
  if (frame.table.inf().low != 0) return std::numeric_limits<double>::infinity();
  return frame.table.largest() ? to_double(*frame.table.largest()) / frame.scale : 0.0;
}

/// Returns the larger of two magnitudes. NaN counts as larger than any number.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }

/// Passes on the peak of another rank: its values are not counted, but limit the loss scale too.
void tell_peak(const Frame& frame, const frames::PeakVisitor& peak) {
  if (!peak || !frame.loss_scaled) return;
  const bool scaled = frame.scale != 1.0;
  peak({.role = frame.role,
        .step = frame.step,
        .max_abs = peak_of(frame),
        .loss_scale = scaled ? std::optional(frame.scale) : std::nullopt});
}

void add_rank(Frames& all, Frame&& frame, bool sharded, const Part& rank,
              const frames::PeakVisitor& peak) {
  const auto [at, is_new] = all.index.try_emplace({frame.step, frame.name}, all.frames.size());
  if (is_new) {
    all.frames.push_back(std::move(frame));
    return;
  }
  Frame& first = all.frames[at->second];
  ++first.ranks;
  if (!sharded) {
    if (!(first.table == frame.table)) {
      all.differing.add(rank, where(rank, frame));
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
  frames::add_moments(first, frame);
  first.table.merge(frame.table);
}

/// Adds the notes of all ranks. Notes that differ only in the rank's name are added once.
class OnceTold {
 public:
  void add(const Part& rank, const Notes& of_rank, Notes& notes) {
    for (const auto& note : of_rank) {
      std::string text = note;
      if (const std::size_t at = text.find(rank.name); at != std::string::npos) {
        text.erase(at, rank.name.size());
      }
      if (told_.insert(std::move(text)).second) notes.add(note);
    }
  }

 private:
  std::set<std::string> told_;  ///< notes added so far, without the rank's name
};

/// Adds a note if ranks are missing: sums over ranks are then incomplete.
void require_all_ranks(const Parts& ranks, Notes& notes) {
  const Part& first = ranks.front();
  if (ranks.size() == first.of) return;
  notes.add(log::printable(first.log) + ": has " + std::to_string(ranks.size()) + " of the " +
            std::to_string(first.of) + " ranks of its manifest; sharded tensors are incomplete");
}

/// A run log that is opened at its first use and closed after it has been read.
class OneRank {
 public:
  explicit OneRank(log::OpenPath folder) : folder_(std::move(folder)) {}
  const log::RunLog& opened(const frames::Progress& progress) {
    if (!log_) log_.emplace(folder_, progress);
    return *log_;
  }
  void close() { log_.reset(); }

 private:
  log::OpenPath folder_;
  std::optional<log::RunLog> log_;
};

/// Returns the rank in a folder's name, such as 3 for "rank-0003". Empty for other names.
std::optional<std::uint64_t> number_of_rank(const std::filesystem::path& folder) {
  constexpr std::string_view kRank = "rank-";
  const std::string name = folder.filename().string();
  if (!name.starts_with(kRank)) return std::nullopt;
  std::uint64_t rank = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + kRank.size(), end, rank);
  return error == std::errc() && stop == end ? std::optional(rank) : std::nullopt;
}

/// Returns the folder that holds a rank's folder.
std::string folder_of(const std::filesystem::path& rank) {
  return rank.has_parent_path() ? rank.parent_path().string() : ".";
}

using ReadWhole = decltype(Part::read_whole);

/// Wraps a reader of whole tensors so that its steps have this rank.
ReadWhole of_rank(ReadWhole read, int rank) {
  return [read = std::move(read), rank](const frames::WholeStepVisitor& visit, Notes& notes,
                                        const frames::Progress& progress) {
    const auto take = [&](const frames::WholeStep& step) {
      frames::WholeStep own = step;
      own.rank = rank;
      visit(own);
    };
    read(take, notes, progress);
  };
}

Part part_of(const log::OpenPath& folder, const Selection& selection) {
  const auto rank = std::make_shared<OneRank>(folder);
  Part part;
  part.manifest = [rank] { return std::optional(rank->opened({}).manifest()); };
  part.read = [rank, selection](const frames::Visitor& visit, Notes& notes,
                                const frames::Progress& progress) {
    read_run_log(rank->opened(progress), selection, visit, notes, progress);
    rank->close();
  };
  part.read_whole = [folder, selection](const frames::WholeStepVisitor& visit, Notes& notes,
                                        const frames::Progress& progress) {
    visit_run_samples(folder, selection, visit, notes, progress);
  };
  return part;
}

}  // namespace

void join_ranks(const Parts& ranks, const frames::Visitor& visit, Notes& notes,
                const frames::Progress& progress) {
  Frames all;
  const std::vector<log::Role> sharded = ranks.front().manifest()->sharded;
  require_all_ranks(ranks, notes);
  OnceTold told;
  frames::ValueTotal values;
  for (const Part& rank : ranks) {
    const auto take = [&](Frame&& frame) {
      if (visit.rank_frame) visit.rank_frame(frame);
      const bool adds = std::ranges::find(sharded, frame.role) != sharded.end();
      if (adds) values.add(frame, rank.log + "/" + rank.name);
      add_rank(all, std::move(frame), adds, rank, visit.peak);
    };
    frames::Visitor of_rank{take, visit.peak, {}, {}};
    const bool is_first = &rank == &ranks.front();
    if (is_first) of_rank.manifest = visit.manifest;
    std::vector<log::StepScalars> scalars;
    of_rank.scalars = [&](const log::StepScalars& step) {
      if (is_first && visit.scalars) visit.scalars(step);
      scalars.push_back(step);
    };
    Notes own;
    rank.read(of_rank, own, progress);
    told.add(rank, own, notes);
    if (!is_first && visit.other_rank) visit.other_rank(scalars);
    if (visit.rank_scalars) visit.rank_scalars(rank.index, scalars);
  }
  all.differing.tell(notes);
  for (Frame& frame : all.frames) visit.frame(std::move(frame));
}

Parts rank_parts(const log::OpenPath& log, const Selection& selection) {
  std::vector<std::filesystem::path> folders = log::rank_folders(log.path);
  const bool one = folders.empty();
  if (one) folders.push_back(log.path);
  const auto own_rank = one ? number_of_rank(log.path) : std::nullopt;
  Parts parts;
  for (const std::filesystem::path& folder : folders) {
    Part part = part_of(log.at(folder), selection);
    part.log = own_rank ? folder_of(log.path) : log.path.string();
    if (const auto rank = one ? own_rank : number_of_rank(folder)) {
      part.index = *rank;
      part.name = folder.filename().string();
      part.read_whole = of_rank(std::move(part.read_whole), static_cast<int>(*rank));
    }
    parts.push_back(std::move(part));
  }
  if (one && !own_rank) return parts;
  const std::optional<log::Manifest> first = parts.front().manifest();
  const auto told = static_cast<std::uint64_t>(first->world_size);
  for (Part& part : parts) part.of = std::max<std::uint64_t>(told, parts.size());
  return parts;
}

}  // namespace halfscope::analyzers::readers::run_log
