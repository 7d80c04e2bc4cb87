// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/torch_pickle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ranges>
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
      opcode->step(*this);
    }
    return std::move(values_.result);
  }

 private:
  struct Opcode {
    unsigned char code;
    void (*step)(Machine&);
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
  std::vector<ValueId> pop_several(std::size_t count) {
    std::vector<ValueId> items(count);
    for (ValueId& item : std::views::reverse(items)) item = pop();
    return items;
  }

  // Opcodes that kOpcodes does not spell out.
  void proto() {
    const std::uint64_t version = number<1>();
    if (version < 2 || version > 5) refuse(fmt::format("protocol {}, and not 2 to 5,", version));
  }
  void stop() {
    values_.result.root = pop();
    if (!marks_.empty()) refuse("opcode STOP inside a container");
    done_ = true;
  }
  void drop() {
    if (!marks_.empty() && marks_.back() == stack_.size()) {
      marks_.pop_back();
    } else {
      pop();
    }
  }
  void plain() { push(values_.plain()); }
  void integer(std::int64_t number) { push(values_.integer(number)); }
  void text(std::uint64_t length) { push(values_.text(take(length))); }
  void bytes(std::uint64_t length) {
    take(length);
    plain();
  }
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
    integer(static_cast<std::int64_t>(value));
  }
  void empty_dict() { push(values_.container(ValueKind::dict, {})); }
  void dict() {
    const std::vector<ValueId> items = pop_mark();
    empty_dict();
    add(items, ValueKind::dict);
  }
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
  /// Stores the top of the stack in the memo, whose indices real picklers assign consecutively.
  void keep(std::uint64_t index) {
    if (index >= pickle_.size()) refuse(fmt::format("memo index {}, beyond its length,", index));
    if (index >= memo_.size()) memo_.resize(static_cast<std::size_t>(index) + 1, kNone);
    kept_ += memo_[static_cast<std::size_t>(index)] == kNone ? 1 : 0;
    memo_[static_cast<std::size_t>(index)] = top();
  }
  void get(std::uint64_t index) {
    if (index >= memo_.size() || memo_[static_cast<std::size_t>(index)] == kNone) {
      refuse(fmt::format("memo index {}, under which nothing was kept,", index));
    }
    push(memo_[static_cast<std::size_t>(index)]);
  }
  void global(std::string_view module) { push(values_.global(module, line())); }
  void reduce(const std::vector<ValueId>& call) { push(values_.made_by(call[0], call[1])); }
  void stack_global() {
    const std::vector<ValueId> names = pop_several(2);
    const auto is_text = [&](ValueId id) { return values_.result.kind(id) == ValueKind::text; };
    if (!is_text(names[0]) || !is_text(names[1])) refuse("a name that is not text");
    push(values_.global(values_.text_of(names[0]), values_.text_of(names[1])));
  }
  void build() {  // sets attributes, such as a state_dict's _metadata; they hold no tensors to read
    const ValueId attributes = pop();
    values_.set_attributes(top(), attributes);
  }

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
    {0x80, [](Machine& m) { m.proto(); }},
    {0x95, [](Machine& m) { m.take(8); }},
    {'.', [](Machine& m) { m.stop(); }},
    {'(', [](Machine& m) { m.marks_.push_back(m.stack_.size()); }},
    {'0', [](Machine& m) { m.drop(); }},
    {'1', [](Machine& m) { m.pop_mark(); }},
    {'2', [](Machine& m) { m.push(m.top()); }},
    {'N', [](Machine& m) { m.plain(); }},
    {0x88, [](Machine& m) { m.plain(); }},
    {0x89, [](Machine& m) { m.plain(); }},
    {'K', [](Machine& m) { m.integer(static_cast<std::int64_t>(m.number<1>())); }},
    {'M', [](Machine& m) { m.integer(static_cast<std::int64_t>(m.number<2>())); }},
    {'J', [](Machine& m) { m.integer(static_cast<std::int32_t>(m.number<4>())); }},
    {0x8A, [](Machine& m) { m.push_long(m.number<1>()); }},
    {0x8B, [](Machine& m) { m.push_long(m.number<4>()); }},
    {'G', [](Machine& m) { m.take(8), m.plain(); }},
    {0x8C, [](Machine& m) { m.text(m.number<1>()); }},
    {'X', [](Machine& m) { m.text(m.number<4>()); }},
    {0x8D, [](Machine& m) { m.text(m.number<8>()); }},
    {'U', [](Machine& m) { m.text(m.number<1>()); }},
    {'T', [](Machine& m) { m.text(m.number<4>()); }},
    {'C', [](Machine& m) { m.bytes(m.number<1>()); }},
    {'B', [](Machine& m) { m.bytes(m.number<4>()); }},
    {0x8E, [](Machine& m) { m.bytes(m.number<8>()); }},
    {0x96, [](Machine& m) { m.bytes(m.number<8>()); }},
    {']', [](Machine& m) { m.push(m.values_.container(ValueKind::list, {})); }},
    {'l', [](Machine& m) { m.push(m.values_.container(ValueKind::list, m.pop_mark())); }},
    {'a', [](Machine& m) { m.add(m.pop_several(1), ValueKind::list); }},
    {'e', [](Machine& m) { m.add(m.pop_mark(), ValueKind::list); }},
    {'}', [](Machine& m) { m.empty_dict(); }},
    {'d', [](Machine& m) { m.dict(); }},
    {'s', [](Machine& m) { m.add(m.pop_several(2), ValueKind::dict); }},
    {'u', [](Machine& m) { m.add(m.pop_mark(), ValueKind::dict); }},
    {')', [](Machine& m) { m.push(m.values_.tuple({})); }},
    {'t', [](Machine& m) { m.push(m.values_.tuple(m.pop_mark())); }},
    {0x85, [](Machine& m) { m.push(m.values_.tuple(m.pop_several(1))); }},
    {0x86, [](Machine& m) { m.push(m.values_.tuple(m.pop_several(2))); }},
    {0x87, [](Machine& m) { m.push(m.values_.tuple(m.pop_several(3))); }},
    {0x8F, [](Machine& m) { m.plain(); }},
    {0x90, [](Machine& m) { m.pop_mark(), m.top(); }},
    {0x91, [](Machine& m) { m.pop_mark(), m.plain(); }},
    {'q', [](Machine& m) { m.keep(m.number<1>()); }},
    {'r', [](Machine& m) { m.keep(m.number<4>()); }},
    {0x94, [](Machine& m) { m.keep(m.kept_); }},
    {'h', [](Machine& m) { m.get(m.number<1>()); }},
    {'j', [](Machine& m) { m.get(m.number<4>()); }},
    {'c', [](Machine& m) { m.global(m.line()); }},
    {0x93, [](Machine& m) { m.stack_global(); }},
    {'R', [](Machine& m) { m.reduce(m.pop_several(2)); }},
    {0x81, [](Machine& m) { m.push(m.values_.object_of(m.pop_several(2).front())); }},
    {0x92, [](Machine& m) { m.push(m.values_.object_of(m.pop_several(3).front())); }},
    {'b', [](Machine& m) { m.build(); }},
    {'Q', [](Machine& m) { m.push(m.values_.persistent(m.pop())); }},
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
