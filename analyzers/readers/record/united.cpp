// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/record/united.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "halfscope/log/error.hpp"

namespace halfscope::analyzers::readers::record {

using log::printable;

namespace {

std::string file_of(const Placed& part) { return printable(part.file->path().string()); }
std::string name_of(const Placed& part) { return printable(part.header().shown()); }

std::string bytes_of(const Placed& part) {
  std::string bytes;
  bytes.reserve(part.place->end - part.place->begin);
  part.file->for_each_piece(*part.place, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

/// Returns the reason why two parts of a log do not belong together. Empty if they do.
std::string disagreement(const Placed& a, const Placed& b) {
  const PartHeader &one = a.header(), &other = b.header();
  if (one.settings != other.settings) {
    const auto words = [](const PartHeader& header) {
      return header.settings.empty() ? "none" : printable(header.settings);
    };
    return fmt::format(
        "{}: {} was counted with other options ({}) than in {} ({}); count all parts of a log with "
        "the same",
        file_of(b), name_of(b), words(other), file_of(a), words(one));
  }
  if (one.of == other.of) return "";
  return fmt::format(
      "{}: {} is one of {} parts, and {} in {} one of {}; the log has changed: delete its records "
      "and count it again",
      file_of(b), name_of(b), other.of, name_of(a), file_of(a), one.of);
}

bool are_same(const Placed& a, const Placed& b) {
  const auto size = [](const Placed& part) { return part.place->end - part.place->begin; };
  return size(a) == size(b) && bytes_of(a) == bytes_of(b);
}

}  // namespace

std::vector<Placed> united(std::span<const RecordFile* const> files,
                           std::vector<std::string>& problems) {
  std::vector<Placed> all, parts;
  for (const RecordFile* const file : files) {
    for (const PartPlace& place : file->parts()) all.push_back({file, &place});
  }
  std::ranges::stable_sort(all, [](const Placed& a, const Placed& b) {
    return std::tie(a.header().log, a.header().index) < std::tie(b.header().log, b.header().index);
  });
  std::set<std::pair<std::string, const RecordFile*>> refused;  // log, file
  for (const Placed& part : all) {
    const bool follows = !parts.empty() && parts.back().header().log == part.header().log;
    if (std::string why = follows ? disagreement(parts.back(), part) : ""; !why.empty()) {
      if (refused.emplace(part.header().log, part.file).second) problems.push_back(std::move(why));
    } else if (!follows || parts.back().header().index != part.header().index) {
      parts.push_back(part);
    } else if (!are_same(parts.back(), part)) {
      problems.push_back(
          fmt::format("{}: {} differs from that in {}; the log has changed: keep one",
                      file_of(part), name_of(part), file_of(parts.back())));
    }
  }
  return parts;
}

}  // namespace halfscope::analyzers::readers::record
