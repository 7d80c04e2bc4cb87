// SPDX-License-Identifier: Apache-2.0
// Files of torch.save since PyTorch 1.6: ZIP archives of a pickle and the bytes of storages.
// Format: torch/serialization.py. No Python code runs (torch_pickle.hpp).
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analyzers/readers/tensors/element_order.hpp"
#include "analyzers/readers/tensors/open.hpp"
#include "analyzers/readers/tensors/torch_pickle.hpp"
#include "analyzers/readers/tensors/zip_archive.hpp"
#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::tensors {
namespace {

using log::BadInput;
using log::NamedTensor;

constexpr std::string_view kPickle = "data.pkl";

/// All tensors together may have kMostUses times the bytes of the file plus kSmall. Without this
/// limit, many views of one storage would make a small file take hours.
constexpr std::uint64_t kMostUses = 16;
constexpr std::uint64_t kSmall = std::uint64_t{1} << 26;

bool is_pickle(std::string_view member) {
  const std::size_t slash = member.find('/');
  return member.substr(slash == std::string_view::npos ? 0 : slash + 1) == kPickle;
}

std::string convert_advice(const std::filesystem::path& path, std::string_view load) {
  const std::string to = log::printable(std::filesystem::path(path).replace_extension("").string());
  return fmt::format(
      "if you trust the file, convert it in Python with safetensors.torch.save_file({}, "
      "\"{}.safetensors\")",
      fmt::format(fmt::runtime(load), log::printable(path.string())), to);
}
constexpr std::string_view kLoad = "torch.load(\"{}\", weights_only=True)";
constexpr std::string_view kLoadScript = "torch.jit.load(\"{}\").state_dict()";

constexpr int kDeepest = 200;

/// Finds and names the tensors in a pickle of torch.save. A name is the path to the tensor: keys of
/// dictionaries and indices in lists, joined by dots ("model.layer.weight", "params.0"); all names
/// differ. A tensor that is the whole content is named `alone`. Throws log::BadInput if values
/// repeat too often or containers nest too deep; the message begins with `place` and ends with
/// `advice`. Time and memory are proportional to `pickle_bytes`.
class Walk {
 public:
  Walk(const PickleValues& values, const std::string& alone, std::uint64_t pickle_bytes,
       const std::string& place, const std::string& advice)
      : values_(values),
        alone_(alone),
        left_(8 * pickle_bytes + (std::uint64_t{1} << 16)),
        place_(place),
        advice_(advice) {
    visit(values_.root, 0);
  }

  std::vector<std::pair<std::string, std::uint32_t>> tensors;  ///< name, index in PickleValues
  std::vector<log::SkippedTensor> skipped;  ///< objects that are not read, with the reason

 private:
  [[noreturn]] void refuse(std::string_view found) const {
    throw log::BadInput(
        fmt::format("{} holds {}, expected a dictionary of tensors; {}", place_, found, advice_));
  }

  /// Subtracts from the limit of work; throws log::BadInput if it is used up. A hostile pickle can
  /// hold one value in a thousand containers, each again in a thousand containers.
  void pay(std::uint64_t cost) {
    if (cost > left_) refuse("the same values again and again");
    left_ -= cost;
  }

  std::string name() const { return name_.empty() ? alone_ : name_; }

  void visit(ValueId id, int depth) {
    pay(1);
    const PickleValue& value = values_.values[id];
    switch (value.kind) {
      case ValueKind::tensor: return take(value.index);
      case ValueKind::storage: return skip("is a storage without a tensor's shape");
      case ValueKind::opaque: return skip(reason(values_.opaque[value.index]));
      case ValueKind::list:
      case ValueKind::tuple: return visit_list(id, depth + 1);
      case ValueKind::dict: return visit_dict(id, depth + 1);
      default: return;
    }
  }

  void visit_list(ValueId id, int depth) {
    std::uint64_t place = 0;
    for (const ValueId item : values_.items(id)) visit_inside(fmt::to_string(place++), item, depth);
  }

  void visit_dict(ValueId id, int depth) {
    const auto items = values_.items(id);
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
      const PickleValue& key = values_.values[items[i]];
      if (key.kind == ValueKind::text) {
        visit_inside(values_.texts[key.index], items[i + 1], depth);
      } else if (key.kind == ValueKind::integer) {
        visit_inside(fmt::to_string(key.number), items[i + 1], depth);
      } else if (values_.kind(items[i + 1]) != ValueKind::plain) {
        skip("has an item whose key is neither text nor a whole number");
      }
    }
  }

  void visit_inside(std::string_view key, ValueId id, int depth) {
    if (depth > kDeepest) refuse(fmt::format("containers in each other {} deep", depth));
    const ValueKind kind = values_.kind(id);
    if (kind == ValueKind::plain || kind == ValueKind::integer || kind == ValueKind::text) {
      return pay(1);
    }
    const std::size_t length = name_.size();
    pay(length + key.size());
    if (!name_.empty()) name_ += '.';
    name_ += key;
    visit(id, depth);
    name_.resize(length);
  }

  static std::string reason(const OpaqueObject& object) {
    if (object.module.empty()) return std::string(object.name);
    return fmt::format("is a Python object ({}.{}), which is not read",
                       log::printable(object.module.substr(0, 100)),
                       log::printable(object.name.substr(0, 100)));
  }

  void take(std::uint32_t tensor) {
    pay(values_.items(values_.tensors[tensor].shape).size());
    std::string named = name();
    if (names_.insert(named).second) {
      tensors.emplace_back(std::move(named), tensor);
    } else {
      skip("has the name of another tensor of the file");
    }
  }

  void skip(std::string why) { skipped.push_back({name(), std::move(why)}); }

  const PickleValues& values_;
  const std::string& alone_;
  std::uint64_t left_;
  const std::string& place_;
  const std::string& advice_;
  std::string name_;
  std::unordered_set<std::string> names_;
};

class TorchFile final : public log::TensorFile {
 public:
  TorchFile(const std::filesystem::path& path, std::unique_ptr<ZipArchive> archive)
      : archive_(std::move(archive)), advice_(convert_advice(path, kLoad)) {
    for (const ZipMember& member : archive_->members()) by_member_.emplace(member.name, &member);
    const ZipMember& pickle = only_pickle();
    root_ = pickle.name.substr(0, pickle.name.size() - kPickle.size());
    refuse_script(path);
    const std::string place = archive_->place(pickle);
    const log::FileBytes held = archive_->bytes(stored(pickle));
    const PickleValues values = read_torch_pickle(held.bytes, place, advice_);
    Walk state(values, path.stem().string(), held.bytes.size(), place, advice_);
    big_endian_ = is_big_endian();
    if (values.has_parameters) {
      shows_weights_ = "holds a module's state_dict(), or its parameters";
    } else if (std::ranges::find(values.texts, "param_groups") != values.texts.end()) {
      shows_weights_ = "holds an optimizer's 'param_groups'";
    }
    skipped_ = std::move(state.skipped);
    if (skipped_.empty()) tensor_bytes_ = 0;
    for (const auto& [name, tensor] : state.tensors) {
      add_tensor(values, values.tensors[tensor], name);
    }
    index_names();
  }

 private:
  struct Entry {
    std::vector<std::uint64_t> strides;
    ZipRange values = {};  ///< bytes from the first element to the last
  };

  log::FileBytes values(const NamedTensor& tensor, std::uint64_t place) const override {
    const Entry& entry = entries_[static_cast<std::size_t>(place)];
    if (tensor.view.count == 0) return {};
    return in_c_order(archive_->bytes(entry.values), tensor, entry.strides, big_endian_);
  }

  const ZipMember& only_pickle() const {
    const auto members = archive_->members();
    const auto is = [](const ZipMember& member) { return is_pickle(member.name); };
    const auto found = std::find_if(members.begin(), members.end(), is);
    const auto other = std::find_if(std::next(found), members.end(), is);
    if (other == members.end()) return *found;
    throw BadInput(fmt::format("{}: holds '{}' and '{}', expected one pickle of torch.save; {}",
                               archive_->file(), log::printable(found->name),
                               log::printable(other->name), advice_));
  }

  void refuse_script(const std::filesystem::path& path) const {
    const std::string code = root_ + "code/";
    const auto members = archive_->members();
    const bool script = by_member_.contains(root_ + "constants.pkl") ||
                        std::any_of(members.begin(), members.end(), [&](const ZipMember& member) {
                          return member.name.starts_with(code);
                        });
    if (!script) return;
    throw BadInput(fmt::format("{}: is a program of TorchScript, expected tensors; {}",
                               archive_->file(), convert_advice(path, kLoadScript)));
  }

  /// Returns the range of a member. Does not check its checksum: torch.save may omit checksums.
  ZipRange stored(const ZipMember& member) const {
    if (member.stored) return archive_->stored(member);
    throw BadInput(fmt::format("{} is packed, expected it stored, as torch.save writes it; {}",
                               archive_->place(member), advice_));
  }

  bool is_big_endian() const {
    const auto found = by_member_.find(root_ + "byteorder");
    if (found == by_member_.end()) return false;
    const log::FileBytes held = archive_->bytes(stored(*found->second));
    const std::string_view order(reinterpret_cast<const char*>(held.bytes.data()),
                                 held.bytes.size());
    if (order == "little" || order == "big") return order == "big";
    throw BadInput(
        fmt::format("{} says '{}', expected little or big; the file is damaged, write it "
                    "again",
                    archive_->place(*found->second), log::printable(order.substr(0, 16))));
  }

  void add_tensor(const PickleValues& values, const TorchTensor& tensor, const std::string& name) {
    const auto numbers = [&](ValueId tuple) {
      std::vector<std::uint64_t> all;
      for (const ValueId id : values.items(tuple)) {
        all.push_back(static_cast<std::uint64_t>(values.values[id].number));
      }
      return all;
    };
    const TorchType& type = *tensor.type;
    const std::vector<std::uint64_t> shape = numbers(tensor.shape);
    if (tensor_bytes_) *tensor_bytes_ += log::element_count(shape).value_or(0) * type.width;
    if (!type.counted) {
      skipped_.push_back({name, fmt::format("dtype {} {}", type.dtype, type.skip)});
      return;
    }
    Entry entry{numbers(tensor.strides)};
    const std::uint64_t count =
        place_in_storage(values.storages[tensor.storage], tensor, name, shape, entry);
    if (is_too_large(count, type.width)) {
      skipped_.push_back(
          {name, fmt::format("is {} elements of a file that holds fewer (an expanded "
                             "view); save the tensor that it was expanded from",
                             count)});
      return;
    }
    add(name, shape, *type.counted, entries_.size());
    entries_.push_back(std::move(entry));
  }

  /// Sets the range of the tensor's values, and returns their number. Throws log::BadInput if it
  /// exceeds the storage.
  std::uint64_t place_in_storage(const TorchStorage& storage, const TorchTensor& tensor,
                                 const std::string& name, const std::vector<std::uint64_t>& shape,
                                 Entry& entry) {
    const ZipRange bytes = bytes_of(storage, name);
    const std::uint64_t width = tensor.type->width, held = bytes.size / width;
    const auto count = log::element_count(shape);
    std::uint64_t last = tensor.offset;
    bool fits = count.has_value();
    for (std::size_t i = 0; fits && *count > 0 && i < shape.size(); ++i) {
      std::uint64_t more = 0;
      fits = !__builtin_mul_overflow(shape[i] - 1, entry.strides[i], &more) &&
             !__builtin_add_overflow(last, more, &last);
    }
    if (!fits || (*count > 0 && last >= held)) {
      throw BadInput(fmt::format(
          "{} of shape {} leaves its storage '{}', which holds {} elements; the file is damaged, "
          "write it again",
          log::place_text(archive_->file(), name), log::shape_text(shape),
          log::printable(storage.key.substr(0, 64)), held));
    }
    if (*count > 0) {
      entry.values = {bytes.begin + tensor.offset * width, (last + 1 - tensor.offset) * width};
    }
    return *count;
  }

  ZipRange bytes_of(const TorchStorage& storage, const std::string& tensor) {
    const auto member = by_member_.find(root_ + "data/" + std::string(storage.key));
    if (member == by_member_.end()) {
      throw BadInput(fmt::format(
          "{} has its values in storage '{}', which the file lacks; it is damaged, write it again",
          log::place_text(archive_->file(), tensor), log::printable(storage.key.substr(0, 64))));
    }
    const auto [bytes, is_new] = storages_.try_emplace(member->second);
    if (is_new) bytes->second = stored(*member->second);
    return bytes->second;
  }

  /// Returns true if a view has more elements than the file can hold: it repeats elements. Throws
  /// log::BadInput if all tensors together repeat them too often (kMostUses).
  bool is_too_large(std::uint64_t count, unsigned width) {
    const std::uint64_t room = archive_->file_bytes() + kSmall;
    if (count > room / width) return true;
    used_ += count * width;
    if (used_ <= kMostUses * room) return false;
    throw BadInput(fmt::format(
        "{}: its tensors are views of the same values again and again, {} bytes and more in a file "
        "of {}; {}",
        archive_->file(), used_, archive_->file_bytes(), advice_));
  }

  std::unique_ptr<ZipArchive> archive_;
  std::string advice_;
  std::string root_;  ///< common beginning of the members' names: "archive/"
  bool big_endian_ = false;
  std::unordered_map<std::string_view, const ZipMember*> by_member_;
  std::unordered_map<const ZipMember*, ZipRange> storages_;
  std::vector<Entry> entries_;
  std::uint64_t used_ = 0;  ///< bytes of all readable tensors
};

}  // namespace

bool is_torch_archive(const ZipArchive& archive) {
  const auto members = archive.members();
  const auto has = [&](auto is) { return std::any_of(members.begin(), members.end(), is); };
  return has([](const ZipMember& member) { return is_pickle(member.name); }) &&
         !has([](const ZipMember& member) { return member.name.ends_with(".npy"); });
}

std::unique_ptr<log::TensorFile> open_torch(const std::filesystem::path& path,
                                            std::unique_ptr<ZipArchive> archive) {
  return std::make_unique<TorchFile>(path, std::move(archive));
}

std::unique_ptr<log::TensorFile> refuse_old_torch(const log::OpenPath& path, std::optional<Dtype>) {
  throw BadInput(
      fmt::format("{}: is a file of torch.save from before PyTorch 1.6, which is not read; "
                  "expected one of a later "
                  "PyTorch, safetensors, NPY or NPZ; {}",
                  log::printable(path.path.string()), convert_advice(path.path, kLoad)));
}

}  // namespace halfscope::analyzers::readers::tensors
