// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/record_event.hpp"

#include <algorithm>
#include <boost/endian/conversion.hpp>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "halfscope/log/error.hpp"

namespace halfscope::log {
namespace {

using nlohmann::json;

/// Returns a JSON number; infinity and NaN, which JSON lacks, become strings.
std::string number(double value) {
  if (std::isnan(value)) return "\"NaN\"";
  if (std::isinf(value)) return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  return json(value).dump();
}

double number_in(const json& statistics, const char* key) {
  const json& value = statistics.at(key);
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  throw std::invalid_argument(std::string(key) + " is not a number");
}

std::string largest_in(const BinadeTable& table) {
  if (const auto largest = table.largest()) {
    const double significand = 1.0 + std::ldexp(static_cast<double>(largest->fraction), -52);
    return number(std::ldexp(significand, largest->exponent));
  }
  return table.specials().zero != 0 ? number(0.0) : "null";
}

/// Builds the text directly: a JSON document would take most of the time of writing a record.
std::string statistics_of(const TensorRecord& record) {
  std::string text = "{";
  const auto add = [&](std::string_view key, std::string_view value) {
    text.append(text.size() == 1 ? "\"" : ",\"").append(key).append("\":").append(value);
  };
  const auto add_name = [&](std::string_view key, std::string_view name) {
    add(key, "\"" + std::string(name) + "\"");
  };
  std::string shape;
  for (const std::uint64_t size : record.shape) {
    shape += (shape.empty() ? "" : ",") + std::to_string(size);
  }
  if (record.computed_dtype) add_name("computed_dtype", name_of(*record.computed_dtype));
  add("max_abs", largest_in(record.table));
  add("mean", number(record.moments.mean));
  add("scale", record.scale_known ? number(record.scale) : "null");
  add("shape", "[" + shape + "]");
  add_name("source_dtype", name_of(record.source_dtype));
  add_name("state", name_of(record.state));
  add("sum_squares", number(record.moments.sum_squares));
  return text + "}";
}

Dtype dtype_in(const json& statistics, const char* key) {
  const std::string name = statistics.at(key).get<std::string>();
  if (const auto dtype = find_dtype(name)) return *dtype;
  throw std::invalid_argument(std::string(key) + " is '" + printable(name) +
                              "', which this version does not know");
}

void read_statistics(const std::string& text, TensorRecord& record) {
  const json statistics = json::parse(text);
  const json& shape = statistics.at("shape");
  if (!shape.is_array()) throw std::invalid_argument("shape is not an array");
  for (const json& size : shape) {
    if (!size.is_number_unsigned()) throw std::invalid_argument("shape holds no sizes");
    record.shape.push_back(size.get<std::uint64_t>());
  }
  record.source_dtype = dtype_in(statistics, "source_dtype");
  if (statistics.contains("computed_dtype")) {
    record.computed_dtype = dtype_in(statistics, "computed_dtype");
  }
  const std::string state = statistics.at("state").get<std::string>();
  const auto known = find_scale_state(state);
  if (!known) {
    throw std::invalid_argument("state is '" + printable(state) + "', expected scaled or unscaled");
  }
  record.state = *known;
  record.scale_known = !statistics.at("scale").is_null();
  if (record.scale_known) record.scale = number_in(statistics, "scale");
  if (!(record.scale > 0)) throw std::invalid_argument("scale is not above zero");
  record.moments.mean = number_in(statistics, "mean");
  record.moments.sum_squares = number_in(statistics, "sum_squares");
}

std::vector<std::int64_t> words_of(const proto::TensorProto& tensor) {
  if (tensor.dtype() != proto::DT_INT64)
    throw std::invalid_argument("binades are not an int64 tensor");
  if (tensor.int64_val_size() != 0) return {tensor.int64_val().begin(), tensor.int64_val().end()};
  const std::string& content = tensor.tensor_content();
  constexpr std::size_t kWord = sizeof(std::int64_t);
  if (content.size() % kWord != 0) throw std::invalid_argument("binades end within a word");
  std::vector<std::int64_t> words(content.size() / kWord);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = boost::endian::load_little_s64(
        reinterpret_cast<const unsigned char*>(content.data() + i * kWord));
  }
  return words;
}

void set_words(proto::TensorProto& tensor, const std::vector<std::int64_t>& words) {
  tensor.set_dtype(proto::DT_INT64);
  tensor.mutable_tensor_shape()->add_dim()->set_size(static_cast<std::int64_t>(words.size()));
  std::string& content = *tensor.mutable_tensor_content();
  content.resize(words.size() * sizeof(std::int64_t));
  auto* to = reinterpret_cast<unsigned char*>(content.data());
  for (const std::int64_t word : words) {
    boost::endian::store_little_s64(to, word);
    to += sizeof word;
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  if (std::ranges::all_of(text, [](unsigned char c) { return c < 0x80; })) return true;
  try {
    static_cast<void>(json(text).dump());
    return true;
  } catch (const json::exception&) {
    return false;
  }
}

void require_name(std::string_view name, std::string_view what, std::string_view where) {
  if (!name.empty() && is_utf8(name)) return;
  throw BadInput(std::string(where) + ": " + std::string(what) + " '" + printable(name) + "' is " +
                 (name.empty() ? "empty" : "not UTF-8") +
                 ", but a log needs text; give it another name");
}

void describe(proto::Summary::Value& value) {
  proto::SummaryMetadata& metadata = *value.mutable_metadata();
  metadata.mutable_plugin_data()->set_plugin_name(std::string(kPlugin));
  metadata.set_data_class(2);  // DATA_CLASS_TENSOR
}

proto::Summary record_values(const TensorRecord& record, std::string_view where) {
  require_name(record.name, "tensor", where);
  proto::Summary summary;
  proto::Summary::Value& binades = *summary.add_value();
  binades.set_tag(std::string(kBinades) + record.name);
  set_words(*binades.mutable_tensor(), record.table.encode());

  proto::Summary::Value& statistics = *summary.add_value();
  statistics.set_tag(std::string(kStatistics) + record.name);
  statistics.mutable_tensor()->set_dtype(proto::DT_STRING);
  statistics.mutable_tensor()->mutable_tensor_shape();
  statistics.mutable_tensor()->add_string_val(statistics_of(record));

  proto::Summary::Value& picture = *summary.add_value();
  picture.set_tag(record.name);
  *picture.mutable_histo() = histogram(record.table, record.moments);
  return summary;
}

RecordEvent::RecordEvent(const proto::Event& event) : event_(event) {
  for (const proto::Summary::Value& value : event.summary().value()) {
    if (!value.has_tensor()) continue;
    tensors_.try_emplace(value.tag(), &value.tensor());  // the first of equal tags counts
    if (value.tag().starts_with(kBinades)) names_.push_back(value.tag().substr(kBinades.size()));
  }
}

const proto::TensorProto& RecordEvent::tensor(const std::string& tag) const {
  const auto found = tensors_.find(tag);
  if (found != tensors_.end()) return *found->second;
  throw std::invalid_argument("its event has no tensor '" + printable(tag) + "'");
}

TensorRecord RecordEvent::read(const std::string& name) const {
  TensorRecord record;
  record.name = name;
  record.step = event_.step();
  if (!is_utf8(name)) throw std::invalid_argument("its name is not UTF-8");
  const std::vector<std::int64_t> words = words_of(tensor(std::string(kBinades) + name));
  record.table = BinadeTable::decode(words);
  const proto::TensorProto& text = tensor(std::string(kStatistics) + name);
  if (text.dtype() != proto::DT_STRING || text.string_val_size() != 1) {
    throw std::invalid_argument("its statistics are no text");
  }
  try {
    read_statistics(text.string_val(0), record);
  } catch (const json::exception& error) {
    throw std::invalid_argument("its statistics cannot be read: " + printable(error.what()));
  }
  return record;
}

}  // namespace halfscope::log
