// SPDX-License-Identifier: Apache-2.0
// Computes a step of an optimizer, bit for bit.
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "halfscope/optimizer/variant.hpp"
#include "halfscope/table/count/count.hpp"

namespace halfscope::optimizer {

/// The bound of a result that is not exact (Variant::accuracy). `shortest` and `longest` bound the
/// change of each weight; for exact rows all three are equal.
enum class Bound : std::uint8_t { nearest, shortest, longest };

/// Replaces values by their square roots, in place.
using RootFunction = std::function<void(std::span<float>)>;

struct StepOptions {
  double steps = 1;    ///< steps taken so far, this one included
  double scale = 1;    ///< loss scale that the optimizer removes from the gradient
  bool first = false;  ///< the first step of SGD with momentum: there is no buffer yet
  /// The moments given are those after the step, so that only the weight is computed.
  bool moments_are_new = false;
  /// The weight is taken as 0 in the last operation, so that the result is the update.
  bool update_only = false;
  Dtype dtype = Dtype::f32;              ///< dtype of parameters and state
  const Processor* processor = nullptr;  ///< null: AVX2; rows of CPUs only
  /// torch.get_num_threads(): each thread's part has a tail. Matters to 16-bit values only.
  int threads = 1;
  Bound bound = Bound::nearest;
  /// Square roots where they are a library's (Accuracy::root, f32); empty: correctly rounded.
  RootFunction root = {};
};

/// The tensors of one parameter, all of `count` elements. A null data pointer stands for a tensor
/// that the step does not read.
struct Views {
  TensorView weight, gradient, first, second, largest;
  std::size_t count = 0;
};

/// Results for elements [start, start + count) of a parameter, as binary32 or binary64 values.
template <typename T>
struct Results {
  std::size_t start, count;
  const T *weight, *first, *second, *largest;
};

/// The step of one parameter group, on values stored as T. Immutable, so that threads may share
/// one.
template <typename T>
class Step {
 public:
  using Visit = std::function<void(const Results<T>&)>;

  /// Throws std::invalid_argument if the row has no such algorithm.
  Step(const Variant& variant, const Settings& settings, const StepOptions& options);

  /// Visits the results of elements [begin, end) of a parameter, in order, in blocks. Throws
  /// std::invalid_argument if a tensor that the step reads is empty or has another length.
  void run(const Views& views, std::size_t begin, std::size_t end, const Visit& visit) const;

  /// Returns true if the step reads this value of a parameter.
  bool reads(Operand value) const;

 private:
  struct Program {
    std::vector<Instruction> instructions;
    std::array<double, kOperands> numbers = {};
    bool in_binary64 = false;
    std::bitset<kOperands> reads = {};
  };
  Program program(const Listing& listing, bool tail) const;
  bool narrows(Narrow numbers) const;
  std::size_t part_of_thread(std::size_t count) const;
  void append(Instruction of, bool tail, std::vector<Instruction>& to) const;
  void run(const Program& program, const Views& views, std::size_t begin, std::size_t end,
           const Visit& visit) const;

  const Variant& variant_;
  Settings settings_;
  StepOptions options_;
  bool fma_ = true;
  std::size_t vector_elements_ = 1;  ///< elements behind the last full vector use `tail_`
  Program body_, tail_;
};

extern template class Step<float>;
extern template class Step<double>;

}  // namespace halfscope::optimizer
