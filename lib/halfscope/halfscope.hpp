// SPDX-License-Identifier: Apache-2.0
// The whole numbers library in one include, and a list of all its functions.
//
// A number is an encoding, stored in the low bits of a std::uint64_t, and a Format, a plain value:
// kBinary16, kBfloat16, kTf32, kBinary32, kBinary64 (conversions only), kFloat8E4M3, kFloat8E5M2,
// kFloat6E3M2, kFloat6E2M3, kFloat4E2M1. Every operation that rounds does so once and returns the
// encoding and the IEEE flags; its last argument, Modes, selects the rounding. No state is global.
//
//     using namespace halfscope;
//     Rounded r = add(kBinary16, 0x3C00, 0x1000);  // 1 + 2^-11: r.bits 0x3C00, r.flags.inexact
//     r = add(kBinary16, 0x3C00, 0x1000, {.rounding = Rounding::upward});  // 0x3C01
//
// As values with operators, rounded with ties to even (number/half.hpp):
//
//     half x = 0.1_h + half(2.5f);       // also bfloat16, tf32, float8_e4m3, ..., Float<a format>
//     std::uint16_t bits = x.bits();  // of a whole vector: bits_of(values)
//
// As arrays (array/array.hpp), with the results of the scalar functions, near memory's speed:
//
//     Flags flags = quantise(kBinary16, values, {.modes = {.saturate = true}});
//
// Modes (number/modes.hpp) and their defaults: rounding ties_to_even, tininess after_rounding, nan
// x86, denormals_are_zero and flush_to_zero false, flush tiny, saturate false, random and
// random_bits for Rounding::stochastic; name them in this order. docs/numerics/emulator.md
// describes the choices that the standards do not fix, docs/cpp.md how to get the library.
//
// All functions, by header. Those of number/ are constexpr and compile for CUDA devices, except
// functions on text, names or spans, exponentials and logarithms.
//
// number/arithmetic.hpp
//   add, subtract, multiply, divide   each rounded once
//   fused_multiply_add   a * b + c, rounded once
//   square_root   rounded once
// number/remainder.hpp
//   remainder   a - n * b, n nearest to a / b; exact
// number/compare.hpp
//   equal, less, less_equal, unordered   a result and flags; quiet or signaling for NaNs
//   total_order   the order of all encodings
//   minimum, maximum, minimum_number, maximum_number   of IEEE 754-2019
//   min_num, max_num   of IEEE 754-2008
// number/convert.hpp
//   convert   between any two formats, the target first: convert(kBinary16, kBinary32, bits)
//   from_float, from_double, to_double   to and from the processor's types
//   unpack   an encoding as sign, significand and exponent
//   convert_nan   what convert does with NaN
// number/integral.hpp
//   round_to_integral   an integer in the same format
//   to_integer, from_integer   of an IntegerType: i32, u32, i64, u64
//   width_of, is_signed   of an integer type
// number/neighbour.hpp
//   next_up, next_down   the neighbours
//   scale_b, log_b   times a power of two, and which power it has
//   negate, absolute, copy_sign   signs, of NaNs too
//   classify   the ten classes
// number/nan.hpp
//   is_nan, is_signaling, is_infinity   what an encoding is
//   default_nan   the NaN of an invalid operation
// number/from_text.hpp
//   from_text   decimal and hexadecimal text, rounded once
// number/text.hpp
//   to_text, to_hex_text   the shortest decimal, a given number of digits, hexadecimal
// number/round.hpp
//   round_pack   an exact value to a format: where all rounding happens
// number/format.hpp
//   find_format   a row of the table by its name, "binary16"; null when there is none
// number/format_names.hpp: formats by other names, for programs (not included)
//   format_called   by any name that people have, "fp16"
//   format_names, why_no_format   all of these, and what is wrong with a name
// number/random.hpp
//   random_word, philox4x32   random numbers of seed and index, for stochastic rounding
//
// number/scale_e8m0.hpp
//   e8m0_exponent, e8m0_from_exponent, e8m0_to_float   the scale itself
//
// number/half.hpp: the types above, numeric_limits, std::hash, literals
//   bits_of   the encodings of a vector of them, for the array functions
// number/half_math.hpp: <cmath>'s functions on them
//   fma, sqrt, remainder, fmod, ldexp, logb   arithmetic
//   floor, ceil, trunc, round, rint   to an integer
//   abs, fabs, copysign, signbit   signs
//   isnan, isinf, isfinite, isnormal   classes
//   fmin, fmax, min, max, nextafter   choices and neighbours
//   exp, exp2, log, log2, log10   of half, correctly rounded
// number/half_stream.hpp
//   from_text, to_text   of the types; operator<<
// number/half_fmt.hpp: formatting with {fmt} (not included)
// number/half_eigen.hpp: Eigen's NumTraits (not included)
//
// number/cuda_half.hpp: CUDA's half intrinsics by name, in namespace cuda_half
//   float2half_rn, float2half_rz, float2half_ru, float2half_rd   from float
//   double2half, half2float   from double, to float
//   hadd, hsub, hmul, hdiv, hfma   arithmetic
//   hadd_sat, hsub_sat, hmul_sat, hfma_sat, hfma_relu   clamped to [0, 1], or at 0 from below
//   hmax, hmin, hmax_nan, hmin_nan   choices
//   hrcp, hsqrt, hrsqrt, hexp, hexp2, hexp10, hlog, hlog2, hlog10   correctly rounded
//
// array/array.hpp
//   convert   binary32 to and from formats of 16 and of 8 bits
//   quantise   binary32 to a format and back, in place
//   add, multiply, fused_multiply_add   formats of 16 bits
// array/array_cuda.hpp: the same on device memory, in namespace cuda (not included)
//   convert, quantise, add, multiply, fused_multiply_add   link halfscope::cuda
//
// block/quantise.hpp: NVFP4, MX, FP8 blocks, HiFloat8; docs/numerics/recipes.md, in namespace block
//   quantise, quantise_scalar, check_quantise, dequantise, transposed   a tensor by a recipe
//   grid_of, second_count, scale_value, scale_width, packed_scales, unpacked_scales   its parts
// block/quantise_cuda.hpp: the same on device memory, in namespace cuda (not included)
//   quantise   link halfscope::cuda
// block/recipe.hpp
//   recipes, find_recipe, recipe_named   the table of recipes
// block/element.hpp
//   encode, decode, format_of, largest_of, width_of, name_of   one element
// block/scale.hpp
//   block_factor, second_factors, divides, has_mx_rule, tries_two_scales, nvfp4_range   one scale
//
// number/operation_table.hpp: operations by name, for programs (not included)
//   operations, find_operation, similar_operations   TestFloat's f16_add and all others
//   flag_bits   TestFloat's flags
//
// Not included either: table/ counts the values of a tensor by magnitude, so that one pass shows
// the underflow at every loss scale (start at table/count.hpp). tensor_core/ computes the sums of
// Tensor Cores bit for bit (start at tensor_core/gemm.hpp for matrices, tensor_core/mma.hpp for
// encodings). reduction/reduce.hpp sums gradients over ranks, block/conform.hpp compares an output
// with a recipe, optimizer/step.hpp computes steps of SGD and Adam, bit for bit as PyTorch does.
#pragma once

#include "halfscope/array/array.hpp"
#include "halfscope/block/element.hpp"
#include "halfscope/block/quantise.hpp"
#include "halfscope/block/recipe.hpp"
#include "halfscope/block/scale.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/compare.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/cuda_half.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/from_text.hpp"
#include "halfscope/number/half.hpp"
#include "halfscope/number/half_math.hpp"
#include "halfscope/number/half_stream.hpp"
#include "halfscope/number/integral.hpp"
#include "halfscope/number/modes.hpp"
#include "halfscope/number/nan.hpp"
#include "halfscope/number/neighbour.hpp"
#include "halfscope/number/random.hpp"
#include "halfscope/number/remainder.hpp"
#include "halfscope/number/round.hpp"
#include "halfscope/number/scale_e8m0.hpp"
#include "halfscope/number/text.hpp"
