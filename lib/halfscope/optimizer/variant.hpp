// SPDX-License-Identifier: Apache-2.0
// The implementations of SGD, Adam and AdamW, a row each.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "halfscope/optimizer/program.hpp"

namespace halfscope::optimizer {

/// The reasons why a row does not fix every bit.
enum class Accuracy : std::uint8_t {
  exact,
  root,    ///< square roots of 32 and 64 bits are a library's, up to one ulp off
  powers,  ///< beta^t is a device's powf, up to four ulps off
  random   ///< the weight is rounded at random
};

/// Arithmetic of the bias corrections.
enum class Corrections : std::uint8_t {
  python,    ///< Python's numbers, binary64
  kernel,    ///< binary32 in a kernel, by powf
  kernel64,  ///< by pow in binary64, each result rounded to binary32
  tensor,    ///< PyTorch's operations on a tensor of one element: capturable, differentiable
  tensors    ///< the same with foreach
};

/// Elements behind the last full vector are computed by other code than the rest: the tail.
enum class Loop : std::uint8_t {
  device,    ///< a GPU's: no tail, no number is rounded to 16 bits
  iterator,  ///< TensorIterator's: two vectors at a time; none without AVX
  kernel     ///< a fused kernel's: one vector at a time
};

/// The instructions of one algorithm.
struct Listing {
  std::span<const Instruction> body;
  std::span<const Instruction> tail = {};  ///< unused on a device
  bool in_binary64 = false;                ///< numbers meet the elements in binary64
};

struct Variant {
  std::string_view name;
  std::string_view source;  ///< the code that the row describes
  Listing sgd, adam;        ///< an empty body: the row lacks the algorithm
  Loop loop = Loop::device;
  bool foreach = false;
  /// 16-bit values are rounded when the step is stored, and not after each operation.
  bool stores_once = false;
  Corrections corrections = Corrections::python;
  Accuracy accuracy = Accuracy::exact;
};

/// All rows. The first is PyTorch's default on a CPU.
std::span<const Variant> variants();

/// Returns null if no row has the name.
const Variant* find_variant(std::string_view name);

/// The instructions that PyTorch's kernels for a CPU were compiled for: torch.backends.cpu.
struct Processor {
  std::string_view name;
  bool fma;
  std::size_t vector_bytes;
  bool iterates_vectors;  ///< TensorIterator's loops use vectors of 16-bit values
};
std::span<const Processor> processors();  ///< "AVX2" first
const Processor* find_processor(std::string_view name);

}  // namespace halfscope::optimizer
