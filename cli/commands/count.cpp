// SPDX-License-Identifier: Apache-2.0
// `halfscope count` and `halfscope merge`: convert logs to count records, and merge these.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "analyzers/count/count_parts.hpp"
#include "analyzers/count/merge_records.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/common.hpp"
#include "cli/options/notes.hpp"
#include "cli/options/output.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::cli::commands {
namespace {

namespace counting = analyzers::count;
using log::printable;

struct CountOptions : options::LogOptions {
  std::string out, shard = "1/1";
};

struct MergeOptions {
  std::vector<std::string> files;
  std::string out;
  bool require_complete = false;
};

/// Parses a shard such as "3/8".
counting::Shard parse_shard(const std::string& text) {
  counting::Shard shard{0, 0};
  const char* const end = text.data() + text.size();
  const auto [slash, error] = std::from_chars(text.data(), end, shard.index);
  if (error == std::errc() && slash != end && *slash == '/') {
    const auto [last, wrong] = std::from_chars(slash + 1, end, shard.of);
    if (wrong == std::errc() && last == end && shard.index >= 1 && shard.index <= shard.of) {
      return shard;
    }
  }
  throw options::BadUsage(fmt::format(
      "--shard: found '{}', expected I/N with I from 1 to N, such as 1/8", printable(text)));
}

std::vector<std::filesystem::path> paths_of(const std::vector<std::string>& names) {
  return {names.begin(), names.end()};
}

std::string parts_text(std::uint64_t parts) {
  return fmt::format("{} part{}", parts, parts == 1 ? "" : "s");
}

/// Throws BadUsage for stdout: a count record must be a file.
void require_file(const std::string& out) {
  if (out == "-") throw options::BadUsage("--out: found '-', expected the path of a file");
}

int run_count(const CountOptions& options) {
  require_file(options.out);
  const counting::Shard shard = parse_shard(options.shard);
  options::require_own_files({options.out}, options);
  options::open_standard_input(options.logs);
  options::Progress bar("counting");
  analyzers::frames::Notes notes;
  const counting::Counted counted = counting::count_parts(
      counting::local_logs(paths_of(options.logs)), options::selection_of(options), shard,
      options.out, notes, [&bar](std::uint64_t done, std::uint64_t all) { bar.show(done, all); });
  bar.clear();
  options::note_later(notes);
  const std::string kept =
      counted.kept == 0 ? "" : fmt::format(", {} of them counted before", counted.kept);
  const std::string of =
      shard.of == 1 ? "" : fmt::format(" of shard {} of {}", shard.index, shard.of);
  fmt::print("{}: {}{}{}.\n", printable(options.out), parts_text(counted.parts), of, kept);
  return options::kFine;
}

int run_merge(const MergeOptions& options) {
  require_file(options.out);
  options::Progress bar("merging");
  const counting::Merged merged = counting::merge_records(
      paths_of(options.files), options.out,
      options.require_complete ? counting::Wanted::all_parts : counting::Wanted::any_parts,
      [&bar](std::uint64_t done, std::uint64_t all) { bar.show(done, all); });
  bar.clear();
  analyzers::frames::Notes problems;
  problems.add_all(merged.problems);
  options::say_some(problems);
  if (!merged.problems.empty()) {
    options::say("{}: not written", printable(options.out));
    return options::kBadInput;
  }
  for (const counting::MergedLog& log : merged.logs) {
    fmt::print("{}: {}, {}.\n", printable(log.log), parts_text(log.parts),
               log.missing() == 0 ? "complete" : fmt::format("{} missing", log.missing()));
  }
  fmt::print("Wrote {}.\n", printable(options.out));
  return options::kFine;
}

}  // namespace

void add_count(options::Parser& parser) {
  options::Command command = parser.add(
      "count", "Count logs into a small record, perhaps in parts on many machines; records merge");
  const auto options = std::make_shared<CountOptions>();
  options::add_logs(command, *options);
  options::add_learning_rate(command, *options);
  command
      .option("--out", options->out, "the record; parts that it has already are not counted again")
      .type("FILE.hst")
      .required();
  command
      .option("--shard", options->shard,
              "count only every Nth part, from the Ith on: a rank of a run, a step of a folder of "
              "tensor files, or a whole log")
      .type("I/N");
  command.footer(
      "Example:  halfscope count runs/gpt --shard 1/8 --out part-1.hst\n"
      "          halfscope merge part-*.hst --out gpt.hst\n"
      "          halfscope recommend gpt.hst");
  command.runs([options] { return run_count(*options); });
}

void add_merge(options::Parser& parser) {
  options::Command command =
      parser.add("merge", "Join records that 'halfscope count' wrote into one");
  const auto options = std::make_shared<MergeOptions>();
  command.option("FILE", options->files, "records, in any order").required();
  command.option("--out", options->out, "the record of all; may be one of the others")
      .type("FILE.hst")
      .required();
  command.flag("--require-complete", options->require_complete,
               "write nothing, and exit with code 1, if parts of a log are missing");
  command.footer("Example:  halfscope merge part-*.hst --out gpt.hst");
  command.runs([options] { return run_merge(*options); });
}

}  // namespace halfscope::cli::commands
