// SPDX-License-Identifier: Apache-2.0
#include "sim/training/step_tables.hpp"

#include <cmath>
#include <stdexcept>
#include <utility>

namespace halfscope::sim::training {
namespace {

double finite_count(const BinadeTable& table) {
  return static_cast<double>(table.total() - table.specials().nan - table.infinities());
}

std::vector<std::uint64_t> log_shape(const backend::Shape& shape, bool parameter) {
  const backend::Shape shown = parameter ? backend::torch_shape(shape) : shape;
  return {shown.begin(), shown.end()};
}

}  // namespace

void StepTables::clear() {
  counted_.clear();
  records_.clear();
  index_.clear();
  whole_.clear();
}

void StepTables::add(std::span<const TensorToCount> tensors) {
  if (tensors.empty()) return;
  Counted counted;
  std::vector<backend::Tensor> handles;
  for (const TensorToCount& of : tensors) {
    handles.push_back(of.tensor);
    log::TensorRecord& record = counted.records.emplace_back();
    record.name = std::string(log::name_of(of.role)) + "/" + of.name;
    record.shape = log_shape(of.tensor.shape, of.parameter);
    record.source_dtype = of.tensor.dtype;
    record.computed_dtype = of.tensor.dtype;
    record.state = of.scaled ? log::ScaleState::scaled : log::ScaleState::unscaled;
    record.scale_known = !of.scaled || (of.scale > 0 && std::isfinite(of.scale));
    record.scale = of.scaled && record.scale_known ? of.scale : 1;
  }
  counted.statistics = backend_.statistics_later(handles);
  counted_.push_back(std::move(counted));
}

void StepTables::take(log::TensorRecord&& record) {
  const auto [at, is_new] = index_.try_emplace(record.name, records_.size(), 1);
  if (is_new) {
    records_.push_back(std::move(record));
  } else {
    merge(records_[at->second.first], std::move(record), ++at->second.second);
  }
}

void StepTables::merge(log::TensorRecord& into, log::TensorRecord&& record, std::size_t calls) {
  if (into.scale != record.scale) {
    throw std::logic_error("tensors of one name and step carry different scales");
  }
  const double n = finite_count(into.table), more = finite_count(record.table);
  if (n + more > 0) {
    into.moments.mean = (into.moments.mean * n + record.moments.mean * more) / (n + more);
  }
  into.moments.sum_squares += record.moments.sum_squares;
  const bool alike = calls == 2 ? into.shape == record.shape
                                : std::equal(into.shape.begin() + 1, into.shape.end(),
                                             record.shape.begin(), record.shape.end());
  into.table.merge(record.table);
  if (!alike) {
    into.shape = {into.table.total()};
  } else if (calls == 2) {
    into.shape.insert(into.shape.begin(), 2);
  } else {
    into.shape.front() = calls;
  }
}

void StepTables::keep_whole(const std::string& name, const backend::Tensor& tensor) {
  backend::TensorBits bits = backend::torch_layout(backend::bits_of(backend_, tensor));
  const auto [at, is_new] = whole_.try_emplace(name, std::move(bits), 1);
  if (is_new) return;
  auto& [all, count] = at->second;
  if (++count == 2) all.shape.insert(all.shape.begin(), 1);
  all.shape.front() = count;
  all.bytes.insert(all.bytes.end(), bits.bytes.begin(), bits.bytes.end());
}

void StepTables::write(log::RunLogWriter& writer, std::int64_t step) {
  for (Counted& counted : counted_) {
    std::vector<backend::TensorStatistics> statistics = counted.statistics();
    for (std::size_t i = 0; i < statistics.size(); ++i) {
      counted.records[i].table = std::move(statistics[i].table);
      counted.records[i].moments = statistics[i].moments;
      take(std::move(counted.records[i]));
    }
  }
  counted_.clear();
  for (log::TensorRecord& record : records_) {
    record.step = step;
    writer.write(record);
  }
}

void StepTables::write_whole(log::RunLogWriter& writer, std::int64_t step,
                             const std::map<std::string, std::string>& metadata) const {
  std::vector<log::NamedTensor> tensors;
  for (const auto& [name, whole] : whole_) tensors.push_back(whole.first.named(name));
  writer.write_sample(step, tensors, metadata);
}

}  // namespace halfscope::sim::training
