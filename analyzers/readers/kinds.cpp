// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/kinds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analyzers/readers/common/kind_names.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/console/console_log.hpp"
#include "analyzers/readers/input/content.hpp"
#include "analyzers/readers/input/standard_input.hpp"
#include "analyzers/readers/logs_below.hpp"
#include "analyzers/readers/metrics/metrics.hpp"
#include "analyzers/readers/record/record_file.hpp"
#include "analyzers/readers/record/record_log.hpp"
#include "analyzers/readers/run_log/run_log.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/readers/statistics/statistics.hpp"
#include "analyzers/readers/tensorboard/tensorboard.hpp"
#include "analyzers/readers/tensors/open.hpp"
#include "analyzers/readers/tensors/tensor_folder.hpp"
#include "analyzers/readers/tensors/tensor_log.hpp"
#include "analyzers/readers/unread_text.hpp"
#include "analyzers/readers/wandb/wandb.hpp"
#include "halfscope/log/folder.hpp"

namespace halfscope::analyzers::readers {

using common::TimelineSelection;

namespace {

namespace fs = std::filesystem;
using frames::Notes;
using frames::Progress;
using frames::Selection;
using frames::Visitor;
using log::BadInput;
using log::printable;

void read_run_log(const log::OpenPath& log, const TimelineSelection& s, const Visitor& visit,
                  Notes& notes, const Progress& progress) {
  readers::run_log::read_run_log(log::RunLog(log, progress), s, visit, notes, progress);
}

bool is_run_log(const log::OpenPath& log) { return common::is_run_log(log.path); }

bool has_ranks(const log::OpenPath& log) {
  std::error_code unreadable;
  if (!fs::is_directory(log.path, unreadable)) return false;
  try {
    return !log::rank_folders(log.path).empty();
  } catch (const std::exception&) {
    return false;
  }
}

void read_rank_folders(const log::OpenPath& log, const TimelineSelection& s, const Visitor& visit,
                       Notes& notes, const Progress& progress) {
  readers::run_log::join_ranks(readers::run_log::rank_parts(log, s), visit, notes, progress);
}

bool folder_holds(const log::OpenPath& log, bool (*holds)(const log::OpenPath&)) {
  std::error_code unreadable;
  if (!fs::is_directory(log.path, unreadable)) return false;
  try {
    return holds(log);
  } catch (const std::exception&) {
    return false;
  }
}

bool has_tensor_files(const log::OpenPath& log) {
  return folder_holds(log, tensors::holds_tensor_files);
}

/// Called only if no other kind is found: a checkpoint in another log's folder is not part of it.
bool has_torch_files(const log::OpenPath& log) {
  return folder_holds(log, tensors::holds_torch_files);
}

void refuse_tag(const fs::path& log, const Selection& s) {
  if (!s.scale_tag) return;
  throw frames::InputNeedsOption(
      printable(log.string()) + ": tensor files have no scalars, and " +
      frames::Option::recorded_scale +
      fmt::format(
          " found '{}', which is not a number; expected a positive number such as 1024 or 2^10",
          printable(*s.scale_tag)));
}

/// Reads tensor files. If their folder also holds other logs, passes the frames through the
/// timeline that they share, which knows the loss scales.
void read_tensor_files(const log::OpenPath& log, const TimelineSelection& s, const Visitor& visit,
                       Notes& notes, const Progress& progress) {
  if (!s.joined) refuse_tag(log.path, s);
  const tensors::TensorFolder folder = tensors::tensor_files_of(log, s.read_as);
  if (!s.joined) return tensors::read_tensor_files(folder, s, visit, notes, progress);
  common::Timeline timeline(log.path.string(), s, visit);
  Visitor through = visit;
  through.frame = [&](frames::Frame&& frame) {
    if (s.scale_tag && frame.loss_scaled) {
      timeline.tensor(std::move(frame));
    } else {
      const bool told = frame.scale != 1.0;
      timeline.emit(std::move(frame), told);
    }
  };
  tensors::read_tensor_files(folder, s, through, notes, progress);
}

void read_one_tensor_file(const log::OpenPath& log, const TimelineSelection& s,
                          const Visitor& visit, Notes& notes, const Progress& progress) {
  try {
    read_tensor_files(log, s, visit, notes, progress);
  } catch (const tensors::IsText&) {
    refuse_text(log);
  }
}

/// Adds no notes, because reading the frames of these files has added them already.
void read_whole_files(const log::OpenPath& log, const Selection& s,
                      const frames::WholeRanksVisitor& visit, Notes&, const Progress& progress) {
  const auto alone = [&](const frames::WholeStep& step) { visit(std::span(&step, 1)); };
  tensors::visit_tensor_steps(tensors::tensor_files_of(log, s.read_as), s, alone, progress);
}

bool is_file(const log::OpenPath& log) {
  std::error_code unreadable;
  return input::exists(log.path) && !fs::is_directory(log.path, unreadable);
}

using run_log::visit_sampled_ranks;

// A log is tested for kinds in this order. Run logs are first: their folders may hold other files.
constexpr std::array kKinds = {
    Kind{has_ranks, read_rank_folders, visit_sampled_ranks, true, false, true, run_log::rank_parts},
    Kind{is_run_log, read_run_log, visit_sampled_ranks, true, false, true, run_log::rank_parts},
    Kind{record::is_record, record::read_record, nullptr, true, false, true, record::record_parts},
    Kind{tensorboard::is_tensorboard, tensorboard::read_tensorboard},
    Kind{wandb::is_wandb, wandb::read_wandb},
    Kind{statistics::is_te_statistics, statistics::read_te_statistics},
    Kind{statistics::is_paddle, statistics::read_paddle},
    Kind{statistics::is_msprobe, statistics::read_msprobe},
    Kind{statistics::is_msprobe_dump, statistics::read_msprobe_dump},
    Kind{metrics::is_trainer_state, metrics::read_trainer_state, nullptr, false},
    Kind{metrics::is_metrics_csv, metrics::read_metrics_csv, nullptr, false},
    Kind{metrics::is_mlflow, metrics::read_mlflow, nullptr, false},
    Kind{metrics::is_deepspeed_csv, metrics::read_deepspeed_csv, nullptr, false},
    Kind{console::is_console_log, console::read_console_log, nullptr, false},
    Kind{has_tensor_files, read_tensor_files, read_whole_files, true, true, false,
         tensors::step_parts},
    Kind{has_torch_files, read_tensor_files, read_whole_files, true, false, false,
         tensors::step_parts},
    Kind{is_file, read_one_tensor_file, read_whole_files, true, false, false},
};
static_assert(kKinds.size() == common::kKindNames.size());

/// Reads logs of several kinds in one folder as one timeline.
void read_joined(const Log& log, const Selection& selection, const Visitor& visit, Notes& notes,
                 const Progress& progress) {
  std::vector<const Kind*> found(log.kinds().begin(), log.kinds().end());
  std::stable_partition(found.begin(), found.end(), [](const Kind* k) { return !k->has_tensors; });
  TimelineSelection joined = selection;
  joined.joined = std::make_shared<common::TimelineState>();
  joined.joined->joined = true;
  std::string names;
  for (const Kind* kind : found) {
    names += (names.empty() ? "" : kind == found.back() ? " and " : ", ") + name_of(*kind);
    kind->read(log.opened(), joined, visit, notes, progress);
  }
  joined.joined->joined = false;
  notes.add(fmt::format("{}: holds {}: treated as one run, joined by step",
                        printable(log.path().string()), names));
  common::Timeline(log.path().string(), joined, visit).finish(notes);
}

}  // namespace

std::span<const Kind> kinds() { return kKinds; }

std::string name_of(const Kind& kind) {
  return std::string(common::kKindNames[static_cast<std::size_t>(&kind - kKinds.data())]);
}

std::vector<const Kind*> kinds_of(const log::OpenPath& log, bool by_lines) {
  if (by_lines && input::exists(log.path) && !record::is_record(log)) {
    const auto reads_lines = [](const Kind& kind) {
      return kind.read == console::read_console_log;
    };
    return {&*std::ranges::find_if(kKinds, reads_lines)};
  }
  std::vector<const Kind*> found;
  for (const Kind& kind : kKinds) {
    const bool alone = !kind.joins;
    if ((alone && !found.empty()) || !kind.recognises(log)) continue;
    found.push_back(&kind);
    if (alone) break;
  }
  return found;
}

bool may_have_scalars(const Log& log) {
  if (log::is_of_kernel(log.path())) return false;  // require_some_kind() refuses it
  return std::ranges::any_of(log.kinds(), [](const Kind* kind) { return kind->has_scalars; });
}

namespace {

/// Returns the contents of a folder's first files: "; 'a.png' is a PNG image, ...".
std::string files_text(const log::OpenPath& log) {
  constexpr std::size_t kMostNamed = 4;
  const std::vector<fs::path> files = common::files_of(log.path);
  std::string text;
  for (std::size_t i = 0; i < std::min(files.size(), kMostNamed); ++i) {
    const auto file = log.at(files[i]).open();
    if (!file->is_regular()) continue;
    text += fmt::format("{}'{}' is {}", text.empty() ? "; " : ", ",
                        printable(files[i].filename().string()), input::content_of(*file).is);
  }
  return text;
}

/// Returns the beginning of a URL, even of one with a missing slash or scheme, without the part
/// that may hold a password. Empty for other paths.
std::string without_password(std::string_view path) {
  const std::size_t name =
      path.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
  if (name == std::string_view::npos) return {};
  const std::string_view rest = path.substr(name);
  if (path.find("://") != std::string_view::npos) {
    return fmt::format("{}...", path.substr(0, path.find("://") + 3));
  }
  const bool scheme = name > 1 && rest.starts_with(":/");
  if (!scheme && !(name == 0 && rest.starts_with("//"))) return {};
  if (path.find('@') == std::string_view::npos) return {};
  return fmt::format("{}...", path.substr(0, name + 2));
}

/// Throws log::BadInput, with the reason, if a log is of no known kind.
void require_some_kind(const Log& log) {
  const std::string shown = printable(log.path().string());
  if (log.kinds().empty() && !input::exists(log.path())) {
    if (const std::string url = without_password(shown); !url.empty()) {
      throw BadInput(url +
                     ": is a URL, expected a path; Python reads it: "
                     "halfscope.count(URL).save('log.hst')");
    }
    throw BadInput(shown + ": no such file or folder; check the path");
  }
  if (log::is_of_kernel(log.path())) {
    throw BadInput(shown +
                   ": lies on a file system of the kernel, which holds no logs; name a log");
  }
  if (log.path().extension() == ".hst" && !record::is_record(log.opened())) {
    const record::RecordFile refused(log.opened());  // throws, with the reason
  }
  if (!log.kinds().empty()) return;
  log::RunLog::is_one(log.path());  // throws if it is a run log with missing files
  const std::string below = list_text(logs_below(log.opened()));
  if (!below.empty()) throw BadInput(shown + ": " + below);
  throw BadInput(shown + ": holds no file that Halfscope can read" + files_text(log.opened()) +
                 common::kKindsListed);
}

void read_log(const Log& log, const Selection& selection, const Visitor& visit, Notes& notes,
              const Progress& progress) {
  require_some_kind(log);
  const auto found = log.kinds();
  if (found.size() > 1) return read_joined(log, selection, visit, notes, progress);
  found.front()->read(log.opened(), selection, visit, notes, progress);
}

/// Returns the whole log as one part.
frames::Part whole(const Log& log, const Selection& selection) {
  frames::Part part;
  part.log = log.path().string();
  part.read = [log, selection](const Visitor& visit, Notes& notes, const Progress& progress) {
    for_each_frame(log, selection, visit, notes, progress);
  };
  part.read_whole = [log, selection](const frames::WholeStepVisitor& visit, Notes& notes,
                                     const Progress& progress) {
    for_each_whole_step(log, selection, visit, notes, progress);
  };
  return part;
}

}  // namespace

std::vector<NamedLog> logs_at(const Logs& opened, const std::vector<fs::path>& paths) {
  std::vector<NamedLog> logs;
  for (const fs::path& path : paths) {
    const log::OpenPath& at = opened.at(path).opened();
    if (!record::is_record(at)) {
      logs.push_back({path, at.path.string()});
      continue;
    }
    for (const std::string& name : record::logs_in(at)) {
      logs.push_back({record::path_of(at, name), name});
    }
  }
  return logs;
}

frames::Parts parts_of(const Log& log, const Selection& selection) {
  require_some_kind(log);
  const auto kinds = log.kinds();
  if (kinds.size() != 1 || kinds.front()->parts == nullptr) return {whole(log, selection)};
  return kinds.front()->parts(log.opened(), selection);
}

void for_each_whole_count(const Log& log, const Selection& selection,
                          const frames::WholeCountsVisitor& visit) {
  if (!record::is_record(log.opened())) return;
  for (const frames::Part& part : parts_of(log, selection)) part.read_counts(visit);
}

void require_tensors(const Log& log) {
  require_some_kind(log);
  if (!record::is_record(log.opened())) return;
  throw BadInput(fmt::format(
      "{}: has counts of tensors, but this needs the tensors themselves; ask the log that was "
      "counted, {}",
      printable(log.path().string()), printable(record::logs_in(log.opened()).front())));
}

frames::Parts ranks_of(const Log& log, const Selection& selection) {
  if (log.kinds().empty()) return {};
  frames::Parts parts = parts_of(log, selection);
  const frames::Part& first = parts.front();
  const bool complete = first.of == parts.size() && first.log == parts.back().log;
  // A single part is not a run of ranks. It is not opened here.
  if (parts.size() < 2 || !complete || !first.manifest()) parts.clear();
  return parts;
}

void for_each_frame(const Log& log, const Selection& selection, const Visitor& visit, Notes& notes,
                    const Progress& progress) {
  if (!log.note().empty()) notes.add(log.note());
  read_log(log, selection, visit, notes, progress);
  for (std::string& note : log.opened().files.notes(log.path())) notes.add(std::move(note));
}

}  // namespace halfscope::analyzers::readers
