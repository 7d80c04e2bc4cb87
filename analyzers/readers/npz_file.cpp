// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <zip.h>

#include <algorithm>
#include <new>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/readers/npy_header.hpp"
#include "analyzers/readers/numpy_file.hpp"
#include "analyzers/readers/torch_file.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/log/mapped_file.hpp"

namespace halfscope::readers {
namespace {

using log::BadInput;
using log::NamedTensor;

constexpr std::string_view kSuffix = ".npy";

// Deflate codes at most 258 bytes in two bits, so nothing unpacks to more than 1032 times its size.
constexpr std::uint64_t kDeflateLimit = 1032;
// All of it is memory, so a large member must also unpack to no more than sparse data would.
constexpr std::uint64_t kLargeMember = std::uint64_t{1} << 30;
constexpr std::uint64_t kLargeMemberLimit = 200;

struct CloseZip {
  void operator()(zip_t* zip) const { zip_discard(zip); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};
using OpenMember = std::unique_ptr<zip_file_t, CloseMember>;

/// A ZIP member as its directory describes it.
struct Member {
  zip_uint64_t index = 0;
  std::string name;   ///< as the archive has it; of an array, without ".npy"
  std::string place;  ///< how messages about it begin
  std::uint64_t packed = 0;
  std::uint64_t unpacked = 0;
  zip_uint16_t method = ZIP_CM_STORE;
};

/// Size and packing of a member, refused where they cannot be true: nothing is allocated for it
/// yet.
void check_member(const Member& member, std::uint64_t file_bytes) {
  const bool stored = member.method == ZIP_CM_STORE;
  if (!stored && member.method != ZIP_CM_DEFLATE) {
    throw BadInput(
        fmt::format("{} is packed by ZIP method {}, want 0 (stored) or 8 (deflated); write "
                    "it with numpy.savez",
                    member.place, member.method));
  }
  if (member.packed > file_bytes) {
    throw BadInput(
        fmt::format("{} names {} packed bytes, but the file holds {}; the file is damaged, "
                    "write it again",
                    member.place, member.packed, file_bytes));
  }
  const std::uint64_t times = stored                            ? 1
                              : member.unpacked >= kLargeMember ? kLargeMemberLimit
                                                                : kDeflateLimit;
  if (member.unpacked / times > member.packed || (stored && member.unpacked != member.packed)) {
    throw BadInput(fmt::format(
        "{} claims to unpack from {} bytes to {}, want {}{} at most; the file "
        "is damaged or a ZIP bomb, write it again with numpy.savez",
        member.place, member.packed, member.unpacked, stored ? "the same" : fmt::to_string(times),
        stored ? ", stored," : " times as many"));
  }
}

class NpzFile final : public log::TensorFile {
 public:
  explicit NpzFile(const std::filesystem::path& path) : file_(path), zip_(open()) {
    const zip_int64_t members = zip_get_num_entries(zip_.get(), 0);
    std::set<std::string> names;
    std::uint64_t packed = 0;
    for (zip_int64_t i = 0; i < members; ++i) {
      Member member = describe(static_cast<zip_uint64_t>(i));
      if (!names.insert(member.name).second) {
        throw BadInput(fmt::format("{} is there twice, want every name once; rename one of them",
                                   member.place));
      }
      packed += member.packed;  // each is at most the file's size: no overflow before it is refused
      if (packed > file_.bytes().size()) {
        throw BadInput(
            fmt::format("{}: its members take {} bytes and more, but it holds {}, so they "
                        "overlap; the file is damaged or a ZIP bomb, write it again",
                        file_.name(), packed, file_.bytes().size()));
      }
      add(std::move(member));
    }
    const bool is_torch = std::any_of(skipped_.begin(), skipped_.end(), [](const auto& skipped) {
      return is_torch_member(skipped.name);
    });
    if (arrays_.empty() && is_torch) refuse_torch_file(path);
  }

  void for_each(const std::function<void(const NamedTensor&)>& visit) const override {
    for (const auto& [member, array] : arrays_) visit(*load(member, array));
  }

  const std::vector<log::SkippedTensor>& skipped() const override { return skipped_; }

  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& [member, array] : arrays_) all.push_back(member.name);
    return all;
  }

  std::shared_ptr<const NamedTensor> tensor(std::string_view name) const override {
    for (const auto& [member, array] : arrays_) {
      if (member.name == name) return load(member, array);
    }
    return nullptr;
  }

 private:
  /// An unpacked member, and the tensor in it.
  struct Held {
    std::unique_ptr<std::byte[]> stream;
    std::vector<std::byte> rewritten;  ///< the data, where the file's order is not ours
    NamedTensor tensor;
  };

  std::shared_ptr<const NamedTensor> load(const Member& member, const NpyArray& array) const {
    auto held = std::make_shared<Held>();
    held->stream = unpack(member);
    const std::byte* data = held->stream.get() + array.data_offset;
    if (is_foreign(array)) {
      const auto bytes = static_cast<std::size_t>(member.unpacked - array.data_offset);
      held->rewritten = in_our_order(array, {data, bytes});
      held->stream.reset();
      data = held->rewritten.data();
    }
    held->tensor = {
        member.name, array.shape, {array.dtype, data, static_cast<std::size_t>(array.count)}};
    return {held, &held->tensor};
  }

  [[noreturn]] void refuse_zip(zip_error_t* error) const {
    const std::string found = log::printable(zip_error_strerror(error));
    zip_error_fini(error);
    throw BadInput(
        fmt::format("{}: is no ZIP archive that can be read ({}), want an NPZ file; the "
                    "file is damaged or cut short, copy or write it again",
                    file_.name(), found));
  }

  zip_t* open() const {
    zip_error_t error;
    zip_error_init(&error);
    const auto bytes = file_.bytes();
    if (bytes.empty()) {  // which libzip takes for an archive still to be written
      throw BadInput(
          fmt::format("{}: holds 0 bytes, want an NPZ file; copy or write it again", file_.name()));
    }
    zip_source_t* const source = zip_source_buffer_create(bytes.data(), bytes.size(), 0, &error);
    if (source == nullptr) refuse_zip(&error);
    zip_t* const zip = zip_open_from_source(source, ZIP_RDONLY, &error);
    if (zip == nullptr) {
      zip_source_free(source);
      refuse_zip(&error);
    }
    zip_error_fini(&error);
    return zip;
  }

  Member describe(zip_uint64_t index) const {
    zip_stat_t status;
    zip_stat_init(&status);
    const bool known = zip_stat_index(zip_.get(), index, 0, &status) == 0;
    constexpr zip_uint64_t kNeeded = ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE |
                                     ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
    if (!known || (status.valid & kNeeded) != kNeeded) {
      throw BadInput(
          fmt::format("{}: ZIP member {} has no name or size, want both; the file is "
                      "damaged, write it again",
                      file_.name(), index));
    }
    Member member{index, status.name, "", status.comp_size, status.size, status.comp_method};
    std::string_view tensor = member.name;
    if (tensor.ends_with(kSuffix)) tensor.remove_suffix(kSuffix.size());
    member.place = log::place_text(file_.name(), tensor);
    if (status.encryption_method != ZIP_EM_NONE) {
      throw BadInput(
          fmt::format("{} is encrypted, want plain data; unpack it and pack it without a "
                      "password",
                      member.place));
    }
    check_member(member, file_.bytes().size());
    return member;
  }

  void add(Member member) {
    if (!std::string_view(member.name).ends_with(kSuffix)) {
      skipped_.push_back({std::move(member.name), "is no array (its name does not end in .npy)"});
      return;
    }
    member.name.resize(member.name.size() - kSuffix.size());
    NpyArray array = read_header(member);
    if (array.skip.empty()) {
      arrays_.emplace_back(std::move(member), std::move(array));
    } else {
      skipped_.push_back({std::move(member.name), std::move(array.skip)});
    }
  }

  NpyArray read_header(const Member& member) const {
    const OpenMember open = start(member);
    std::vector<std::byte> header(std::min<std::uint64_t>(kNpyPreamble, member.unpacked));
    read(open.get(), header.data(), header.size(), member);
    const std::uint64_t offset = npy_data_offset(header, member.unpacked, member.place);
    const std::size_t had = std::min<std::size_t>(header.size(), offset);
    header.resize(static_cast<std::size_t>(offset));
    read(open.get(), header.data() + had, header.size() - had, member);
    return read_npy_header(header, member.unpacked, member.place);
  }

  OpenMember start(const Member& member) const {
    OpenMember open(zip_fopen_index(zip_.get(), member.index, 0));
    if (!open) refuse_data(zip_strerror(zip_.get()), member);
    return open;
  }

  /// The member's whole NPY stream. Reading on to its end makes libzip compare the checksum.
  std::unique_ptr<std::byte[]> unpack(const Member& member) const {
    const auto size = static_cast<std::size_t>(member.unpacked);
    std::unique_ptr<std::byte[]> stream;
    try {
      stream = std::make_unique_for_overwrite<std::byte[]>(size);
    } catch (const std::bad_alloc&) {
      throw BadInput(
          fmt::format("{} unpacks to {} bytes, want no more than memory has; save it as "
                      ".npy or .safetensors, which are not unpacked",
                      member.place, size));
    }
    const OpenMember open = start(member);
    read(open.get(), stream.get(), size, member);
    char more = 0;
    const zip_int64_t left = zip_fread(open.get(), &more, 1);
    if (left < 0) refuse_data(zip_file_strerror(open.get()), member);
    if (left > 0) refuse_data("more bytes than its directory says", member);
    return stream;
  }

  void read(zip_file_t* open, std::byte* to, std::size_t size, const Member& member) const {
    while (size > 0) {
      const zip_int64_t got = zip_fread(open, to, size);
      if (got < 0) refuse_data(zip_file_strerror(open), member);
      if (got == 0) refuse_data("fewer bytes than its directory says", member);
      to += got;
      size -= static_cast<std::size_t>(got);
    }
  }

  [[noreturn]] void refuse_data(std::string_view found, const Member& member) const {
    throw BadInput(
        fmt::format("{} cannot be unpacked ({}), want {} bytes; the file is damaged, write "
                    "it again",
                    member.place, log::printable(found), member.unpacked));
  }

  log::MappedFile file_;
  std::unique_ptr<zip_t, CloseZip> zip_;
  std::vector<std::pair<Member, NpyArray>> arrays_;
  std::vector<log::SkippedTensor> skipped_;
};

}  // namespace

std::unique_ptr<log::TensorFile> open_npz(const std::filesystem::path& path) {
  return std::make_unique<NpzFile>(path);
}

}  // namespace halfscope::readers
