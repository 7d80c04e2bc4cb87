// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/torch_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzers/readers/tensors/element_order.hpp"
#include "analyzers/readers/tensors/listed_file.hpp"
#include "analyzers/readers/tensors/torch_state.hpp"
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

struct Entry {
  std::string name;
  Dtype dtype = Dtype::f32;
  std::vector<std::uint64_t> shape, strides;
  std::uint64_t count = 0;
  ZipRange values = {};  ///< bytes from the first element to the last
};

class TorchFile final : public ListedFile<Entry> {
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
    TorchState state = torch_state(values, path.stem().string(), held.bytes.size(), place, advice_);
    big_endian_ = is_big_endian();
    has_parameters_ = values.has_parameters;
    has_groups_ = std::ranges::find(values.texts, "param_groups") != values.texts.end();
    skipped_ = std::move(state.skipped);
    if (skipped_.empty()) all_bytes_ = 0;
    for (NamedTorchTensor& named : state.tensors) {
      add(values, values.tensors[named.tensor], std::move(named.name));
    }
    index_names();
  }

  std::optional<std::uint64_t> tensor_bytes() const override { return all_bytes_; }
  std::string shows_weights() const override {
    if (has_parameters_) return "holds a module's state_dict(), or its parameters";
    return has_groups_ ? "holds an optimizer's 'param_groups'" : "";
  }

 private:
  /// A tensor, and the owner of its values: `bytes`, or `copied` if they had to be rearranged.
  struct Held {
    log::FileBytes bytes;
    std::vector<std::byte> copied;
    NamedTensor tensor;
  };

  NamedTensor outline_of(const Entry& entry) const override {
    const TensorView view{entry.dtype, nullptr, static_cast<std::size_t>(entry.count)};
    return {entry.name, entry.shape, view};
  }

  std::shared_ptr<const NamedTensor> load(const Entry& entry) const override {
    const auto width = static_cast<std::size_t>(format_of(entry.dtype).width / 8);
    const ElementOrder order{entry.shape, entry.strides, width, big_endian_};
    auto held = std::make_shared<Held>();
    if (entry.count > 0) held->bytes = archive_->bytes(entry.values);
    const std::byte* data = held->bytes.bytes.data();
    if (entry.count > 0 && (big_endian_ || !is_contiguous(order))) {
      held->copied = gathered(order, data);
      held->bytes = {};
      data = held->copied.data();
    }
    held->tensor = outline_of(entry);
    held->tensor.view.data = data;
    return {held, &held->tensor};
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

  void add(const PickleValues& values, const TorchTensor& tensor, std::string&& name) {
    const auto numbers = [&](ValueId tuple) {
      std::vector<std::uint64_t> all;
      for (const ValueId id : values.items(tuple)) {
        all.push_back(static_cast<std::uint64_t>(values.values[id].number));
      }
      return all;
    };
    Entry entry;
    entry.shape = numbers(tensor.shape);
    if (all_bytes_) *all_bytes_ += log::element_count(entry.shape).value_or(0) * tensor.type->width;
    if (!tensor.type->counted) {
      skipped_.push_back(
          {std::move(name), fmt::format("dtype {} {}", tensor.type->dtype, tensor.type->skip)});
      return;
    }
    entry.name = std::move(name);
    entry.dtype = *tensor.type->counted;
    entry.strides = numbers(tensor.strides);
    place_in_storage(values.storages[tensor.storage], tensor, entry);
    if (is_too_large(entry, tensor.type->width)) {
      skipped_.push_back({std::move(entry.name),
                          fmt::format("is {} elements of a file that holds fewer (an expanded "
                                      "view); save the tensor that it was expanded from",
                                      entry.count)});
      return;
    }
    tensors_.push_back(std::move(entry));
  }

  /// Sets the range of the tensor's values. Throws log::BadInput if it exceeds the storage.
  void place_in_storage(const TorchStorage& storage, const TorchTensor& tensor, Entry& entry) {
    const ZipRange bytes = bytes_of(storage, entry.name);
    const std::uint64_t width = tensor.type->width, held = bytes.size / width;
    const auto count = log::element_count(entry.shape);
    std::uint64_t last = tensor.offset;
    bool fits = count.has_value();
    for (std::size_t i = 0; fits && *count > 0 && i < entry.shape.size(); ++i) {
      std::uint64_t more = 0;
      fits = !__builtin_mul_overflow(entry.shape[i] - 1, entry.strides[i], &more) &&
             !__builtin_add_overflow(last, more, &last);
    }
    if (!fits || (*count > 0 && last >= held)) {
      throw BadInput(fmt::format(
          "{} of shape {} leaves its storage '{}', which holds {} elements; the file is damaged, "
          "write it again",
          log::place_text(archive_->file(), entry.name), log::shape_text(entry.shape),
          log::printable(storage.key.substr(0, 64)), held));
    }
    entry.count = *count;
    if (*count == 0) return;
    entry.values = {bytes.begin + tensor.offset * width, (last + 1 - tensor.offset) * width};
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
  bool is_too_large(const Entry& entry, unsigned width) {
    const std::uint64_t room = archive_->file_bytes() + kSmall;
    if (entry.count > room / width) return true;
    used_ += entry.count * width;
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
  bool has_parameters_ = false;
  bool has_groups_ = false;  ///< has the text "param_groups", as any Optimizer.state_dict() does
  std::uint64_t used_ = 0;   ///< bytes of all readable tensors
  std::optional<std::uint64_t> all_bytes_;  ///< bytes of all tensors; empty if objects are skipped
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
