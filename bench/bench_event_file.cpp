// SPDX-License-Identifier: Apache-2.0
// Speed of reading TensorBoard event files from the page cache, on one thread, as ratios to reading
// the same memory: short records (one scalar) and long records (histograms with torch's buckets).
// bench_event_file.py measures tensorboard's own reader on the same files.
//
//   bench_event_file [--json FILE] [--records N] [--keep FOLDER]
//     N scalars (default 10^6) and N / 50 histograms; --keep writes the files to FOLDER
#include <cmath>
#include <filesystem>
#include <iterator>

#include "analyzers/readers/tensorboard/tensorboard.hpp"
#include "bench/bench.hpp"
#include "halfscope/log/event_file.hpp"
#include "halfscope/log/event_file.pb.h"
#include "halfscope/log/event_outline.hpp"

namespace {

namespace fs = std::filesystem;
using namespace halfscope;

log::proto::Event event_at(std::size_t step, const std::string& tag) {
  log::proto::Event event;
  event.set_wall_time(1.7e9 + static_cast<double>(step));
  event.set_step(static_cast<std::int64_t>(step));
  event.mutable_summary()->add_value()->set_tag(tag);
  return event;
}

/// Writes ten scalars per step, as a training run does.
void write_scalars(const fs::path& file, std::size_t records) {
  log::EventWriter writer(file);
  const std::string tags[] = {
      "loss",      "train/learning_rate", "amp/loss_scale", "train/accuracy",  "train/grad_norm",
      "time/data", "time/forward",        "time/backward",  "validation/loss", "epoch"};
  for (std::size_t i = 0; i < records; ++i) {
    log::proto::Event event = event_at(i / std::size(tags), tags[i % std::size(tags)]);
    event.mutable_summary()->mutable_value(0)->set_simple_value(static_cast<float>(i));
    writer.write(event);
  }
}

/// Writes histograms with 220 nonempty buckets: gradients over seven decades, of both signs.
void write_histograms(const fs::path& file, std::size_t records) {
  log::EventWriter writer(file);
  std::vector<double> limits = {0};
  for (double v = 1e-12; v < 1e20; v *= 1.1) limits.insert(limits.end(), {v, -v});
  std::sort(limits.begin(), limits.end());
  for (std::size_t i = 0; i < records; ++i) {
    const std::string tag = fmt::format("gradients/layer{}/weight", i % 20);
    log::proto::Event event = event_at(i / 20, tag);
    auto& histogram = *event.mutable_summary()->mutable_value(0)->mutable_histo();
    double count = 0;
    for (const double limit : limits) {
      if (!(std::abs(limit) < 1e-5) || !(std::abs(limit) > 3e-10 || limit == 0)) continue;
      histogram.add_bucket_limit(limit);
      histogram.add_bucket(histogram.bucket_size() == 0 ? 0 : 100);
      count += histogram.bucket(histogram.bucket_size() - 1);
    }
    histogram.set_min(histogram.bucket_limit(0));
    histogram.set_max(std::nextafter(*histogram.bucket_limit().rbegin(), 0));
    histogram.set_num(count);
    writer.write(event);
  }
}

std::vector<std::byte> contents(const fs::path& file) {
  std::vector<std::byte> bytes(fs::file_size(file));
  std::ifstream(file, std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

std::uint64_t values_in(const fs::path& file) {
  log::EventReader reader(file);
  log::EventOutline event;
  std::uint64_t values = 0;
  while (const auto message = reader.next_message()) {
    values += event.read(*message) ? event.values.size() : 0;
  }
  return values;
}

std::uint64_t parsed_values_in(const fs::path& file) {
  log::EventReader reader(file);
  std::uint64_t values = 0;
  while (const auto event = reader.next()) {
    values += static_cast<std::uint64_t>(event->summary().value_size());
  }
  return values;
}

std::uint64_t frames_of(const fs::path& file) {
  std::uint64_t told = 0, frames = 0;
  analyzers::frames::Visitor visit;
  visit.frame = [&](analyzers::frames::Frame&&) { ++frames; };
  analyzers::frames::Notes notes;
  analyzers::readers::tensorboard::read_tensorboard(
      file, {}, visit, notes, [&](std::uint64_t done, std::uint64_t) { told = done; });
  return frames + told;
}

void bench_file(const std::string& what, const fs::path& file,
                std::vector<bench::Result>& results) {
  const std::vector<std::byte> memory = contents(file);
  const auto bytes = static_cast<double>(memory.size());
  volatile std::uint64_t sink = 0;
  std::vector<bench::Way> ways;
  ways.push_back({"read, " + what, bytes, [&] { sink = bench::read_all(memory); }});
  ways.push_back({"checksums, steps and tags, " + what, bytes, [&] { sink = values_in(file); }});
  ways.push_back({"every event parsed, " + what, bytes, [&] { sink = parsed_values_in(file); }});
  ways.push_back({"the whole reader, " + what, bytes, [&] { sink = frames_of(file); }});
  bench::race(ways, 1, results, 3);
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Arguments given = bench::arguments(argc, argv, "--records", 1'000'000);
  fs::path folder = fs::temp_directory_path() / "halfscope_bench_events";
  bool keep = false;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--keep") folder = argv[i + 1], keep = true;
  }
  fs::create_directories(folder);
  const fs::path scalars = folder / "scalars.tfevents", histograms = folder / "histograms.tfevents";
  for (const fs::path& file : {scalars, histograms}) fs::remove(file);
  write_scalars(scalars, given.number);
  write_histograms(histograms, given.number / 50);
  std::vector<bench::Result> results;
  bench_file("scalars", scalars, results);
  bench_file("histograms", histograms, results);
  for (const auto& [what, file, records] :
       {std::tuple("scalar", scalars, given.number),
        std::tuple("histogram", histograms, given.number / 50)}) {
    results.push_back({fmt::format("bytes a {} record", what), 1,
                       static_cast<double>(fs::file_size(file)) / static_cast<double>(records),
                       "B"});
  }
  bench::report(results, given.json);
  if (!keep) fs::remove_all(folder);
  return 0;
}
