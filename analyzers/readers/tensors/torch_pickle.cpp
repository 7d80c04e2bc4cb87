// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/torch_pickle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "analyzers/readers/tensors/torch_values.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

/// A stack machine like Python's unpickler. Opcodes cannot pop values below the last mark.
class Machine {
 public:
  Machine(std::string_view pickle, const std::string& place, const std::string& advice)
      : pickle_(pickle), place_(place), advice_(advice) {}

  PickleValues run() {
    while (!done_) {
      opcode_at_ = at_;
      const auto code = static_cast<unsigned char>(take(1)[0]);
      const Opcode* const opcode = find(code);
      if (opcode == nullptr) {
        refuse(fmt::format("opcode 0x{:02X}{}, which no plain tensor needs", code, named(code)));
      }
      (this->*opcode->step)();
    }
    return std::move(values_.result);
  }

 private:
  using Step = void (Machine::*)();
  struct Opcode {
    unsigned char code;
    Step step;
  };

  static const Opcode* find(unsigned char code);
  static std::string_view named(unsigned char code);

  [[noreturn]] void refuse(std::string_view found) const {
    throw log::BadInput(
        fmt::format("{} holds {} at byte {} of {}, expected the pickle of a dictionary "
                    "of tensors; {}",
                    place_, found, opcode_at_, pickle_.size(), advice_));
  }

  // Operands.
  std::string_view take(std::uint64_t length) {
    if (length > pickle_.size() - at_) {
      refuse(at_ == pickle_.size()
                 ? "no opcode STOP, and ends"
                 : fmt::format("an opcode with {} bytes of data, more than follow", length));
    }
    const std::string_view bytes = pickle_.substr(at_, static_cast<std::size_t>(length));
    at_ += bytes.size();
    return bytes;
  }
  template <unsigned Width>
  std::uint64_t number() {
    const std::string_view bytes = take(Width);
    std::uint64_t value = 0;
    for (unsigned i = Width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }
  std::string_view line() {
    const std::size_t end = pickle_.find('\n', at_);
    if (end == std::string_view::npos) refuse("a name that does not end");
    const std::string_view text = take(end - at_);
    take(1);
    return text;
  }

  // The stack.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  void push(ValueId id) { stack_.push_back(id); }
  ValueId top() const {
    if (stack_.size() <= floor()) refuse("an opcode that needs more values than there are");
    return stack_.back();
  }
  ValueId pop() {
    const ValueId id = top();
    stack_.pop_back();
    return id;
  }
  /// Pops the last mark and returns the values above it.
  std::vector<ValueId> pop_mark() {
    if (marks_.empty()) refuse("an opcode that needs a mark, but there is none");
    std::vector<ValueId> items(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()),
                               stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }
  template <unsigned Count>
  std::vector<ValueId> pop_several() {
    std::vector<ValueId> items(Count);
    for (unsigned i = Count; i-- > 0;) items[i] = pop();
    return items;
  }

  // Opcodes.
  void proto() {
    const std::uint64_t version = number<1>();
    if (version < 2 || version > 5) refuse(fmt::format("protocol {}, and not 2 to 5,", version));
  }
  void frame() { take(8); }
  void stop() {
    values_.result.root = pop();
    if (!marks_.empty()) refuse("opcode STOP inside a container");
    done_ = true;
  }
  void mark() { marks_.push_back(stack_.size()); }
  void drop() {
    if (!marks_.empty() && marks_.back() == stack_.size()) {
      marks_.pop_back();
    } else {
      pop();
    }
  }
  void drop_to_mark() { pop_mark(); }
  void again() { push(top()); }
  void plain() { push(values_.plain()); }
  void int1() { push(values_.integer(static_cast<std::int64_t>(number<1>()))); }
  void int2() { push(values_.integer(static_cast<std::int64_t>(number<2>()))); }
  void int4() { push(values_.integer(static_cast<std::int32_t>(number<4>()))); }
  void long1() { push_long(number<1>()); }
  void long4() { push_long(number<4>()); }
  /// Pushes a two's complement integer, lowest byte first; plain if longer than 64 bits.
  void push_long(std::uint64_t length) {
    const std::string_view bytes = take(length);
    if (bytes.size() > 8) return plain();
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;) {
      value = value << 8 | static_cast<unsigned char>(bytes[i]);
    }
    const auto unused = 64 - 8 * static_cast<unsigned>(bytes.size());
    if (unused < 64)
      value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << unused) >> unused);
    push(values_.integer(static_cast<std::int64_t>(value)));
  }
  void real() {
    take(8);
    plain();
  }
  template <unsigned Width>
  void text() {
    push(values_.text(take(number<Width>())));
  }
  template <unsigned Width>
  void bytes() {
    take(number<Width>());
    plain();
  }
  void empty_list() { push(values_.container(ValueKind::list, {})); }
  void list() { push(values_.container(ValueKind::list, pop_mark())); }
  void empty_dict() { push(values_.container(ValueKind::dict, {})); }
  void dict() {
    const std::vector<ValueId> items = pop_mark();
    empty_dict();
    add(items, ValueKind::dict);
  }
  void empty_tuple() { push(values_.tuple({})); }
  void tuple() { push(values_.tuple(pop_mark())); }
  template <unsigned Count>
  void short_tuple() {
    push(values_.tuple(pop_several<Count>()));
  }
  void append() { add(pop_several<1>(), ValueKind::list); }
  void appends() { add(pop_mark(), ValueKind::list); }
  void set_item() { add(pop_several<2>(), ValueKind::dict); }
  void set_items() { add(pop_mark(), ValueKind::dict); }
  /// Adds items to the container on top of the stack. An opaque object ignores them.
  void add(const std::vector<ValueId>& items, ValueKind kind) {
    const ValueId to = top();
    const ValueKind found = values_.result.kind(to);
    if (found == ValueKind::opaque) return;
    if (found != kind)
      refuse("an opcode that adds to something that is not a container of its kind");
    if (kind == ValueKind::dict && items.size() % 2 != 0)
      refuse("a dictionary's key without value");
    values_.add(to, items);
  }
  void add_to_set() {
    pop_mark();
    top();
  }
  void frozen_set() {
    pop_mark();
    plain();
  }
  /// Stores the top of the stack in the memo, whose indices real picklers assign consecutively.
  void keep(std::uint64_t index) {
    if (index >= pickle_.size()) refuse(fmt::format("memo index {}, beyond its length,", index));
    if (index >= memo_.size()) memo_.resize(static_cast<std::size_t>(index) + 1, kNone);
    kept_ += memo_[static_cast<std::size_t>(index)] == kNone ? 1 : 0;
    memo_[static_cast<std::size_t>(index)] = top();
  }
  void put1() { keep(number<1>()); }
  void put4() { keep(number<4>()); }
  void memoize() { keep(kept_); }
  void get(std::uint64_t index) {
    if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == kNone) {
      refuse(fmt::format("memo index {}, under which nothing was kept,", index));
    }
    push(memo_[static_cast<std::size_t>(index)]);
  }
  void get1() { get(number<1>()); }
  void get4() { get(number<4>()); }
  void global() {
    const std::string_view module = line();
    push(values_.global(module, line()));
  }
  void stack_global() {
    const std::vector<ValueId> names = pop_several<2>();
    const auto is_text = [&](ValueId id) { return values_.result.kind(id) == ValueKind::text; };
    if (!is_text(names[0]) || !is_text(names[1])) refuse("a name that is not text");
    push(values_.global(values_.text_of(names[0]), values_.text_of(names[1])));
  }
  void reduce() {
    const std::vector<ValueId> call = pop_several<2>();
    push(values_.made_by(call[0], call[1]));
  }
  template <unsigned Count>
  void new_object() {
    push(values_.object_of(pop_several<Count>().front()));
  }
  void build() {  // sets attributes, such as a state_dict's _metadata; they hold no tensors to read
    const ValueId attributes = pop();
    values_.set_attributes(top(), attributes);
  }
  void persistent() { push(values_.persistent(pop())); }

  static constexpr ValueId kNone = ~ValueId{0};

  std::string_view pickle_;
  const std::string& place_;
  const std::string& advice_;
  std::size_t at_ = 0, opcode_at_ = 0;
  bool done_ = false;
  TorchValues values_;
  std::vector<ValueId> stack_, memo_;
  std::uint64_t kept_ = 0;
  std::vector<std::size_t> marks_;

  static const Opcode kOpcodes[];
};

const Machine::Opcode Machine::kOpcodes[] = {
    {0x80, &Machine::proto},
    {0x95, &Machine::frame},
    {'.', &Machine::stop},
    {'(', &Machine::mark},
    {'0', &Machine::drop},
    {'1', &Machine::drop_to_mark},
    {'2', &Machine::again},
    {'N', &Machine::plain},
    {0x88, &Machine::plain},
    {0x89, &Machine::plain},
    {'K', &Machine::int1},
    {'M', &Machine::int2},
    {'J', &Machine::int4},
    {0x8A, &Machine::long1},
    {0x8B, &Machine::long4},
    {'G', &Machine::real},
    {0x8C, &Machine::text<1>},
    {'X', &Machine::text<4>},
    {0x8D, &Machine::text<8>},
    {'U', &Machine::text<1>},
    {'T', &Machine::text<4>},
    {'C', &Machine::bytes<1>},
    {'B', &Machine::bytes<4>},
    {0x8E, &Machine::bytes<8>},
    {0x96, &Machine::bytes<8>},
    {']', &Machine::empty_list},
    {'l', &Machine::list},
    {'a', &Machine::append},
    {'e', &Machine::appends},
    {'}', &Machine::empty_dict},
    {'d', &Machine::dict},
    {'s', &Machine::set_item},
    {'u', &Machine::set_items},
    {')', &Machine::empty_tuple},
    {'t', &Machine::tuple},
    {0x85, &Machine::short_tuple<1>},
    {0x86, &Machine::short_tuple<2>},
    {0x87, &Machine::short_tuple<3>},
    {0x8F, &Machine::plain},
    {0x90, &Machine::add_to_set},
    {0x91, &Machine::frozen_set},
    {'q', &Machine::put1},
    {'r', &Machine::put4},
    {0x94, &Machine::memoize},
    {'h', &Machine::get1},
    {'j', &Machine::get4},
    {'c', &Machine::global},
    {0x93, &Machine::stack_global},
    {'R', &Machine::reduce},
    {0x81, &Machine::new_object<2>},
    {0x92, &Machine::new_object<3>},
    {'b', &Machine::build},
    {'Q', &Machine::persistent},
};

const Machine::Opcode* Machine::find(unsigned char code) {
  static const auto kByCode = [] {
    std::array<const Opcode*, 256> by_code{};
    for (const Opcode& opcode : kOpcodes) by_code[opcode.code] = &opcode;
    return by_code;
  }();
  return kByCode[code];
}

/// Returns the name of an opcode that hostile or old pickles often hold, else "".
std::string_view Machine::named(unsigned char code) {
  switch (code) {
    case 'i': return " (INST)";
    case 'o': return " (OBJ)";
    case 0x82: return " (EXT1)";
    case 0x83: return " (EXT2)";
    case 0x84: return " (EXT4)";
    case 'P': return " (PERSID)";
    case 0x97: return " (NEXT_BUFFER)";
    case 0x98: return " (READONLY_BUFFER)";
    default: return "";
  }
}

}  // namespace

PickleValues read_torch_pickle(std::span<const std::byte> pickle, const std::string& place,
                               const std::string& advice) {
  if (pickle.size() > kLongestPickle) {
    throw log::BadInput(fmt::format("{} holds {} bytes, expected at most {}; {}", place,
                                    pickle.size(), kLongestPickle, advice));
  }
  return Machine({reinterpret_cast<const char*>(pickle.data()), pickle.size()}, place, advice)
      .run();
}

}  // namespace halfscope::analyzers::readers::tensors
