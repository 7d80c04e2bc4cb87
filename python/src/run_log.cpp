// SPDX-License-Identifier: Apache-2.0
// The run log writer. Private: its Python side is halfscope/_run_log.py.
#include "halfscope/log/run_log.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nlohmann/json.hpp>

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <utility>

#include "array.hpp"
#include "bindings.hpp"
#include "gathered.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace halfscope::python {
namespace {

log::ScaleState state_of(bool scaled) {
  return scaled ? log::ScaleState::scaled : log::ScaleState::unscaled;
}

/// manifest: {"scaled": bool, "sharded": [role], "rank": n, "world_size": n, "about": {...}}
log::Manifest manifest_of(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  log::Manifest manifest;
  manifest.gradients = state_of(json.at("scaled").get<bool>());
  manifest.rank = json.at("rank").get<int>();
  manifest.world_size = json.at("world_size").get<int>();
  *manifest.about = json.at("about");
  for (const std::string name : json.at("sharded")) {
    const std::optional<log::Role> role = log::find_role(name);
    if (!role) throw nb::value_error(("no role is called '" + name + "'").c_str());
    manifest.sharded.push_back(*role);
  }
  return manifest;
}

/// A log that is written in order: at once, or by a thread that waits for a GPU. If a job fails in
/// the thread, those behind it are dropped, and the next call of a function throws its error.
class OrderedLog {
 public:
  OrderedLog(const std::filesystem::path& folder, const log::Manifest& manifest)
      : log_(folder, manifest) {}
  OrderedLog(const OrderedLog&) = delete;
  OrderedLog& operator=(const OrderedLog&) = delete;
  ~OrderedLog() {
    if (getpid() != process_) new std::future(std::move(thread_));  // a fork lacks the thread
  }

  using Job = std::function<void(log::RunLogWriter&)>;

  /// For what needs no order.
  log::RunLogWriter& writer() { return log_; }

  /// Runs the job, behind those of later(): in their thread if that still runs, else at once.
  void in_order(Job&& job) {
    {
      const std::scoped_lock lock(mutex_);
      throw_error();
      if (runs_) {
        jobs_.push_back(std::move(job));
        return;
      }
    }
    job(log_);
  }
  /// Runs the job in the thread. Waits while two or more are left to do.
  void later(Job&& job) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return jobs_.size() < 2; });
    throw_error();
    jobs_.push_back(std::move(job));
    if (runs_) return;
    thread_ = std::async(std::launch::async, [this] { run(); });
    runs_ = true;
  }
  /// Waits for all jobs.
  void finish() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !runs_; });
    throw_error();
  }

 private:
  /// Throws the error of a job in the thread, once.
  void throw_error() {
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }
  void run() {
    std::unique_lock lock(mutex_);
    while (!jobs_.empty()) {
      Job job = std::move(jobs_.front());
      lock.unlock();
      std::exception_ptr error;
      try {
        job(log_);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      jobs_.pop_front();
      if (error) {
        error_ = error;
        jobs_.clear();
      }
      changed_.notify_all();
    }
    runs_ = false;
    changed_.notify_all();
  }

  pid_t process_ = getpid();
  log::RunLogWriter log_;
  std::mutex mutex_;  ///< of the members below
  std::condition_variable changed_;
  std::deque<Job> jobs_;  ///< the first one runs
  std::exception_ptr error_;
  bool runs_ = false;
  std::future<void> thread_;  ///< declared last: its destructor waits
};

/// samples: (name, array, dtype of its bits or None)
void write_sample(OrderedLog& log, std::int64_t step, const nb::list& samples,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<Array> arrays;
  std::vector<log::NamedTensor> tensors;
  for (const nb::handle item : samples) {
    const auto sample = nb::cast<nb::tuple>(item);
    arrays.push_back(array_of(sample[1], nb::cast<std::optional<std::string>>(sample[2])));
    tensors.push_back({nb::cast<std::string>(sample[0]), arrays.back().shape, arrays.back().view});
  }
  nb::gil_scoped_release release;
  log.writer().write_sample(step, tensors, metadata);
}

void write_scalars(OrderedLog& log, std::int64_t step, std::optional<double> loss,
                   std::optional<double> learning_rate, std::optional<double> loss_scale,
                   std::optional<bool> found_inf, std::optional<double> max_abs_weight_grad,
                   std::optional<double> max_abs_activation_grad,
                   const std::map<std::string, double>& more) {
  const log::StepScalars scalars{step,
                                 loss,
                                 learning_rate,
                                 loss_scale,
                                 found_inf,
                                 max_abs_weight_grad,
                                 max_abs_activation_grad,
                                 more};
  nb::gil_scoped_release release;
  log.in_order([scalars](log::RunLogWriter& writer) { writer.write(scalars); });
}

/// fields: (name, Gathered, True if it is scaled, scale or None if it is unknown). Leaves out what
/// the Gathered knows.
log::TensorRecord begun_record(std::int64_t step, const nb::tuple& fields) {
  log::TensorRecord record;
  record.name = nb::cast<std::string>(fields[0]);
  record.step = step;
  record.state = state_of(nb::cast<bool>(fields[2]));
  record.scale_known = !fields[3].is_none();
  record.scale = record.scale_known ? nb::cast<double>(fields[3]) : 1.0;
  return record;
}

/// Adds what the Gathered knows, waits for it, and takes its table.
void complete(log::TensorRecord& record, Gathered& gathered) {
  gathered.settle();
  record.shape = gathered.shape();
  record.source_dtype = gathered.dtype();
  record.computed_dtype = gathered.computed();
  record.moments = gathered.moments();
  record.table = gathered.moved_table();
}

/// tensors: tuples as begun_record() takes them. later: another thread waits for a GPU and writes;
/// finish() or a later call throws its errors.
void write_tensors(OrderedLog& log, std::int64_t step, const nb::list& tensors, bool later) {
  std::vector<log::TensorRecord> records;
  std::vector<Gathered> statistics;
  for (const nb::handle item : tensors) {
    const auto fields = nb::cast<nb::tuple>(item);
    records.push_back(begun_record(step, fields));
    statistics.push_back(nb::cast<const Gathered&>(fields[1]).statistics());
  }
  OrderedLog::Job job = [records = std::move(records),
                         statistics = std::move(statistics)](log::RunLogWriter& writer) mutable {
    for (std::size_t i = 0; i < records.size(); ++i) complete(records[i], statistics[i]);
    writer.write(records);
  };
  nb::gil_scoped_release release;
  later ? log.later(std::move(job)) : log.in_order(std::move(job));
}

nb::dict scalars_of(const log::StepScalars& scalars) {
  nb::dict values;
  values["loss"] = scalars.loss;
  values["learning_rate"] = scalars.learning_rate;
  values["loss_scale"] = scalars.loss_scale;
  values["found_inf"] = scalars.found_inf;
  values["max_abs_weight_grad"] = scalars.max_abs_weight_grad;
  values["max_abs_activation_grad"] = scalars.max_abs_activation_grad;
  values["more"] = scalars.more.map();
  return values;
}

nb::dict record_of(const log::TensorRecord& record) {
  nb::dict values;
  values["name"] = record.name;
  values["step"] = record.step;
  values["shape"] = nb::tuple(nb::cast(record.shape));
  values["source_dtype"] = std::string(name_of(record.source_dtype));
  values["computed_dtype"] =
      record.computed_dtype ? nb::cast(std::string(name_of(*record.computed_dtype))) : nb::none();
  values["scaled"] = record.state == log::ScaleState::scaled;
  values["scale"] = record.scale_known ? nb::cast(record.scale) : nb::none();
  values["mean"] = record.moments.mean;
  values["sum_squares"] = record.moments.sum_squares;
  values["table"] = record.table;
  return values;
}

/// Returns ({step: scalars}, [record], {step: file of whole tensors}).
nb::tuple read_run_log(const std::filesystem::path& folder) {
  const log::RunLog run_log(folder);
  nb::dict scalars;
  for (const log::StepScalars& step : run_log.scalars()) {
    scalars[nb::int_(step.step)] = scalars_of(step);
  }
  nb::list records;
  run_log.for_each([&](log::TensorRecord&& record) { records.append(record_of(record)); });
  return nb::make_tuple(scalars, records, run_log.samples());
}

}  // namespace

void bind_run_log(nb::module_& module) {
  module.def("read_run_log", &read_run_log, "folder"_a);
  nb::class_<OrderedLog>(module, "RunLogWriter")
      .def(
          "__init__",
          [](OrderedLog* self, const std::filesystem::path& folder, const std::string& manifest) {
            new (self) OrderedLog(folder, manifest_of(manifest));
          },
          "folder"_a, "manifest"_a)
      .def("write_scalars", &write_scalars, nb::kw_only(), "step"_a, "loss"_a.none(),
           "learning_rate"_a.none(), "loss_scale"_a.none(), "found_inf"_a.none(),
           "max_abs_weight_grad"_a.none(), "max_abs_activation_grad"_a.none(), "more"_a)
      .def("write_tensors", &write_tensors, "step"_a, "tensors"_a, "later"_a = false)
      .def("finish",
           [](OrderedLog& self) {
             nb::gil_scoped_release release;
             self.finish();
           })
      .def("write_sample", &write_sample, "step"_a, "tensors"_a, "metadata"_a);
}

}  // namespace halfscope::python
