// SPDX-License-Identifier: Apache-2.0
// Creates the values that a pickle's opcodes describe. Only torch_pickle.cpp uses it.
#pragma once

#include "analyzers/readers/tensors/torch_pickle.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Collects values and returns their ids. Never throws because of a pickle's content: objects that
/// are not tensors or containers in PyTorch's form become opaque.
class TorchValues {
 public:
  TorchValues();

  ValueId plain() const { return 0; }
  ValueId integer(std::int64_t number);
  ValueId text(std::string_view text);
  ValueId tuple(const std::vector<ValueId>& items);
  ValueId container(ValueKind kind, std::vector<ValueId>&& items);
  ValueId global(std::string_view module, std::string_view name);
  /// The result of callee(*arguments). Opaque if the callee is not known.
  ValueId made_by(ValueId callee, ValueId arguments);
  /// A new object of a class: a dict for a TorchName::record, else opaque.
  ValueId object_of(ValueId its_class);
  /// The object of a persistent id. torch.save uses such ids for storages; others become opaque.
  ValueId persistent(ValueId id);

  std::string_view text_of(ValueId id) const { return result.texts[result.values[id].index]; }
  /// Appends items to a list, or keys and values in turn to a dict.
  void add(ValueId container, const std::vector<ValueId>& items);
  /// Sets the attributes of an object. Only a record keeps them; a tuple becomes its field "". For
  /// other objects, only looks whether the attributes are those of a module's state_dict().
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
