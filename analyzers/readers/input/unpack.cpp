// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/input/unpack.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zip.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace halfscope::analyzers::readers::input {
namespace {

constexpr std::size_t kUnpackedPiece = std::size_t{1} << 18;

Ending unpack_stream(const log::OpenFile& file, Decoder& decoder, const Sink& sink) {
  std::string in(kUnpackedPiece, '\0'), out(kUnpackedPiece, '\0');
  std::uint64_t at = 0;
  std::string_view rest;
  bool last = false;
  while (true) {
    if (rest.empty() && !last) {
      const std::size_t got = file.read(at, in.data(), in.size());
      at += got;
      rest = std::string_view(in).substr(0, got);
      last = got < in.size();
    }
    const Decoder::Step step = decoder.step(rest, out, last);
    rest.remove_prefix(step.taken);
    if (step.made > 0 && !sink(std::string_view(out).substr(0, step.made))) return Ending::stopped;
    switch (step.state) {
      case Decoder::State::done: return Ending::whole;
      case Decoder::State::damaged: return Ending::damaged;
      case Decoder::State::too_large: return Ending::too_large;
      case Decoder::State::more: break;
    }
    if (last && step.taken == 0 && step.made == 0) {
      return rest.empty() ? Ending::cut : Ending::damaged;
    }
  }
}

struct CloseZip {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseMember {
  void operator()(zip_file_t* member) const { zip_fclose(member); }
};

class Archive {
 public:
  explicit Archive(const log::OpenFile& file) {
    file.need(0, file.size());
    const int copy = ::fcntl(file.number(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return;
    ::lseek(copy, 0, SEEK_SET);
    int error = 0;
    zip_.reset(zip_fdopen(copy, 0, &error));
    if (!zip_) ::close(copy);
    if (zip_) list();
  }

  const std::vector<std::string>& names() const { return names_; }

  Ending unpack_first(const Sink& sink) const {
    if (names_.empty()) return Ending::damaged;
    zip_stat_t about;
    if (zip_stat_index(zip_.get(), first_, 0, &about) == 0 &&
        (about.valid & ZIP_STAT_ENCRYPTION_METHOD) != 0 && about.encryption_method != ZIP_EM_NONE) {
      return Ending::encrypted;
    }
    const std::unique_ptr<zip_file_t, CloseMember> open(zip_fopen_index(zip_.get(), first_, 0));
    if (!open) return Ending::damaged;
    std::string piece(kUnpackedPiece, '\0');
    while (true) {
      const zip_int64_t got = zip_fread(open.get(), piece.data(), piece.size());
      if (got < 0) return Ending::damaged;
      if (got == 0) return Ending::whole;
      if (!sink(std::string_view(piece).substr(0, static_cast<std::size_t>(got)))) {
        return Ending::stopped;
      }
    }
  }

 private:
  static bool is_of_others(std::string_view name) {
    return name.ends_with(".npy") || name == "data.pkl" || name.ends_with("/data.pkl");
  }
  static bool may_be_log(std::string_view name) {
    const std::string_view last = name.substr(name.rfind('/') + 1);
    return !last.empty() && !last.starts_with('.') && !name.starts_with("__MACOSX/");
  }

  void list() {
    constexpr zip_int64_t kMost = 10'000;
    const zip_int64_t members = std::min(zip_get_num_entries(zip_.get(), 0), kMost);
    for (zip_int64_t i = 0; i < members; ++i) {
      const auto index = static_cast<zip_uint64_t>(i);
      const char* const name = zip_get_name(zip_.get(), index, ZIP_FL_ENC_RAW);
      if (name == nullptr) continue;
      if (is_of_others(name)) {
        names_.clear();
        return;
      }
      if (!may_be_log(name)) continue;
      if (names_.empty()) first_ = index;
      names_.emplace_back(name);
    }
  }

  std::unique_ptr<zip_t, CloseZip> zip_;
  zip_uint64_t first_ = 0;
  std::vector<std::string> names_;
};

}  // namespace

Ending unpack(const log::OpenFile& file, Packing packing, const Sink& sink) {
  if (packing == Packing::zip) return Archive(file).unpack_first(sink);
  const auto decoder = decoder_of(packing);
  return decoder ? unpack_stream(file, *decoder, sink) : Ending::damaged;
}

std::string packed_beginning(const log::OpenFile& file, Packing packing, std::size_t most) {
  std::string beginning;
  unpack(file, packing, [&](std::string_view bytes) {
    beginning += bytes.substr(0, most - beginning.size());
    return beginning.size() < most;
  });
  return beginning;
}

std::vector<std::string> files_in_zip(const log::OpenFile& file) { return Archive(file).names(); }

}  // namespace halfscope::analyzers::readers::input
