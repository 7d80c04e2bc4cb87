// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/event_outline.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <bit>
#include <optional>

#include "halfscope/log/event_file.pb.h"

namespace halfscope::log {
namespace {

using google::protobuf::internal::WireFormatLite;

constexpr std::uint32_t tag_of(int field, WireFormatLite::WireType type) {
  return (static_cast<std::uint32_t>(field) << 3) | static_cast<std::uint32_t>(type);
}
constexpr std::uint32_t bytes_field(int field) {
  return tag_of(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}

/// Iterates over the fields of a message, in their order.
class WireFields {
 public:
  explicit WireFields(std::string_view message)
      : message_(message),
        in_(reinterpret_cast<const std::uint8_t*>(message.data()),
            static_cast<int>(message.size())) {}

  /// Returns number and type of the next field; 0 at the end and on malformed input.
  std::uint32_t next() { return tag_ = in_.ReadTag(); }
  bool at_end() { return in_.ConsumedEntireMessage(); }

  bool number(std::uint64_t& value) { return in_.ReadVarint64(&value); }
  bool number(float& value) {
    std::uint32_t bits = 0;
    if (!in_.ReadLittleEndian32(&bits)) return false;
    value = std::bit_cast<float>(bits);
    return true;
  }
  bool bytes(std::string_view& value) {
    std::uint32_t size = 0;
    if (!in_.ReadVarint32(&size)) return false;
    const auto at = static_cast<std::size_t>(in_.CurrentPosition());
    if (size > message_.size() - at) return false;
    value = message_.substr(at, size);
    return in_.Skip(static_cast<int>(size));
  }
  bool skip() { return WireFormatLite::SkipField(&in_, tag_); }

 private:
  std::string_view message_;
  google::protobuf::io::CodedInputStream in_;
  std::uint32_t tag_ = 0;
};

/// Finds the last field with a given number that has bytes; `value` is unchanged if there is none.
/// Returns false if the message is malformed.
bool last_bytes(std::string_view message, int field, std::string_view& value) {
  WireFields fields(message);
  while (const std::uint32_t tag = fields.next()) {
    if (!(tag == bytes_field(field) ? fields.bytes(value) : fields.skip())) return false;
  }
  return fields.at_end();
}

bool read_plugin(std::string_view metadata, std::string_view& plugin) {
  std::string_view data;
  return last_bytes(metadata, proto::SummaryMetadata::kPluginDataFieldNumber, data) &&
         last_bytes(data, proto::PluginData::kPluginNameFieldNumber, plugin);
}

bool read_value(std::string_view message, ValueOutline& value) {
  using Value = proto::Summary::Value;
  WireFields fields(message);
  const auto take = [&](std::uint32_t tag) {
    switch (tag) {
      case bytes_field(Value::kTagFieldNumber): return fields.bytes(value.tag);
      case bytes_field(Value::kHistoFieldNumber):
        value.kind = ValueOutline::Kind::histogram;
        return fields.bytes(value.body);
      case bytes_field(Value::kTensorFieldNumber):
        value.kind = ValueOutline::Kind::tensor;
        return fields.bytes(value.body);
      case tag_of(Value::kSimpleValueFieldNumber, WireFormatLite::WIRETYPE_FIXED32):
        value.kind = ValueOutline::Kind::scalar;
        return fields.number(value.scalar);
      case bytes_field(Value::kMetadataFieldNumber): {
        std::string_view metadata;
        return fields.bytes(metadata) && read_plugin(metadata, value.plugin);
      }
      default: return fields.skip();
    }
  };
  while (const std::uint32_t tag = fields.next()) {
    if (!take(tag)) return false;
  }
  return fields.at_end();
}

bool read_summary(std::string_view message, std::vector<ValueOutline>& values) {
  WireFields fields(message);
  while (const std::uint32_t tag = fields.next()) {
    std::string_view value;
    if (tag != bytes_field(proto::Summary::kValueFieldNumber)) {
      if (!fields.skip()) return false;
    } else if (!fields.bytes(value) || !read_value(value, values.emplace_back())) {
      return false;
    } else if (values.back().kind == ValueOutline::Kind::other && values.back().plugin.empty()) {
      values.pop_back();  // many empty values must not take memory
    }
  }
  return fields.at_end();
}

bool read_session(std::string_view message, bool& starts) {
  WireFields fields(message);
  while (const std::uint32_t tag = fields.next()) {
    std::uint64_t status = 0;
    if (tag != tag_of(proto::SessionLog::kStatusFieldNumber, WireFormatLite::WIRETYPE_VARINT)) {
      if (!fields.skip()) return false;
    } else if (fields.number(status)) {
      starts = status == proto::SessionLog::START;
    } else {
      return false;
    }
  }
  return fields.at_end();
}

}  // namespace

bool EventOutline::read(std::string_view message) {
  step = 0;
  starts = false;
  values.clear();
  bool any = false;
  WireFields fields(message);
  const auto take = [&](std::uint32_t tag) {
    std::string_view bytes;
    any = true;
    switch (tag) {
      case tag_of(proto::Event::kStepFieldNumber, WireFormatLite::WIRETYPE_VARINT): {
        std::uint64_t number = 0;
        const bool read = fields.number(number);
        step = static_cast<std::int64_t>(number);
        return read;
      }
      case bytes_field(proto::Event::kSummaryFieldNumber):
        return fields.bytes(bytes) && read_summary(bytes, values);
      case bytes_field(proto::Event::kSessionLogFieldNumber):
        return fields.bytes(bytes) && read_session(bytes, starts);
      case tag_of(proto::Event::kWallTimeFieldNumber, WireFormatLite::WIRETYPE_FIXED64):
      case bytes_field(proto::Event::kFileVersionFieldNumber): return fields.skip();
      default: any = false; return fields.skip();
    }
  };
  bool any_known = false;
  while (const std::uint32_t tag = fields.next()) {
    if (!take(tag)) return false;
    any_known = any_known || any;
  }
  return fields.at_end() && (any_known || message.empty());
}

}  // namespace halfscope::log
