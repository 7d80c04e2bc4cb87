// SPDX-License-Identifier: Apache-2.0
// The values that a pickle's opcodes make: for torch_pickle.cpp.
#pragma once

#include "analyzers/readers/tensors/torch_pickle.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Makes values. Nothing here throws at what a pickle says: what is no tensor or container as
/// PyTorch describes them is opaque.
class TorchValues {
 public:
  TorchValues();

  ValueId plain() const { return 0; }
  ValueId integer(std::int64_t number);
  ValueId text(std::string_view text);
  ValueId tuple(const std::vector<ValueId>& items);
  ValueId container(ValueKind kind, std::vector<ValueId>&& items);
  ValueId global(std::string_view module, std::string_view name);
  /// callee(*arguments), of the names that stand for data.
  ValueId made_by(ValueId callee, ValueId arguments);
  /// An object of a class: opaque, unless it is a record.
  ValueId object_of(ValueId its_class);
  /// What torch.save leaves out of the pickle: storages.
  ValueId persistent(ValueId id);

  std::string_view text_of(ValueId id) const { return result.texts[result.values[id].index]; }
  void add(ValueId container, const std::vector<ValueId>& items);
  /// Those of a record are kept, a state that is a tuple under the name ""; of other objects, what
  /// they show of it.
  void set_attributes(ValueId object, ValueId attributes);

  PickleValues result;

 private:
  using Items = std::span<const ValueId>;

  template <class Table, class Entry>
  ValueId put(ValueKind kind, Table& table, Entry&& entry);
  ValueId opaque(std::string_view reason);
  ValueId made_by(const TorchGlobal& function, ValueId arguments);
  ValueId ordered_dict(Items arguments);
  ValueId tensor(Items arguments, TorchName function);
  ValueId from_type(Items arguments);
  bool is(ValueId id, ValueKind kind) const { return result.kind(id) == kind; }
  const TorchGlobal* global_at(ValueId id) const;
  bool are_extents(ValueId tuple) const;
  bool has_metadata(Items arguments, std::size_t at) const;
};

}  // namespace halfscope::analyzers::readers::tensors
