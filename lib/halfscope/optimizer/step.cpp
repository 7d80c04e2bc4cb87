// SPDX-License-Identifier: Apache-2.0
#include "halfscope/optimizer/step.hpp"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "halfscope/array/array.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/optimizer/numbers.hpp"
#include "halfscope/optimizer/step_block.hpp"

namespace halfscope::optimizer {

namespace {

constexpr Operand kTensors[] = {Operand::weight, Operand::gradient, Operand::first, Operand::second,
                                Operand::largest};

const TensorView& view_of(const Views& views, Operand operand) {
  switch (operand) {
    case Operand::gradient: return views.gradient;
    case Operand::first: return views.first;
    case Operand::second: return views.second;
    case Operand::largest: return views.largest;
    default: return views.weight;
  }
}

bool is_moment(Operand operand) {
  return operand == Operand::first || operand == Operand::second || operand == Operand::largest;
}

/// Returns true if an instruction belongs to the step.
bool applies(const Instruction& of, const Settings& s, const StepOptions& o) {
  if (o.moments_are_new && is_moment(of.to)) return false;
  const bool has_buffer = s.momentum != 0, decays = s.weight_decay != 0;
  switch (of.when) {
    case When::always: return true;
    case When::scaled: return o.scale != 1;
    case When::maximizes: return s.maximize;
    case When::decays_gradient: return decays && s.algorithm != Algorithm::adamw;
    case When::decays_weight: return decays && s.algorithm == Algorithm::adamw;
    case When::lerp_small: return 1 - s.beta1 < 0.5;
    case When::lerp_large: return 1 - s.beta1 >= 0.5;
    case When::amsgrad: return s.amsgrad;
    case When::not_amsgrad: return !s.amsgrad;
    case When::first_buffer: return has_buffer && o.first;
    case When::next_buffer: return has_buffer && !o.first;
    case When::nesterov: return has_buffer && s.nesterov;
    case When::plain_buffer: return has_buffer && !s.nesterov;
  }
  return false;
}

std::size_t index(Operand operand) { return static_cast<std::size_t>(operand); }

/// Returns the twin of a number; values have none.
Operand narrow(Operand operand) {
  const std::size_t at = index(operand);
  return at < kValues ? operand : static_cast<Operand>(at + kNumbersEnd);
}

bool reads(const Instruction& of, Operand operand) {
  const bool unary = of.operation == Operation::copy || of.operation == Operation::root;
  const bool ternary = of.operation == Operation::fma || of.operation == Operation::minus_fma;
  return of.a == operand || (!unary && of.b == operand) || (ternary && of.c == operand);
}

using Set = std::bitset<kOperands>;

/// Removes instructions whose results are not used. Returns the operands that the rest reads.
Set drop_unused(std::vector<Instruction>& program) {
  Set used;
  for (const Operand operand : kTensors) used.set(index(operand), operand != Operand::gradient);
  Set read;
  for (std::size_t i = program.size(); i-- > 0;) {
    const Instruction of = program[i];
    if (!used.test(index(of.to))) {
      program.erase(program.begin() + static_cast<std::ptrdiff_t>(i));
      continue;
    }
    used.reset(index(of.to));
    read.reset(index(of.to));
    for (int operand = 0; operand < kOperands; ++operand) {
      if (reads(of, static_cast<Operand>(operand))) used.set(operand), read.set(operand);
    }
  }
  return read;
}

std::size_t bytes_of(Dtype dtype) { return static_cast<std::size_t>(format_of(dtype).width / 8); }

double rounded_to(Dtype dtype, double number) {
  const Format format = format_of(dtype);
  return to_double(format, from_double(format, number).bits);
}

template <typename T>
void load(const TensorView& view, std::size_t first, std::size_t n, T* to) {
  const Format format = format_of(view.dtype);
  const auto width = static_cast<std::size_t>(format.width / 8);
  const std::byte* const from = view.data + first * width;
  if (width == sizeof(T)) {
    std::memcpy(to, from, n * width);
    return;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (width == sizeof(std::uint16_t)) {
      std::array<std::uint16_t, kStepBlock> bits;
      std::memcpy(bits.data(), from, n * width);
      convert(format, std::span(bits).first(n), std::span(to, n), {.threads = 1});
      return;
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, from + i * width, width);
    to[i] = view.dtype == Dtype::f32
                ? static_cast<T>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                : static_cast<T>(to_double(format, bits));
  }
}

/// Moves a square root by one ulp, away from zero or toward it. 0, infinity and NaN are exact.
template <typename T>
T next(T root, bool up) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  if (root == 0 || !std::isfinite(root)) return root;
  const auto bits = std::bit_cast<Bits>(root);
  return std::bit_cast<T>(up ? bits + 1 : bits - 1);
}

/// Rounds to bfloat16, toward zero or away from it.
float cut(float value, bool away) {
  if (!std::isfinite(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t kept = bits & 0xFFFF0000u;
  return std::bit_cast<float>(away && kept != bits ? kept + 0x10000u : kept);
}

/// Runs a program over blocks of one parameter, in the arithmetic of Compute.
template <typename Stored, typename Compute>
class Runner {
 public:
  using Instructions = std::span<const Instruction>;

  Runner(const Variant& variant, const StepOptions& options, Instructions program,
         const Numbers& numbers, bool fma)
      : variant_(variant), options_(options), program_(program), fma_(fma) {
    for (int i = kValues; i < kOperands; ++i) {
      std::ranges::fill(block_->values[i],
                        static_cast<Compute>(numbers[static_cast<std::size_t>(i)]));
    }
  }

  /// Computes the results of n elements from `start` on; they are valid until the next call.
  Results<Stored> run(const Views& views, std::size_t start, std::size_t n) {
    for (const Operand operand : kTensors) {
      const TensorView& view = view_of(views, operand);
      if (view.data != nullptr) load(view, start, n, block_->of(operand));
    }
    for (const Instruction& of : program_) {
      if (of.operation == Operation::root) {
        root(of);
      } else {
        compute(of, fma_, *block_);
      }
      round(of);
    }
    if (variant_.stores_once) {
      for (const Operand operand : kTensors) store(operand);
    }
    return {start,
            n,
            stored(Operand::weight),
            stored(Operand::first),
            stored(Operand::second),
            stored(Operand::largest)};
  }

 private:
  static constexpr bool kSame = std::is_same_v<Stored, Compute>;

  void round(const Instruction& of) {
    if (of.rounded == Rounded::no) return;
    if constexpr (!kSame) {
      for (Compute& value : block_->values[index(of.to)]) value = static_cast<Stored>(value);
    }
    if (of.rounded == Rounded::stored) store(of.to);
  }

  /// Computes square roots: where they are a library's, by the caller's function or their bounds.
  void root(const Instruction& of) {
    const bool by_library = variant_.accuracy == Accuracy::root && bytes_of(options_.dtype) >= 4;
    const std::span<Compute> values(block_->of(of.to), kStepBlock);
    if constexpr (std::is_same_v<Compute, float>) {
      if (by_library && options_.root) {
        std::ranges::copy_n(block_->of(of.a), kStepBlock, values.begin());
        options_.root(values);
        return;
      }
    }
    compute(of, fma_, *block_);
    if (!by_library || options_.bound == Bound::nearest) return;
    for (Compute& value : values) value = next(value, options_.bound == Bound::shortest);
  }

  /// Rounds a value to the dtype of the parameters.
  void store(Operand operand) {
    const std::span<Compute> values(block_->of(operand), kStepBlock);
    if (options_.dtype == Dtype::f32 || options_.dtype == Dtype::f64) return;
    if (operand == Operand::weight && options_.update_only) return;
    const bool random = variant_.accuracy == Accuracy::random && operand == Operand::weight;
    if constexpr (std::is_same_v<Compute, float>) {
      if (random && options_.bound != Bound::nearest) {
        for (float& value : values) value = cut(value, options_.bound == Bound::longest);
      } else {
        quantise(format_of(options_.dtype), values, {.threads = 1});
      }
    } else {  // a double becomes a 16-bit value by way of float
      for (Compute& value : values) {
        value = rounded_to(options_.dtype, static_cast<Stored>(value));
      }
    }
  }

  const Stored* stored(Operand operand) {
    if constexpr (kSame) {
      return block_->of(operand);
    } else {
      Stored* const to = results_->of(operand);
      std::ranges::copy(block_->values[index(operand)], to);
      return to;
    }
  }

  const Variant& variant_;
  const StepOptions& options_;
  Instructions program_;
  bool fma_;
  std::unique_ptr<StepBlock<Compute>> block_ = std::make_unique<StepBlock<Compute>>();
  std::unique_ptr<StepBlock<Stored>> results_ = std::make_unique<StepBlock<Stored>>();
};

/// Changes a program so that its weight is the update u of w_next = round(w + u), not rounded to 16
/// bits: weight decay gives its change alone, else the weight is 0 when the change is added.
void make_update(std::vector<Instruction>& program, Numbers& numbers) {
  bool decays = false;
  std::size_t last = 0;
  for (std::size_t i = 0; i < program.size(); ++i) {
    Instruction& of = program[i];
    if (of.to != Operand::weight) continue;
    last = i;
    if (of.rounded == Rounded::stored) of.rounded = Rounded::no;
    if (of.when != When::decays_weight) continue;
    decays = true;
    if (of.operation == Operation::minus_fma) of.c = Operand::zero;
    if (of.operation == Operation::subtract) of.a = Operand::zero;
  }
  for (const Operand kept : {Operand::kept, narrow(Operand::kept)}) numbers[index(kept)] -= 1;
  if (decays) return;
  const Instruction clear = {When::always, Operand::weight, Operation::copy, Operand::zero};
  program.insert(program.begin() + static_cast<std::ptrdiff_t>(last), clear);
}

}  // namespace

template <typename T>
Step<T>::Step(const Variant& variant, const Settings& settings, const StepOptions& options)
    : variant_(variant), settings_(settings), options_(options) {
  const Processor& processor =
      options.processor != nullptr ? *options.processor : processors().front();
  const Listing& listing = settings.is_adam() ? variant.adam : variant.sgd;
  body_ = program(listing, false);
  if (variant.loop == Loop::device) return;
  fma_ = processor.fma;
  tail_ = program(listing, true);
  vector_elements_ = processor.vector_bytes / bytes_of(options.dtype);
  if (variant.loop == Loop::kernel) return;
  vector_elements_ = processor.iterates_vectors ? 2 * vector_elements_ : 0;
}

template <typename T>
bool Step<T>::narrows(Narrow numbers) const {
  if (numbers == Narrow::tensor) return true;
  if (variant_.stores_once || variant_.loop == Loop::device) return false;
  return numbers == Narrow::yes || (numbers == Narrow::foreach && variant_.foreach);
}

/// Appends an instruction of a row.
template <typename T>
void Step<T>::append(Instruction of, bool tail, std::vector<Instruction>& to) const {
  if (narrows(of.narrow)) {
    for (Operand* const operand : {&of.a, &of.b, &of.c}) *operand = narrow(*operand);
  }
  if (variant_.stores_once && of.rounded == Rounded::stored) of.rounded = Rounded::no;
  const bool in_vectors = !tail || (variant_.loop == Loop::iterator && !fma_);
  if (of.when == When::lerp_large && variant_.loop != Loop::device && in_vectors) {
    of = {of.when, of.to,     Operation::fma, of.a, Operand::minus_old1,
          of.c,    of.rounded};  // signs of 0
  }
  if (of.operation == Operation::contracted) {
    of.operation = Operation::fma;
    if (tail && bytes_of(options_.dtype) == 2 && !variant_.stores_once) {
      to.push_back({of.when, Operand::temporary, Operation::multiply, of.a, of.b, {}, of.rounded});
      of = {of.when, of.to, Operation::add, of.c, Operand::temporary, {}, of.rounded};
    }
  }
  to.push_back(of);
}

template <typename T>
auto Step<T>::program(const Listing& listing, bool tail) const -> Program {
  if (listing.body.empty()) {
    throw std::invalid_argument("Step: the row " + std::string(variant_.name) +
                                " lacks the optimizer's algorithm");
  }
  Program to = {{}, numbers_of(variant_, settings_, options_), listing.in_binary64, {}};
  for (int i = kValues; i < kNumbersEnd; ++i) {
    double& number = to.numbers[static_cast<std::size_t>(i)];
    if (!listing.in_binary64) number = static_cast<T>(number);
    to.numbers[index(narrow(static_cast<Operand>(i)))] = rounded_to(options_.dtype, number);
  }
  // lerp subtracts its weight as it meets the elements.
  to.numbers[index(Operand::old1)] = 1 - to.numbers[index(Operand::new1)];
  to.numbers[index(Operand::minus_old1)] = to.numbers[index(Operand::new1)] - 1;
  for (const Instruction& of : tail ? listing.tail : listing.body) {
    if (applies(of, settings_, options_)) append(of, tail, to.instructions);
  }
  if (options_.update_only) make_update(to.instructions, to.numbers);
  to.reads = drop_unused(to.instructions);
  return to;
}

template <typename T>
bool Step<T>::reads(Operand value) const {
  return body_.reads.test(index(value)) || tail_.reads.test(index(value));
}

template <typename T>
void Step<T>::run(const Views& views, std::size_t begin, std::size_t end,
                  const Visit& visit) const {
  for (const Operand operand : kTensors) {
    const TensorView& view = view_of(views, operand);
    if (view.count == views.count || (view.data == nullptr && !reads(operand))) continue;
    throw std::invalid_argument("Step: a tensor has " + std::to_string(view.count) +
                                " elements, expected " + std::to_string(views.count));
  }
  const std::size_t part = part_of_thread(views.count);
  for (std::size_t first = begin - begin % part; first < end; first += part) {
    const std::size_t last = std::min(first + part, views.count);
    const std::size_t tail = tail_.instructions.empty() ? 0
                             : vector_elements_ == 0    ? last - first
                                                        : (last - first) % vector_elements_;
    const auto within = [&](std::size_t at) { return std::clamp(at, begin, end); };
    run(body_, views, within(first), within(last - tail), visit);
    run(tail_, views, within(last - tail), within(last), visit);
  }
}

/// Returns the number of elements that each thread computes: ATen/Parallel.h and TensorIterator.
template <typename T>
std::size_t Step<T>::part_of_thread(std::size_t count) const {
  constexpr std::size_t kGrain = 32768;
  const std::size_t parts = variant_.loop != Loop::iterator ? 1 : (count + kGrain - 1) / kGrain;
  const std::size_t threads = std::clamp<std::size_t>(static_cast<std::size_t>(options_.threads), 1,
                                                      std::max<std::size_t>(parts, 1));
  return std::max<std::size_t>(1, (count + threads - 1) / threads);
}

template <typename T>
void Step<T>::run(const Program& program, const Views& views, std::size_t begin, std::size_t end,
                  const Visit& visit) const {
  const auto run_in = [&]<typename Compute>(Compute) {
    Runner<T, Compute> runner(variant_, options_, program.instructions, program.numbers, fma_);
    for (std::size_t start = begin; start < end; start += kStepBlock) {
      visit(runner.run(views, start, std::min(kStepBlock, end - start)));
    }
  };
  if (begin >= end) return;
  if (program.in_binary64) {
    run_in(double());
  } else {
    run_in(T());
  }
}

template class Step<float>;
template class Step<double>;

}  // namespace halfscope::optimizer
