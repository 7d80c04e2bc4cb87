// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/input/unpack.hpp"

#include <bzlib.h>
#include <lzma.h>
#include <unistd.h>
#include <zip.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <fcntl.h>
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <new>
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

using State = Decoder::State;

constexpr std::string_view kGzip = "\x1f\x8b", kBzip2 = "BZh";

/// Limits a size to `unsigned`, in which zlib and bzip2 count bytes.
unsigned length_of(std::size_t size) {
  return static_cast<unsigned>(std::min<std::size_t>(size, std::numeric_limits<unsigned>::max()));
}

class Gzip : public Decoder {
 public:
  Gzip() {
    if (inflateInit2(&stream_, kWindow + kGzipAlone) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { inflateEnd(&stream_); }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  Step step(std::string_view input, std::span<char> output, bool last) override {
    if (ended_ && input.empty()) return {.state = last ? State::done : State::more};
    if (ended_) {
      if (!input.starts_with(kGzip.substr(0, input.size()))) return {.state = State::done};
      inflateReset(&stream_);
      ended_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = length_of(input.size());
    stream_.next_out = reinterpret_cast<Bytef*>(output.data());
    stream_.avail_out = length_of(output.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    ended_ = result == Z_STREAM_END;
    const bool fine = ended_ || result == Z_OK || result == Z_BUF_ERROR;
    return {input.size() - stream_.avail_in, output.size() - stream_.avail_out,
            fine ? State::more : State::damaged};
  }

 private:
  static constexpr int kWindow = 15, kGzipAlone = 16;
  z_stream stream_ = {};
  bool ended_ = false;
};

class Bzip2 : public Decoder {
 public:
  Bzip2() { begin(); }
  ~Bzip2() override { BZ2_bzDecompressEnd(&stream_); }
  Bzip2(const Bzip2&) = delete;
  Bzip2& operator=(const Bzip2&) = delete;

  Step step(std::string_view input, std::span<char> output, bool last) override {
    if (ended_ && input.empty()) return {.state = last ? State::done : State::more};
    if (ended_) {
      if (!input.starts_with(kBzip2.substr(0, input.size()))) return {.state = State::done};
      BZ2_bzDecompressEnd(&stream_);
      begin();
    }
    stream_.next_in = const_cast<char*>(input.data());
    stream_.avail_in = length_of(input.size());
    stream_.next_out = output.data();
    stream_.avail_out = length_of(output.size());
    const int result = BZ2_bzDecompress(&stream_);
    ended_ = result == BZ_STREAM_END;
    return {input.size() - stream_.avail_in, output.size() - stream_.avail_out,
            ended_ || result == BZ_OK ? State::more : State::damaged};
  }

 private:
  void begin() {
    stream_ = {};
    ended_ = false;
    if (BZ2_bzDecompressInit(&stream_, 0, 0) != BZ_OK) throw std::bad_alloc();
  }
  bz_stream stream_ = {};
  bool ended_ = false;
};

class Xz : public Decoder {
 public:
  Xz() {
    if (lzma_stream_decoder(&stream_, kMemory, LZMA_CONCATENATED) != LZMA_OK) {
      throw std::bad_alloc();
    }
  }
  ~Xz() override { lzma_end(&stream_); }
  Xz(const Xz&) = delete;
  Xz& operator=(const Xz&) = delete;

  Step step(std::string_view input, std::span<char> output, bool last) override {
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(input.data());
    stream_.avail_in = input.size();
    stream_.next_out = reinterpret_cast<std::uint8_t*>(output.data());
    stream_.avail_out = output.size();
    const lzma_ret result = lzma_code(&stream_, last ? LZMA_FINISH : LZMA_RUN);
    Step step{input.size() - stream_.avail_in, output.size() - stream_.avail_out, State::more};
    if (result == LZMA_STREAM_END) step.state = State::done;
    if (result == LZMA_MEMLIMIT_ERROR) step.state = State::too_large;
    const bool fine = result == LZMA_OK || result == LZMA_BUF_ERROR;
    if (step.state == State::more && !fine) step.state = State::damaged;
    return step;
  }

 private:
  static constexpr std::uint64_t kMemory = std::uint64_t{256} << 20;  // `xz -9` needs 65 MiB
  lzma_stream stream_ = LZMA_STREAM_INIT;
};

class Zstd : public Decoder {
 public:
  Zstd() : stream_(ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~Zstd() override { ZSTD_freeDStream(stream_); }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;

  Step step(std::string_view input, std::span<char> output, bool last) override {
    if (ended_ && input.empty()) return {.state = last ? State::done : State::more};
    ZSTD_inBuffer in = {input.data(), input.size(), 0};
    ZSTD_outBuffer out = {output.data(), output.size(), 0};
    const std::size_t result = ZSTD_decompressStream(stream_, &out, &in);
    if (ZSTD_isError(result) == 0) {
      ended_ = result == 0;
      return {in.pos, out.pos, State::more};
    }
    // Data after the end of a frame need not be zstd.
    if (ended_) return {.state = State::done};
    const bool window = ZSTD_getErrorCode(result) == ZSTD_error_frameParameter_windowTooLarge;
    return {in.pos, out.pos, window ? State::too_large : State::damaged};
  }

 private:
  ZSTD_DStream* stream_;  // accepts windows up to 128 MiB, as the program zstd does
  bool ended_ = false;
};

struct PackingRow {
  Packing packing;
  std::string_view name;
  std::string_view starts_with;
};
constexpr std::array kPackingRows = {
    PackingRow{Packing::gzip, "gzip", "\x1f\x8b\x08"},
    PackingRow{Packing::xz, "xz",
               std::string_view("\xFD"
                                "7zXZ\0",
                                6)},
    PackingRow{Packing::bzip2, "bzip2", kBzip2},
    PackingRow{Packing::zstd, "zstd", "\x28\xB5\x2F\xFD"},
    PackingRow{Packing::zip, "a ZIP archive", "PK\x03\x04"},
    PackingRow{Packing::zip, "a ZIP archive", "PK\x05\x06"},  // an archive without members
};

/// Returns true if bytes after "BZh" are those of bzip2: a level, then the mark of a block or of
/// the end. A text may begin with "BZh" too.
bool is_bzip2(std::string_view beginning) {
  constexpr std::string_view kBlock = "1AY&SY", kEnd = "\x17rE8P\x90";
  if (beginning.size() < 10 || beginning[3] < '1' || beginning[3] > '9') return false;
  return beginning.substr(4).starts_with(kBlock) || beginning.substr(4).starts_with(kEnd);
}

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

Packing packing_of(std::string_view beginning) {
  for (const PackingRow& row : kPackingRows) {
    if (!beginning.starts_with(row.starts_with)) continue;
    if (row.packing != Packing::bzip2 || is_bzip2(beginning)) return row.packing;
  }
  return Packing::none;
}

std::string_view name_of(Packing packing) {
  const auto row = std::ranges::find(kPackingRows, packing, &PackingRow::packing);
  return row == kPackingRows.end() ? "not packed" : row->name;
}

std::unique_ptr<Decoder> decoder_of(Packing packing) {
  switch (packing) {
    case Packing::gzip: return std::make_unique<Gzip>();
    case Packing::xz: return std::make_unique<Xz>();
    case Packing::bzip2: return std::make_unique<Bzip2>();
    case Packing::zstd: return std::make_unique<Zstd>();
    case Packing::none:
    case Packing::zip: break;
  }
  return nullptr;
}

}  // namespace halfscope::analyzers::readers::input
