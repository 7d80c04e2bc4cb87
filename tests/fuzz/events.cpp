// SPDX-License-Identifier: Apache-2.0
#include "events.hpp"

#include <array>
#include <bit>

#include "halfscope/log/event_file.hpp"
#include "halfscope/log/event_file.pb.h"

namespace halfscope::fuzz {
namespace {

namespace proto = log::proto;

std::string little_endian(std::uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

/// Of the tags that mean something, or any.
std::string tag_from(Cursor& in) {
  static constexpr std::array<std::string_view, 14> kTags = {
      "loss",          "loss_scale",        "learning_rate",       "found_inf",
      "train/loss",    "max_abs/w",         "weight_grad/a",       "gradients/a.weight",
      "parameters/a",  "activation_grad/b", "max_abs/weight_grad", "exact/loss_scale",
      "weight_grad/c", "update/a"};
  const auto which = static_cast<std::size_t>(in.number(1));
  return std::string(which < kTags.size() ? kTags[which] : in.text(which % 32));
}

void set_histogram(proto::HistogramProto& histogram, Cursor& in) {
  histogram.set_min(in.real());
  histogram.set_max(in.real());
  histogram.set_num(in.real());
  histogram.set_sum(in.real());
  for (std::uint64_t i = in.number(1); i > 0 && !in.done(); --i) {
    histogram.add_bucket_limit(in.real());
    histogram.add_bucket(in.real());
  }
  if (in.number(1) == 1) histogram.add_bucket_limit(in.real());
}

void set_tensor(proto::TensorProto& tensor, Cursor& in) {
  tensor.set_dtype(static_cast<proto::DataType>(in.number(1)));
  for (std::uint64_t i = in.number(1) % 4; i > 0; --i) {
    tensor.mutable_tensor_shape()->add_dim()->set_size(static_cast<std::int64_t>(in.number(2)));
  }
  const std::uint64_t form = in.number(1) % 4;
  const std::uint64_t count = in.number(1);
  if (form == 0) tensor.set_tensor_content(std::string(in.text(8 * count)));
  for (std::uint64_t i = 0; form != 0 && i < count && !in.done(); ++i) {
    if (form == 1) tensor.add_double_val(in.real());
    if (form == 2)
      tensor.add_float_val(std::bit_cast<float>(static_cast<std::uint32_t>(in.number(4))));
    if (form == 3) tensor.add_int64_val(static_cast<std::int64_t>(in.number(8)));
  }
}

/// The two values of a run log's record: a table and its statistics.
void add_record(proto::Summary& summary, const std::string& name, Cursor& in) {
  proto::Summary::Value& binades = *summary.add_value();
  binades.set_tag("binades/" + name);
  binades.mutable_tensor()->set_dtype(proto::DT_INT64);
  binades.mutable_tensor()->set_tensor_content(std::string(in.part()));
  proto::Summary::Value& statistics = *summary.add_value();
  statistics.set_tag("statistics/" + name);
  statistics.mutable_tensor()->set_dtype(proto::DT_STRING);
  statistics.mutable_tensor()->add_string_val(std::string(in.part()));
}

void add_value(proto::Summary& summary, Cursor& in) {
  const std::uint64_t kind = in.number(1) % 4;
  const std::string tag = tag_from(in);
  if (kind == 3) return add_record(summary, tag, in);
  proto::Summary::Value& value = *summary.add_value();
  value.set_tag(tag);
  if (kind == 0) {
    value.set_simple_value(std::bit_cast<float>(static_cast<std::uint32_t>(in.number(4))));
  } else if (kind == 1) {
    set_histogram(*value.mutable_histo(), in);
  } else {
    if (in.number(1) == 1) {
      value.mutable_metadata()->mutable_plugin_data()->set_plugin_name(std::string(in.text(10)));
    }
    set_tensor(*value.mutable_tensor(), in);
  }
}

std::string event_from(Cursor& in) {
  proto::Event event;
  const std::uint64_t head =
      in.number(1);  // bit 0: a wide step, bit 1: a restart, the rest: values
  event.set_step(static_cast<std::int64_t>(in.number((head & 1) != 0 ? 8 : 1)));
  if ((head & 2) != 0) {
    event.mutable_session_log()->set_status(proto::SessionLog::START);
  } else {
    proto::Summary& summary = *event.mutable_summary();
    for (std::uint64_t i = 1 + (head >> 2) % 8; i > 0; --i) add_value(summary, in);
  }
  return event.SerializeAsString();
}

}  // namespace

std::string record(std::string_view data) {
  const std::string length = little_endian(data.size(), 8);
  return length + little_endian(log::masked_crc32c(length), 4) + std::string(data) +
         little_endian(log::masked_crc32c(data), 4);
}

std::string event_file(std::string_view input) {
  Cursor in({reinterpret_cast<const std::uint8_t*>(input.data()), input.size()});
  const std::uint64_t form = in.number(1);
  if (form == 'R') return std::string(in.rest());
  proto::Event version;
  version.set_file_version("brain.Event:2");
  std::string file = record(version.SerializeAsString());
  while (!in.done()) file += record(form == 'F' ? std::string(in.part()) : event_from(in));
  return file;
}

}  // namespace halfscope::fuzz
