// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensorboard/tensorboard_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <system_error>
#include <tuple>

#include "analyzers/readers/common/timeline.hpp"
#include "halfscope/log/event_file.hpp"
#include "halfscope/log/tensor_value.hpp"

namespace halfscope::analyzers::readers::tensorboard {
namespace {

using log::ValueOutline;

using Plugin = TensorBoardIndex::Plugin;

constexpr std::string_view kOwnTables = "binades/", kOwnNumbers = "exact/";  // docs/run-log.md
constexpr std::uint64_t kProgressBytes = std::uint64_t{1} << 20;

Plugin plugin_of(std::string_view name) {
  if (name == "scalars") return Plugin::scalars;
  if (name == "histograms") return Plugin::histograms;
  return name == "halfscope" ? Plugin::halfscope : Plugin::other;
}

/// Keeps the last entry of each tag and step, unless a later restart dropped it. least[n] is the
/// lowest step at which restart n or a later one began.
template <typename Entry>
void keep_last_of(std::vector<Entry>& entries, const std::vector<std::int64_t>& least) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.tag, a.step) < std::tie(b.tag, b.step);
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Entry& e = entries[i];
    const bool again =
        i + 1 < entries.size() && entries[i + 1].tag == e.tag && entries[i + 1].step == e.step;
    const bool dropped = e.restarts < least.size() && least[e.restarts] <= e.step;
    if (!again && !dropped) entries[kept++] = e;
  }
  entries.resize(kept);
}

}  // namespace

TensorBoardIndex::TensorBoardIndex(std::vector<log::OpenPath> files,
                                   const std::optional<std::string>& recorded_scale,
                                   const frames::Progress& progress)
    : files_(std::move(files)), recorded_scale_(recorded_scale) {
  for (const log::OpenPath& file : files_) bytes_ += file.open()->size();
  for (std::uint32_t file = 0; file < files_.size(); ++file) read(file, progress);
  keep_last();
  if (unnamed_ != 0) {
    notes_.add(
        fmt::format("{} {} skipped: the first value of their tag, which names the type, is missing",
                    unnamed_, unnamed_ == 1 ? "tensor is" : "tensors are"));
  }
}

void TensorBoardIndex::read(std::uint32_t file, const frames::Progress& progress) {
  log::EventReader reader(files_[file]);
  log::EventOutline event;
  std::uint64_t reported = 0;
  while (const auto message = reader.next_message()) {
    if (!event.read(*message)) {
      reader.reject("a record is not a TensorBoard event");
      continue;
    }
    if (event.step < -common::kLargestStep || event.step > common::kLargestStep) {
      reader.reject(fmt::format("a record's step is {}, beyond 2^53", event.step));
      continue;
    }
    any_record_ = true;
    if (event.starts) restarts_.push_back(event.step);
    for (const ValueOutline& value : event.values) take(value, event.step, reader, *message, file);
    if (progress && reader.offset() - reported >= kProgressBytes) {
      reported = reader.offset();
      progress(bytes_before_ + reported, 2 * bytes_);
    }
  }
  bytes_before_ += reader.size();
  notes_.add_all(reader.notes());
}

std::uint32_t TensorBoardIndex::tag_of(std::string_view name) {
  if (const auto found = tag_numbers_.find(name); found != tag_numbers_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(tags_.size());
  tag_numbers_.emplace(name, number);
  tags_.push_back({std::string(name)});
  tags_.back().named = lines::meaning_of_tag(name);
  return number;
}

void TensorBoardIndex::take(const ValueOutline& value, std::int64_t step,
                            const log::EventReader& reader, std::string_view message,
                            std::uint32_t file) {
  const std::uint32_t tag = tag_of(value.tag);
  if (!value.plugin.empty()) tags_[tag].plugin = plugin_of(value.plugin);
  if (value.kind == ValueOutline::Kind::scalar) return take_scalar(tag, step, value.scalar);
  if (value.kind == ValueOutline::Kind::other) return;
  Place place = {};
  place.tag = tag;
  place.file = file;
  place.step = step;
  place.offset = reader.message_offset();
  if (!value.body.empty()) {
    place.offset += static_cast<std::uint64_t>(value.body.data() - message.data());
  }
  place.size = static_cast<std::uint32_t>(value.body.size());
  place.restarts = static_cast<std::uint32_t>(restarts_.size());
  if (value.kind == ValueOutline::Kind::tensor) return take_tensor(value, tag, place);
  place.form = Form::histogram;
  tags_[tag].histogram = true;
  places_.push_back(place);
}

void TensorBoardIndex::take_tensor(const ValueOutline& value, std::uint32_t tag, Place place) {
  const std::string_view name = value.tag;
  if (tags_[tag].plugin == Plugin::histograms) {
    place.form = Form::tensor;
    tags_[tag].histogram = true;
    places_.push_back(place);
    return;
  }
  const bool own = tags_[tag].plugin == Plugin::halfscope;
  if (own && name.starts_with(kOwnTables)) {
    const std::uint32_t histogram = tag_of(name.substr(kOwnTables.size()));
    tags_[histogram].of_run_log = true;
    return;
  }
  const bool exact = own && name.starts_with(kOwnNumbers);
  const std::uint32_t scalar = exact ? tag_of(name.substr(kOwnNumbers.size())) : tag;
  const bool wanted = tags_[scalar].named.known() || tags_[scalar].name == recorded_scale_;
  log::proto::TensorProto tensor;
  if (wanted && tensor.ParseFromArray(value.body.data(), static_cast<int>(value.body.size()))) {
    if (const auto number = log::number_of(tensor)) {
      return take_scalar(scalar, place.step, *number);
    }
  }
  tags_[tag].scalar = tags_[tag].scalar || tags_[tag].plugin == Plugin::scalars;
  if (tags_[tag].plugin == Plugin::unknown) ++unnamed_;
}

void TensorBoardIndex::take_scalar(std::uint32_t tag, std::int64_t step, double value) {
  Tag& of = tags_[tag];
  of.scalar = true;
  if (!of.named.known() && of.name != recorded_scale_) return;
  scalars_.push_back({tag, static_cast<std::uint32_t>(restarts_.size()), step, value});
}

void TensorBoardIndex::keep_last() {
  std::vector<std::int64_t> least = restarts_;
  for (std::size_t i = least.size(); i-- > 1;) least[i - 1] = std::min(least[i - 1], least[i]);
  keep_last_of(scalars_, least);
  keep_last_of(places_, least);
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return std::tie(a.file, a.offset) < std::tie(b.file, b.offset);
  });
}

}  // namespace halfscope::analyzers::readers::tensorboard
