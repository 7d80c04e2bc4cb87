// SPDX-License-Identifier: Apache-2.0
#include "analyzers/compare/operations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>

#include "halfscope/log/error.hpp"
#include "halfscope/log/read_file.hpp"

namespace halfscope::analyzers::compare {
namespace {

double spacing_of(Dtype dtype) { return std::ldexp(1.0, 1 - format_of(dtype).precision); }

using log::BadInput;
using log::printable;
using nlohmann::json;

constexpr const char* kSchema = "halfscope.operations/1";
constexpr std::uintmax_t kMostBytes = 64 << 20;
constexpr int kMostDepth = 8;
constexpr const char* kWayOut =
    "; remove the file, or write it again with halfscope simulate --check-operations";

/// Reads the fields of one object of the file, with messages that name both.
class Object {
 public:
  Object(std::string where, const json& object) : where_(std::move(where)), object_(object) {
    if (!object.is_object()) refuse(where_, dumped(object), "an object");
  }

  [[noreturn]] static void refuse(const std::string& where, const std::string& found,
                                  const std::string& wanted) {
    throw BadInput(fmt::format("{}: is {}, expected {}{}", where, found, wanted, kWayOut));
  }
  [[noreturn]] void reject(const std::string& key, const std::string& wanted) const {
    const auto found = object_.find(key);
    refuse(where_of(key), found == object_.end() ? "missing" : dumped(*found), wanted);
  }

  const json& at(const std::string& key) const {
    if (!object_.contains(key)) reject(key, "a value");
    return object_.at(key);
  }
  Object object(const std::string& key) const { return {where_of(key), at(key)}; }
  std::string text(const std::string& key) const {
    if (!at(key).is_string()) reject(key, "a string");
    return at(key).get<std::string>();
  }
  std::int64_t step(const std::string& key) const {
    const json& value = at(key);
    // The JSON library stores integers above INT64_MAX as unsigned.
    const bool fits = value.is_number_unsigned() && value.get<std::uint64_t>() <= INT64_MAX;
    if (!fits) reject(key, "a step number");
    return value.get<std::int64_t>();
  }
  std::uint64_t count(const std::string& key) const {
    if (!at(key).is_number_unsigned()) reject(key, "a count");
    return at(key).get<std::uint64_t>();
  }
  std::uint64_t count(const std::string& key, std::uint64_t most, const std::string& of) const {
    const std::uint64_t found = count(key);
    if (found > most) reject(key, fmt::format("at most the {} {}", most, of));
    return found;
  }
  double magnitude(const std::string& key) const {
    const json& value = at(key);
    const bool fits =
        value.is_number() && value.get<double>() >= 0 && std::isfinite(value.get<double>());
    if (!fits) reject(key, "a number from 0");
    return value.get<double>();
  }
  std::string where_of(const std::string& key) const { return where_ + " '" + key + "'"; }
  const std::string& where() const { return where_; }

 private:
  static std::string dumped(const json& value) {
    constexpr std::size_t kMost = 60;
    const std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
    return printable(text.size() <= kMost ? text : text.substr(0, kMost) + "...");
  }
  std::string where_;
  const json& object_;
};

json parsed(const std::filesystem::path& file) {
  const std::string where = printable(file.string());
  const std::string text = log::read_text(file, kMostBytes + 1);
  if (text.size() > kMostBytes) {
    Object::refuse(where, fmt::format("more than {} bytes long", kMostBytes),
                   fmt::format("at most {}", kMostBytes));
  }
  const auto bounded = [&](int depth, json::parse_event_t, const json&) {
    if (depth > kMostDepth) {
      Object::refuse(where, fmt::format("JSON nested more than {} deep", kMostDepth),
                     fmt::format("an object with \"schema\" \"{}\"", kSchema));
    }
    return true;
  };
  json found = json::parse(text.begin(), text.end(), bounded, false);
  if (found.is_discarded()) Object::refuse(where, "not JSON", "a JSON object");
  return found;
}

/// Splits the name: the text after the last comma is the format of the results.
void set_name(Operation& to, const Object& from) {
  const std::string whole = from.text("operation");
  const std::size_t comma = whole.rfind(", ");
  const auto dtype = comma == std::string::npos
                         ? std::nullopt
                         : find_dtype(std::string_view(whole).substr(comma + 2));
  if (!dtype || (*dtype != Dtype::f16 && *dtype != Dtype::bf16 && *dtype != Dtype::f32)) {
    from.reject("operation", "\"NAME of SHAPES, FORMAT\" with F16, BF16 or F32 as FORMAT");
  }
  to.name = whole.substr(0, comma);
  to.dtype = *dtype;
}

RunAndEmulation both(const Object& from, const char* key, std::uint64_t elements) {
  const Object object = from.object(key);
  return {object.count("run", elements, "elements"),
          object.count("emulated", elements, "elements")};
}

Operation operation_of(const Object& from) {
  Operation o;
  set_name(o, from);
  o.calls = from.count("calls");
  o.elements = from.count("elements");
  o.within_one_ulp = from.count("within_one_ulp", o.elements, "elements");
  o.identical = from.count("identical", o.within_one_ulp, "within one ulp");
  o.not_finite_in_one = from.count("not_finite_in_one", o.elements - o.within_one_ulp,
                                   "elements that are not within one ulp");
  o.largest_ulps = from.count("largest_ulps");
  o.largest_relative_error = from.magnitude("largest_relative_error");
  o.zero = both(from, "zero", o.elements);
  o.subnormal = both(from, "subnormal", o.elements);
  o.not_finite = both(from, "not_finite", o.elements);
  return o;
}

/// Returns the sort key by format, narrowest first: bits, then precision.
std::tuple<int, int> width(Dtype dtype) {
  return {dtype == Dtype::f32 ? 32 : 16, format_of(dtype).precision};
}

std::tuple<double, double, double> badness(const Operation& o) {
  return {share(o.not_finite_in_one, o.elements), o.largest_relative_error,
          share(o.different(), o.elements)};
}

void add(std::vector<OperationSums>& formats, const Operation& o, const std::string& where) {
  if (formats.empty() || formats.back().dtype != o.dtype) formats.push_back({.dtype = o.dtype});
  OperationSums& sums = formats.back();
  // No other count is larger than this one.
  if (o.elements > UINT64_MAX - sums.elements) {
    Object::refuse(where, "more elements together than 64 bits count", "fewer");
  }
  const bool identical = o.identical == o.elements;
  ++sums.operations;
  sums.identical_operations += identical ? 1 : 0;
  sums.elements += o.elements;
  sums.elements_of_different += identical ? 0 : o.elements;
  sums.identical += o.identical;
  sums.within_one_ulp += o.within_one_ulp;
  sums.not_finite_in_one += o.not_finite_in_one;
  sums.beyond_rounding += o.beyond_rounding() ? 1 : 0;
}

}  // namespace

double share(std::uint64_t count, std::uint64_t of) {
  return of == 0 ? 0 : static_cast<double>(count) / static_cast<double>(of);
}

double OperationSums::spacing() const { return spacing_of(dtype); }

bool Operation::beyond_rounding() const {
  const bool far = beyond_one_ulp() != 0 && largest_relative_error > spacing_of(dtype);
  return dtype != Dtype::f32 && (not_finite_in_one != 0 || far);
}

const Operation& Operations::worst(Dtype dtype) const {
  return *std::find_if(all.begin(), all.end(), [&](const auto& o) { return o.dtype == dtype; });
}

std::optional<Operations> read_operations(const std::filesystem::path& run) {
  const std::filesystem::path path = run / kOperationsFile;
  std::error_code error;
  if (!std::filesystem::is_directory(run, error) || !std::filesystem::exists(path, error)) {
    return std::nullopt;
  }
  const json whole = parsed(path);
  const Object file(printable(path.string()), whole);
  if (file.text("schema") != kSchema) file.reject("schema", fmt::format("\"{}\"", kSchema));
  Operations out;
  out.first_step = file.step("first_step");
  out.last_step = file.step("last_step");
  if (out.last_step < out.first_step) {
    file.reject("last_step", fmt::format("a step from {} on, the first", out.first_step));
  }
  const json& list = file.at("operations");
  if (!list.is_array() || list.empty()) file.reject("operations", "an array of operations");
  for (std::size_t i = 0; i < list.size(); ++i) {
    out.all.push_back(operation_of({fmt::format("{} operation {}", file.where(), i + 1), list[i]}));
  }
  std::stable_sort(out.all.begin(), out.all.end(), [](const Operation& x, const Operation& y) {
    return width(x.dtype) != width(y.dtype) ? width(x.dtype) < width(y.dtype)
                                            : badness(x) > badness(y);
  });
  for (const Operation& o : out.all) add(out.formats, o, file.where());
  return out;
}

}  // namespace halfscope::analyzers::compare
