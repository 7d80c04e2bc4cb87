// SPDX-License-Identifier: Apache-2.0
#include "halfscope/optimizer/variant.hpp"

#include <algorithm>
#include <array>

namespace halfscope::optimizer {

namespace {

using enum When;
using enum Operation;
using enum Rounded;
using O = Operand;

constexpr Narrow kNarrow = Narrow::yes, kForeach = Narrow::foreach, kTensor = Narrow::tensor;

/// Joins the parts of a program.
template <std::size_t... kCounts>
constexpr auto join(const Instruction (&... parts)[kCounts]) {
  std::array<Instruction, (kCounts + ...)> all = {};
  auto at = all.begin();
  ((at = std::copy(parts, parts + kCounts, at)), ...);
  return all;
}

// A row is an operation of PyTorch, or a part of one: when, to, operation, operands, rounding.

constexpr Instruction kUnscaled[] = {
    {scaled, O::gradient, divide, O::gradient, O::scale, {}, stored},
    {maximizes, O::gradient, multiply, O::gradient, O::minus_one},
};

/// torch/optim/sgd.py.
constexpr Instruction kSgdDecay[] = {
    {decays_gradient, O::gradient, contracted, O::decay, O::weight, O::gradient, stored, kNarrow},
    {first_buffer, O::first, copy, O::gradient},
};
constexpr Instruction kSgdBuffer[] = {
    {next_buffer, O::first, multiply, O::first, O::momentum, {}, stored, kForeach},
    {next_buffer, O::first, contracted, O::undamped, O::gradient, O::first, stored, kNarrow},
};
/// The same as compilers contract m * momentum + g * (1 - dampening) in a loop of single elements.
constexpr Instruction kSgdBufferOfTail[] = {
    {next_buffer, O::temporary, multiply, O::gradient, O::undamped},
    {next_buffer, O::first, fma, O::first, O::momentum, O::temporary},
};
constexpr Instruction kSgdEnd[] = {
    {nesterov, O::gradient, contracted, O::momentum, O::first, O::gradient, stored, kNarrow},
    {plain_buffer, O::gradient, copy, O::first},
    {always, O::weight, contracted, O::minus_lr, O::gradient, O::weight, stored, kNarrow},
};

/// torch/optim/adam.py on a CPU.
constexpr Instruction kAdamFirst[] = {
    {decays_weight, O::weight, multiply, O::weight, O::kept, {}, stored, kForeach},
    {decays_gradient, O::gradient, contracted, O::decay, O::weight, O::gradient, stored, kNarrow},
    {always, O::temporary, subtract, O::gradient, O::first},
    {lerp_small, O::first, fma, O::new1, O::temporary, O::first, stored},
    {lerp_large, O::first, minus_fma, O::temporary, O::old1, O::gradient, stored},
};
constexpr Instruction kAdamSecond[] = {
    {always, O::second, multiply, O::second, O::beta2, {}, stored, kForeach},
    {always, O::temporary, multiply, O::new2, O::gradient},
    {always, O::second, fma, O::temporary, O::gradient, O::second, stored},
};
constexpr Instruction kAdamSecondOfTail[] = {
    {always, O::temporary, multiply, O::new2, O::gradient},
    {always, O::temporary, multiply, O::temporary, O::gradient},
    {always, O::second, fma, O::second, O::beta2, O::temporary},
};
constexpr Instruction kAdamRoot[] = {
    {amsgrad, O::largest, maximum, O::largest, O::second},
    {amsgrad, O::denominator, root, O::largest, {}, {}, stored},
    {not_amsgrad, O::denominator, root, O::second, {}, {}, stored},
};
constexpr Instruction kAdamEnd[] = {
    {always, O::denominator, divide, O::denominator, O::root_correction2, {}, stored},
    {always, O::denominator, add, O::denominator, O::eps, {}, stored, kNarrow},
    {always, O::temporary, multiply, O::minus_step_size, O::first},
    {always, O::temporary, divide, O::temporary, O::denominator},
    {always, O::weight, add, O::weight, O::temporary, {}, stored},
};

/// The same on a GPU, without foreach, where number division is a product with the reciprocal.
constexpr Instruction kCudaSecond[] = {
    {always, O::second, multiply, O::second, O::beta2, {}, stored},
    {always, O::temporary, multiply, O::gradient, O::gradient},
    {always, O::second, fma, O::new2, O::temporary, O::second, stored},
};
constexpr Instruction kTimesInverse[] = {
    {always, O::denominator, multiply, O::denominator, O::inverse_root, {}, stored},
};
constexpr Instruction kByRoot[] = {
    {always, O::denominator, divide, O::denominator, O::root_correction2, {}, stored},
};
constexpr Instruction kCudaEnd[] = {
    {always, O::denominator, add, O::denominator, O::eps, {}, stored},
    {always, O::temporary, divide, O::first, O::denominator},
    {always, O::weight, fma, O::minus_step_size, O::temporary, O::weight, stored},
};
/// The ends of `capturable`, where the step size is part of the denominator.
constexpr Instruction kCapturableEnd[] = {
    {always, O::denominator, divide, O::denominator, O::root_times_step_size, {}, stored, kTensor},
    {always, O::denominator, add, O::denominator, O::eps_over_step_size, {}, stored, kTensor},
    {always, O::temporary, divide, O::first, O::denominator},
    {always, O::weight, add, O::weight, O::temporary, {}, stored},
};
constexpr Instruction kForeachCapturableEnd[] = {
    {always, O::denominator, divide, O::denominator, O::root_correction2, {}, stored, kTensor},
    {always, O::denominator, add, O::denominator, O::eps, {}, stored},
    {always, O::denominator, divide, O::denominator, O::minus_step_size, {}, stored, kTensor},
    {always, O::temporary, divide, O::first, O::denominator},
    {always, O::weight, add, O::weight, O::temporary, {}, stored},
};

/// fused_adam_utils.cuh since January 2026 (PR 173224).
constexpr Instruction kCudaFused[] = {
    {scaled, O::gradient, divide, O::gradient, O::scale},
    {maximizes, O::gradient, multiply, O::gradient, O::minus_one},
    {decays_gradient, O::gradient, fma, O::decay, O::weight, O::gradient},
    {decays_weight, O::weight, minus_fma, O::lr_decay, O::weight, O::weight},
    {always, O::temporary, minus_fma, O::beta1, O::gradient, O::gradient},
    {always, O::first, fma, O::beta1, O::first, O::temporary},
    {always, O::temporary2, multiply, O::gradient, O::gradient},
    {always, O::temporary, minus_fma, O::beta2, O::temporary2, O::temporary2},
    {always, O::second, fma, O::beta2, O::second, O::temporary},
    {amsgrad, O::largest, maximum, O::largest, O::second},
    {amsgrad, O::denominator, root, O::largest},
    {not_amsgrad, O::denominator, root, O::second},
    {always, O::denominator, divide, O::denominator, O::root_correction2},
    {always, O::denominator, add, O::denominator, O::eps},
    {always, O::temporary, multiply, O::step_size, O::first},
    {always, O::temporary, divide, O::temporary, O::denominator},
    {always, O::weight, subtract, O::weight, O::temporary},
};
/// Before: numbers are binary64, and so is an expression with one until it is assigned.
constexpr Instruction kCudaFused64[] = {
    {scaled, O::gradient, divide, O::gradient, O::scale, {}, binary32},
    {maximizes, O::gradient, multiply, O::gradient, O::minus_one},
    {decays_gradient, O::gradient, fma, O::weight, O::decay, O::gradient, binary32},
    {decays_weight, O::weight, minus_fma, O::lr_decay, O::weight, O::weight, binary32},
    {always, O::temporary, multiply, O::new1, O::gradient},
    {always, O::first, fma, O::beta1, O::first, O::temporary, binary32},
    {always, O::temporary, multiply, O::new2, O::gradient},
    {always, O::temporary, multiply, O::temporary, O::gradient},
    {always, O::second, fma, O::beta2, O::second, O::temporary, binary32},
    {amsgrad, O::largest, maximum, O::largest, O::second},
    {amsgrad, O::denominator, root, O::largest, {}, {}, binary32},
    {not_amsgrad, O::denominator, root, O::second, {}, {}, binary32},
    {always, O::denominator, divide, O::denominator, O::root_correction2, {}, binary32},
    {always, O::denominator, add, O::denominator, O::eps, {}, binary32},
    {always, O::temporary, multiply, O::step_size, O::first, {}, binary32},
    {always, O::temporary, divide, O::temporary, O::denominator, {}, binary32},
    {always, O::weight, subtract, O::weight, O::temporary, {}, binary32},
};
/// FusedSgdKernel.cu. The buffer is a double until it is stored.
constexpr Instruction kCudaFusedSgd[] = {
    {scaled, O::gradient, divide, O::gradient, O::scale, {}, binary32},
    {decays_gradient, O::gradient, fma, O::decay, O::weight, O::gradient, binary32},
    {first_buffer, O::first, copy, O::gradient},
    {next_buffer, O::temporary, multiply, O::undamped, O::gradient},
    {next_buffer, O::first, fma, O::momentum, O::first, O::temporary},
    {nesterov, O::gradient, fma, O::momentum, O::first, O::gradient, binary32},
    {plain_buffer, O::gradient, copy, O::first, {}, {}, binary32},
    {maximizes, O::gradient, multiply, O::gradient, O::minus_one},
    {always, O::weight, minus_fma, O::lr, O::gradient, O::weight, binary32},
};

/// torchao/optim/adam.py, operation by operation.
constexpr Instruction kTorchao[] = {
    {decays_weight, O::temporary, multiply, O::lr_decay, O::weight},
    {decays_weight, O::weight, subtract, O::weight, O::temporary},
    {decays_gradient, O::temporary, multiply, O::decay, O::weight},
    {decays_gradient, O::gradient, add, O::gradient, O::temporary},
    {always, O::temporary, subtract, O::gradient, O::first},
    {lerp_small, O::first, fma, O::new1, O::temporary, O::first},
    {lerp_large, O::first, minus_fma, O::temporary, O::old1, O::gradient},
    {always, O::temporary, multiply, O::gradient, O::gradient},
    {always, O::temporary, subtract, O::temporary, O::second},
    {always, O::second, fma, O::new2, O::temporary, O::second},
    {amsgrad, O::largest, maximum, O::largest, O::second},
    {amsgrad, O::denominator, root, O::largest},
    {not_amsgrad, O::denominator, root, O::second},
    {always, O::denominator, divide, O::denominator, O::root_correction2},
    {always, O::denominator, add, O::denominator, O::eps},
    {always, O::temporary, divide, O::first, O::correction1},
    {always, O::temporary, multiply, O::lr, O::temporary},
    {always, O::temporary, divide, O::temporary, O::denominator},
    {always, O::weight, subtract, O::weight, O::temporary},
};

constexpr auto kSgd = join(kUnscaled, kSgdDecay, kSgdBuffer, kSgdEnd);
constexpr auto kSgdTail = join(kUnscaled, kSgdDecay, kSgdBufferOfTail, kSgdEnd);
constexpr auto kAdam = join(kUnscaled, kAdamFirst, kAdamSecond, kAdamRoot, kAdamEnd);
constexpr auto kAdamTail = join(kUnscaled, kAdamFirst, kAdamSecondOfTail, kAdamRoot, kAdamEnd);
constexpr auto kCuda = join(kUnscaled, kAdamFirst, kCudaSecond, kAdamRoot, kTimesInverse, kCudaEnd);
constexpr auto kCudaForeach =
    join(kUnscaled, kAdamFirst, kCudaSecond, kAdamRoot, kByRoot, kCudaEnd);
constexpr auto kCapturable = join(kUnscaled, kAdamFirst, kCudaSecond, kAdamRoot, kCapturableEnd);
constexpr auto kForeachCapturable =
    join(kUnscaled, kAdamFirst, kCudaSecond, kAdamRoot, kForeachCapturableEnd);
constexpr auto kTorchaoStep = join(kUnscaled, kTorchao);

constexpr Variant kVariants[] = {
    {.name = "cpu",
     .source = "torch/optim, foreach=False on a CPU",
     .sgd = {kSgd, kSgd},
     .adam = {kAdam, kAdam},
     .loop = Loop::iterator,
     .accuracy = Accuracy::root},
    {.name = "cpu-foreach",
     .source = "torch/optim, foreach=True on a CPU",
     .sgd = {kSgd, kSgd},
     .adam = {kAdam, kAdam},
     .loop = Loop::iterator,
     .foreach = true,
     .accuracy = Accuracy::root},
    {.name = "cpu-fused",
     .source = "aten/src/ATen/native/cpu/FusedAdamKernel.cpp, FusedSGDKernel.cpp",
     .sgd = {kSgd, kSgdTail},
     .adam = {kAdam, kAdamTail},
     .loop = Loop::kernel,
     .stores_once = true},
    {.name = "cuda",
     .source = "torch/optim, foreach=False on a GPU",
     .sgd = {kSgd},
     .adam = {kCuda}},
    {.name = "cuda-foreach",
     .source = "torch/optim, foreach=True on a GPU: the default there",
     .sgd = {kSgd},
     .adam = {kCudaForeach},
     .foreach = true},
    {.name = "cuda-capturable",
     .source = "torch/optim, capturable=True without foreach",
     .sgd = {},
     .adam = {kCapturable},
     .corrections = Corrections::tensor,
     .accuracy = Accuracy::powers},
    {.name = "cuda-foreach-capturable",
     .source = "torch/optim, capturable=True with foreach",
     .sgd = {},
     .adam = {kForeachCapturable},
     .foreach = true,
     .corrections = Corrections::tensors,
     .accuracy = Accuracy::powers},
    {.name = "cuda-fused",
     .source = "aten/src/ATen/native/cuda/fused_adam_utils.cuh since PR 173224, FusedSgdKernel.cu",
     .sgd = {kCudaFusedSgd, {}, true},
     .adam = {kCudaFused},
     .stores_once = true,
     .corrections = Corrections::kernel,
     .accuracy = Accuracy::powers},
    {.name = "cuda-fused-2025",
     .source = "aten/src/ATen/native/cuda/fused_adam_utils.cuh before PR 173224",
     .sgd = {kCudaFusedSgd, {}, true},
     .adam = {kCudaFused64, {}, true},
     .stores_once = true,
     .corrections = Corrections::kernel64},
    {.name = "torchao",
     .source = "torchao/optim/adam.py with bf16_stochastic_round=True",
     .sgd = {},
     .adam = {kTorchaoStep},
     .stores_once = true,
     .corrections = Corrections::tensor,
     .accuracy = Accuracy::random},
};

/// The kernels in question are not built for AVX-512: PyTorch uses those for AVX2.
constexpr Processor kProcessors[] = {
    {"AVX2", true, 32, true}, {"AVX512", true, 32, true}, {"DEFAULT", false, 32, false}};

template <typename Row>
const Row* find_in(std::span<const Row> rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &Row::name);
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Variant> variants() { return kVariants; }
const Variant* find_variant(std::string_view name) { return find_in(variants(), name); }
std::span<const Processor> processors() { return kProcessors; }
const Processor* find_processor(std::string_view name) { return find_in(processors(), name); }

}  // namespace halfscope::optimizer
