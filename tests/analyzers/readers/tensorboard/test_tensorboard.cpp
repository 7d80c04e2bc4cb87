// SPDX-License-Identifier: Apache-2.0
// Event files that are unusual or wrong; tests/python/test_tensorboard_reader.py has those that
// other tools write.
#include "analyzers/readers/tensorboard/tensorboard.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "analyzers/readers/tensorboard/tensorboard_histogram.hpp"
#include "analyzers/readers/tensorboard/tensorboard_index.hpp"
#include "catch.hpp"
#include "halfscope/log/event_file.hpp"
#include "halfscope/log/event_file.pb.h"
#include "halfscope/log/run_log.hpp"
#include "temp_folder.hpp"

namespace test_tensorboard {

using namespace halfscope;
using analyzers::readers::tensorboard::TensorBoardIndex;
using halfscope::test::TempFolder;
using log::EventWriter;
namespace fs = std::filesystem;

log::proto::Event event_at(std::int64_t step, const std::string& tag) {
  log::proto::Event event;
  event.set_step(step);
  event.mutable_summary()->add_value()->set_tag(tag);
  return event;
}

log::proto::Summary::Value& value_of(log::proto::Event& event) {
  return *event.mutable_summary()->mutable_value(0);
}

/// `ones` values of 1: the number by which a test knows it again.
log::proto::Event histogram_at(std::int64_t step, const std::string& tag, double ones) {
  log::proto::Event event = event_at(step, tag);
  auto& histogram = *value_of(event).mutable_histo();
  histogram.set_min(1);
  histogram.set_max(1);
  histogram.set_num(ones);
  for (const double limit : {0.5, 1.5}) {
    histogram.add_bucket_limit(limit);
    histogram.add_bucket(limit < 1 ? 0 : ones);
  }
  return event;
}

log::proto::Event start_at(std::int64_t step) {
  log::proto::Event event;
  event.set_step(step);
  event.mutable_session_log()->set_status(log::proto::SessionLog::START);
  return event;
}

struct Read {
  std::map<std::pair<std::string, std::int64_t>, std::uint64_t> totals;
  std::vector<log::StepScalars> scalars;
  std::vector<analyzers::frames::Gap> gaps;
  std::string notes;
  std::uint64_t told = 0, of = 0;
};

Read read(const fs::path& log, const analyzers::frames::Selection& selection = {}) {
  Read read;
  analyzers::frames::Visitor visit;
  visit.frame = [&](analyzers::frames::Frame&& frame) {
    const auto again = read.totals.find({frame.name, frame.step});
    CHECK(again == read.totals.end());
    read.totals[{frame.name, frame.step}] = frame.table.total();
  };
  visit.scalars = [&](const log::StepScalars& scalars) { read.scalars.push_back(scalars); };
  visit.kind = [&](const analyzers::frames::LogKind& kind) { read.gaps = kind.gaps; };
  analyzers::frames::Notes notes;
  analyzers::readers::tensorboard::read_tensorboard(log, selection, visit, notes,
                                                    [&](std::uint64_t done, std::uint64_t all) {
                                                      CHECK(done >= read.told);
                                                      CHECK(done <= all);
                                                      read.told = done;
                                                      read.of = all;
                                                    });
  for (const std::string& note : notes) read.notes += note + "\n";
  return read;
}

bool mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("of a restarted run the last history holds", "[tensorboard]") {
  const TempFolder folder;
  {
    EventWriter writer(folder / "1.tfevents");
    for (std::int64_t step = 0; step < 6; ++step) {
      writer.write(histogram_at(step, "gradients/w", 1));
      log::proto::Event loss = event_at(step, "Loss/train");
      value_of(loss).set_simple_value(static_cast<float>(step));
      writer.write(loss);
    }
  }
  {
    EventWriter writer(folder / "2.tfevents");
    writer.write(start_at(4));
    writer.write(histogram_at(4, "gradients/w", 2));
    writer.write(histogram_at(0, "gradients/w", 3));  // once more, without a restart
    writer.write(start_at(2));
    writer.write(histogram_at(2, "gradients/w", 4));
  }
  const Read found = read(folder / "");
  const std::map<std::pair<std::string, std::int64_t>, std::uint64_t> wanted = {
      {{"gradients/w", 0}, 3}, {{"gradients/w", 1}, 1}, {{"gradients/w", 2}, 4}};
  CHECK(found.totals == wanted);
  std::vector<std::pair<std::int64_t, double>> losses;
  for (const auto& scalars : found.scalars) {
    if (scalars.loss) losses.emplace_back(scalars.step, *scalars.loss);
  }
  CHECK(losses == std::vector<std::pair<std::int64_t, double>>{{0, 0}, {1, 1}});
  CHECK(mentions(found.notes, "loss is 'Loss/train'"));
  CHECK(found.told == found.of);
}

TEST_CASE("histograms that are none are told with their place, others are read",
          "[tensorboard][table]") {
  struct Row {
    const char* wanted;
    void (*spoil)(log::proto::Summary::Value&);
  };
  const std::vector<Row> rows = {
      {"whole number", [](auto& v) { v.mutable_histo()->set_bucket(1, 1.5); }},
      {"as many", [](auto& v) { v.mutable_histo()->add_bucket(1); }},
      {"ascend", [](auto& v) { v.mutable_histo()->set_bucket_limit(1, 0.25); }},
      {"the buckets hold", [](auto& v) { v.mutable_histo()->set_num(1); }},
      {"outside of them", [](auto& v) { v.mutable_histo()->set_min(2); }},
      {"not a histogram",
       [](auto& v) {
         v.mutable_metadata()->mutable_plugin_data()->set_plugin_name("histograms");
         auto& tensor = *v.mutable_tensor();
         tensor.set_dtype(log::proto::DT_DOUBLE);
         tensor.add_double_val(1);
         for (const std::int64_t size : {std::int64_t{1} << 40, std::int64_t{3}}) {
           tensor.mutable_tensor_shape()->add_dim()->set_size(size);
         }
       }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.wanted);
    const TempFolder folder;
    {
      EventWriter writer(folder / "1.tfevents");
      log::proto::Event event = histogram_at(0, "gradients/spoiled", 5);
      row.spoil(value_of(event));
      writer.write(event);
      writer.write(histogram_at(7, "gradients/w", 5));
    }
    const Read found = read(folder / "");
    CHECK(found.totals.size() == 1);
    CHECK(found.totals.count({"gradients/w", 7}) == 1);
    CHECK(mentions(found.notes, "gradients/spoiled"));
    CHECK(mentions(found.notes, row.wanted));
  }
}

TEST_CASE("a tensor that nothing says is a histogram is none", "[tensorboard]") {
  const TempFolder folder;
  {
    EventWriter writer(folder / "1.tfevents");
    log::proto::Event event = event_at(0, "gradients/w");
    value_of(event).mutable_tensor()->set_dtype(log::proto::DT_DOUBLE);
    writer.write(event);
    writer.write(histogram_at(0, "gradients/v", 5));
  }
  const Read found = read(folder / "");
  CHECK(found.totals.size() == 1);
  CHECK(mentions(found.notes, "first value"));
}

TEST_CASE("many tags are read in little time", "[tensorboard]") {
  const TempFolder folder;
  constexpr int kTags = 100'000;
  {
    EventWriter writer(folder / "1.tfevents");
    log::proto::Event event;
    for (int i = 0; i < kTags; ++i) {
      auto& value = *event.mutable_summary()->add_value();
      value.set_tag("scalar-" + std::to_string(i));
      value.set_simple_value(1);
    }
    for (std::int64_t step = 0; step < 3; ++step) {
      event.set_step(step);
      writer.write(event);
      writer.write(start_at(step));  // each drops what is there, whatever there is
    }
    writer.write(histogram_at(9, "gradients/w", 5));
  }
  const TensorBoardIndex index({folder / "1.tfevents"}, std::nullopt, {});
  CHECK(index.tags().size() == kTags + 1);
  CHECK(index.scalars().empty());  // none is known
  CHECK(read(folder / "").totals.size() == 1);
}

TEST_CASE("files without anything to read say so", "[tensorboard]") {
  const TempFolder folder;
  { EventWriter writer(folder / "1.tfevents"); }
  CHECK(analyzers::readers::tensorboard::is_tensorboard(folder / ""));
  CHECK_THROWS_WITH(read(folder / ""), Catch::Contains("neither histograms nor scalars"));
}

TEST_CASE("run logs' histograms hold their own tables", "[tensorboard]") {
  std::mt19937_64 random(3);
  std::normal_distribution<double> log2(-18, 6);
  std::vector<double> values = {0.0, -0.0, 0.0};
  for (int i = 0; i < 500; ++i) {
    const double sign = random() % 2 == 0 ? 1 : -1;
    const double exponent = log2(random);
    values.push_back(sign * std::exp2(i % 4 == 0 ? std::round(exponent) : exponent));
  }
  values.push_back(std::numeric_limits<double>::infinity());
  values.push_back(std::numeric_limits<double>::quiet_NaN());
  log::TensorRecord record;
  record.name = "weight_grad/w";
  record.shape = {values.size()};
  record.source_dtype = Dtype::f64;
  record.table = count_binades(view_of(values));
  const TempFolder folder;
  {
    log::RunLogWriter writer(folder / "run", {});
    writer.write(record);
  }
  BoundedTable table;
  analyzers::frames::Visitor visit;
  visit.frame = [&](analyzers::frames::Frame&& frame) { table = frame.table; };
  analyzers::frames::Notes notes;
  analyzers::readers::tensorboard::read_tensorboard(folder / "run", {}, visit, notes, {});

  CHECK(table.total() == values.size());
  CHECK(table.zero() == Interval(3));
  CHECK(table.nan().high + table.inf().high >= 2);
  CHECK(table.largest() == record.table.largest());
  for (int k = -24; k <= 40; ++k) {
    const Boundaries limits = before_scaling(boundaries(kBinary16), k);
    const Classes own = classify(record.table, limits), found = classify(table, limits);
    for (const auto member : {&Classes::flushed_to_zero, &Classes::subnormal, &Classes::normal}) {
      CAPTURE(k);
      CHECK((found.*member).low <= (own.*member).low);
      CHECK((found.*member).high >= (own.*member).high);
    }
    const auto binade =
        static_cast<std::uint64_t>(std::count_if(values.begin(), values.end(), [k](double x) {
          return x != 0 && std::ilogb(x) == -25 - k;
        }));
    CHECK(found.flushed_to_zero.high - found.flushed_to_zero.low <= binade);
  }
  CHECK(mentions(notes[notes.size() - 1] + notes.front(), "run log of Halfscope"));
}

TEST_CASE("gradient norms and evaluations tell from where on they are broken", "[tensorboard]") {
  const TempFolder folder;
  {
    EventWriter writer(folder / "1.tfevents");
    for (const std::int64_t step : {1, 2, 3}) {
      const float broken = step == 1 ? 1 : std::numeric_limits<float>::quiet_NaN();
      for (const char* tag : {"train/grad_norm", "eval/loss", "train/loss", "eval/runtime"}) {
        log::proto::Event event = event_at(step, tag);
        value_of(event).set_simple_value(tag == std::string("train/loss") ? 2 : broken);
        writer.write(event);
      }
    }
  }
  const Read found = read(folder / "");
  using namespace analyzers::frames;
  REQUIRE(found.scalars.size() == 3);
  CHECK(found.scalars[0].more.empty());
  CHECK(found.scalars[0].loss == 2);
  CHECK(std::isnan(found.scalars[1].more.at(std::string(kGradientNorm))));
  CHECK(std::isnan(found.scalars[2].more.at(std::string(kEvaluationLoss))));
}

TEST_CASE("steps whose differences are no numbers are skipped", "[tensorboard]") {
  const TempFolder folder;
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  using Limits = std::numeric_limits<std::int64_t>;
  {
    EventWriter writer(folder / "1.tfevents");
    for (const std::int64_t step : {Limits::min(), -kMost - 1, -kMost, kMost, Limits::max() - 1}) {
      log::proto::Event event = event_at(step, "loss_scale");
      value_of(event).set_simple_value(1024);
      writer.write(event);
    }
  }
  const Read found = read(folder / "");
  REQUIRE(found.scalars.size() == 2);
  CHECK(found.scalars[0].step == -kMost);
  CHECK(found.scalars[1].step == kMost);
  CHECK(mentions(found.notes, "a record's step is 9223372036854775806, beyond 2^53"));
}

TEST_CASE("scalars alone leave tensors open", "[tensorboard]") {
  const TempFolder folder;
  {
    EventWriter writer(folder / "1.tfevents");
    log::proto::Event loss = event_at(0, "loss");
    value_of(loss).set_simple_value(1);
    writer.write(loss);
  }
  const Read found = read(folder / "");
  CHECK(found.totals.empty());
  CHECK(found.scalars.size() == 1);
  CHECK(std::count(found.gaps.begin(), found.gaps.end(), analyzers::frames::Gap::tensors) == 1);
}

}  // namespace test_tensorboard
