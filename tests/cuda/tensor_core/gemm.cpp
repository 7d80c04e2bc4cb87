// SPDX-License-Identifier: Apache-2.0
// Whole products by cublasLt against what its configuration predicts. gemm.json has a row for each
// shape, format of D, limits and kind of inputs, with the results themselves: output i is that of
// gemm_output(shape, i). gemm.golden has a third of them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cuda/device.hpp"
#include "cuda/tensor_core/cublas_lt.hpp"
#include "cuda/tensor_core/gemm_kernels.hpp"
#include "cuda/tensor_core/part.hpp"
#include "tensor_core/gemm_golden.hpp"

namespace probe {
namespace {

using nlohmann::json;

// clang-format off
constexpr GemmShape kShapes[] = {
    {4096, 4096, 4096, false}, {4096, 4096, 4096, true}, {2048, 2048, 2048, false}, {1024, 1024, 1024, false},
    {1024, 1024, 1024, true}, {512, 512, 512, false}, {256, 256, 256, false}, {256, 256, 256, true},
    {128, 128, 128, false}, {64, 64, 64, false}, {32, 32, 32, false}, {16, 16, 16, false},
    {128, 128, 4096, false}, {128, 128, 4096, true}, {64, 64, 8192, false}, {64, 64, 8192, true},
    {32, 32, 16384, false}, {16, 16, 16384, true}, {8, 8, 11528, false}, {8, 1, 11528, true},
    {1, 8, 11528, false}, {1, 8, 11528, true}, {8, 8, 11520, false}, {1, 4096, 4096, false},
    {1, 4096, 4096, true}, {4, 4096, 4096, true}, {16, 4096, 4096, false}, {4096, 1, 4096, true},
    {256, 256, 116, false}, {256, 256, 116, true}, {128, 512, 116, true}, {1000, 1000, 116, false},
    {256, 256, 120, false}, {256, 256, 100, true}, {256, 256, 72, false}, {256, 256, 33, false},
    {256, 256, 17, true}, {255, 255, 255, false}, {255, 255, 255, true}, {127, 130, 1023, false},
    {100, 100, 1000, false}, {100, 100, 1001, false}, {100, 99, 1000, false}, {333, 444, 555, true},
    {64, 10, 3136, true}, {64, 1000, 2048, true}, {512, 2304, 768, true}, {512, 3072, 768, true},
    {512, 768, 3072, true}, {50257, 8, 768, true}, {768, 768, 8192, false}, {2048, 64, 9216, false},
};
// clang-format on
constexpr std::size_t kWorkspace = std::size_t{32} << 20;
constexpr const char* kInputs[] = {"near one", "many exponents", "cancelling"};

/// Fewer where each costs more on the host.
std::uint32_t outputs_of(const GemmShape& shape) {
  return static_cast<std::uint32_t>(std::clamp((1 << 17) / shape.k, 16, 128));
}

struct Setting {
  Accumulator out;
  bool predictable;  ///< no workspace, no reduction
  GemmInputs inputs;
};

class GemmRun {
 public:
  GemmRun() {
    std::size_t a = 0, b = 0, d = 0;
    for (const GemmShape& shape : kShapes) {
      a = std::max(a, std::size_t(shape.m) * std::size_t(shape.k));
      b = std::max(b, std::size_t(shape.n) * std::size_t(shape.k));
      d = std::max(d, std::size_t(shape.m) * std::size_t(shape.n));
    }
    a_ = device::allocate<std::uint16_t>(a);
    b_ = device::allocate<std::uint16_t>(b);
    d_ = device::allocate<std::uint32_t>(d);
    workspace_ = device::allocate<unsigned char>(kWorkspace);
    fmt::print("fact: cublasLt = {}\n", library_.version());
  }

  void run(const GemmShape& shape) {
    for (int kind = 0; kind < static_cast<int>(GemmInputs::count); ++kind) {
      const auto inputs = static_cast<GemmInputs>(kind);
      fill_matrix(inputs, 0, shape.m, shape.k, false, a_.get());
      fill_matrix(inputs, 1, shape.n, shape.k, !shape.transposed, b_.get());
      take_operands(shape, inputs);
      for (const Accumulator out : {Accumulator::binary16, Accumulator::binary32}) {
        for (const bool predictable : {false, true}) one(shape, {out, predictable, inputs});
      }
    }
  }

  bool write(const std::filesystem::path& folder) const {
    std::ofstream out(folder / "gemm.json");
    out << json{{"cublasLt", library_.version()}, {"runs", rows_}}.dump() << '\n';
    if (!out.flush()) throw std::runtime_error("gemm.json cannot be written");
    write_gemm_golden(folder / "gemm.golden", golden_);
    for (const auto& [name, count] : totals_) {
      fmt::print("fact: gemm, {} = {} of {} outputs predicted\n", name, count.equal, count.all);
    }
    return good_;
  }

 private:
  struct Operands {
    std::vector<std::uint16_t> a, b;
  };

  /// Of every output that is compared, made anew on the host.
  void take_operands(const GemmShape& shape, GemmInputs inputs) {
    operands_.clear();
    for (std::uint32_t i = 0; i < outputs_of(shape); ++i) {
      const GemmOutput at = gemm_output(shape, i);
      operands_.push_back(
          {gemm_line(inputs, 0, at.row, shape.k), gemm_line(inputs, 1, at.column, shape.k)});
    }
  }

  std::vector<std::uint32_t> results(const GemmShape& shape, Accumulator out) const {
    std::vector<std::uint32_t> all;
    const std::size_t size = out == Accumulator::binary16 ? 2 : 4;
    for (std::uint32_t i = 0; i < outputs_of(shape); ++i) {
      const GemmOutput at = gemm_output(shape, i);
      const std::size_t place = std::size_t(at.row) * std::size_t(shape.n) + std::size_t(at.column);
      all.push_back(0);
      device::check(cudaMemcpy(&all.back(),
                               reinterpret_cast<const unsigned char*>(d_.get()) + place * size,
                               size, cudaMemcpyDeviceToHost));
    }
    return all;
  }

  void one(const GemmShape& shape, const Setting& setting) {
    json row = {{"m", shape.m},
                {"n", shape.n},
                {"k", shape.k},
                {"transposed", shape.transposed},
                {"out", setting.out == Accumulator::binary16 ? "binary16" : "binary32"},
                {"predictable", setting.predictable},
                {"inputs", kInputs[static_cast<std::size_t>(setting.inputs)]}};
    try {
      const GemmLimits limits = {setting.predictable ? 0 : kWorkspace, setting.predictable};
      const GemmConfig config = library_.multiply(shape, limits, setting.out, a_.get(), b_.get(),
                                                  d_.get(), workspace_.get());
      judge(shape, setting, config, results(shape, setting.out), row);
    } catch (const std::runtime_error& error) {
      row["failed"] = error.what();
      fmt::print("{}\n", row.dump());
      device::check(cudaDeviceSynchronize());  // a fault ends the part
    }
    rows_.push_back(row);
  }

  void judge(const GemmShape& shape, const Setting& setting, const GemmConfig& config,
             const std::vector<std::uint32_t>& d, json& row) {
    row["config"] = {{"algorithm", config.algorithm},
                     {"tile", config.tile},
                     {"slices", config.slices},
                     {"reduction", config.reduction},
                     {"swizzle", config.swizzle},
                     {"custom", config.custom},
                     {"stages", config.stages},
                     {"inner shape", config.inner_shape},
                     {"cluster shape", config.cluster_shape}};
    row["d"] = d;
    golden_.push_back({shape,
                       setting.out,
                       setting.predictable,
                       setting.inputs,
                       config,
                       {d.begin(), d.begin() + static_cast<std::ptrdiff_t>(d.size() + 2) / 3}});
    std::vector<GemmPlan> plans = other_plans(config, shape.k);
    const std::optional<GemmPlan> known = plan_of(config, shape.k);
    if (known) plans.insert(plans.begin(), *known);
    std::vector<int> equal(plans.size());
    for (std::size_t i = 0; i < d.size(); ++i) {
      for (std::size_t p = 0; p < plans.size(); ++p) {
        equal[p] += predict(plans[p], halfscope::tensor_core::kHopper, setting.out, operands_[i].a,
                            operands_[i].b) == d[i];
      }
    }
    for (std::size_t p = 0; p < plans.size(); ++p) row["equal"][plans[p].name] = equal[p];
    note(shape, setting, config, known.has_value(), equal, plans, d.size(), row);
  }

  void note(const GemmShape& shape, const Setting& setting, const GemmConfig& config, bool known,
            const std::vector<int>& equal, const std::vector<GemmPlan>& plans, std::size_t all,
            const json& row) {
    const std::string name =
        fmt::format("{} to {}", setting.predictable ? "no workspace" : "as it likes",
                    row["out"].get<std::string>());
    Count& count = totals_[known ? name : name + ", no plan known, ascending"];
    count.all += all;
    count.equal += static_cast<std::size_t>(equal.front());
    if (known && static_cast<std::size_t>(equal.front()) != all) good_ = false;
    std::string words;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      words += fmt::format("; {} {}", plans[p].name, equal[p]);
    }
    fmt::print(
        "{} x {} x {}{}, {}, {}: algorithm {}, stages {}, slices {}, reduction {}: of {}{}\n",
        shape.m, shape.n, shape.k, shape.transposed ? " transposed" : "", name,
        kInputs[static_cast<std::size_t>(setting.inputs)], config.algorithm, config.stages,
        config.slices, config.reduction, all, words);
    std::fflush(stdout);
  }

  struct Count {
    std::size_t all = 0, equal = 0;
  };
  CublasLt library_;
  std::unique_ptr<std::uint16_t, device::Free> a_, b_;
  std::unique_ptr<std::uint32_t, device::Free> d_;
  std::unique_ptr<unsigned char, device::Free> workspace_;
  std::vector<Operands> operands_;
  json rows_ = json::array();
  std::vector<GemmRow> golden_;
  std::map<std::string, Count> totals_;
  bool good_ = true;
};

}  // namespace

bool run_gemm(const std::filesystem::path& folder) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + std::chrono::seconds(40);
  GemmRun run;
  bool whole = true;
  try {
    for (const GemmShape& shape : kShapes) {
      whole = whole && Clock::now() < end;
      if (whole) run.run(shape);
    }
  } catch (const std::runtime_error& error) {
    fmt::print("gemm: ended early: {}\n", error.what());
    whole = false;
  }
  return run.write(folder) && whole;
}

}  // namespace probe
