// SPDX-License-Identifier: Apache-2.0
// The tags and scalars in the event files of one run, and the places of its histograms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/lines/names.hpp"
#include "halfscope/log/event_outline.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::log {
class EventReader;
}

namespace halfscope::analyzers::readers::tensorboard {

/// Reads all files, in order, as one run, without the contents of histograms. The last value of a
/// tag and step is kept. If the run went on from a step (SessionLog START), earlier values of that
/// step and later steps are dropped. Memory is bounded by the number of histograms and of known
/// scalars.
class TensorBoardIndex {
 public:
  /// Reads the scalars whose tags meaning_of_tag() knows, and the tag `recorded_scale`, unless it
  /// is empty. Throws log::BadInput if a file cannot be read.
  TensorBoardIndex(std::vector<log::OpenPath> files,
                   const std::optional<std::string>& recorded_scale,
                   const frames::Progress& progress);

  enum class Form : std::uint8_t { none, histogram, tensor };
  enum class Plugin : std::uint8_t { unknown, scalars, histograms, halfscope, other };
  struct Tag {
    std::string name;
    Plugin plugin = Plugin::unknown;         ///< named by its first value
    lines::Named named = {};                 ///< its meaning as a scalar
    bool scalar = false, histogram = false;  ///< the tag has values of this type
    bool of_run_log = false;                 ///< a histogram that Halfscope wrote
  };
  /// A histogram: bytes [offset, offset + size) of a file.
  struct Place {
    std::uint32_t tag;
    std::uint32_t file;
    std::int64_t step;
    std::uint64_t offset;
    std::uint32_t size;
    Form form;
    std::uint32_t restarts;  ///< number of restarts before it
  };
  struct Scalar {
    std::uint32_t tag;
    std::uint32_t restarts;
    std::int64_t step;
    double value;
  };

  const log::OpenPath& file(std::uint32_t number) const { return files_[number]; }
  const std::vector<Tag>& tags() const { return tags_; }
  const std::vector<Place>& histograms() const { return places_; }  ///< in the order of the files
  const std::vector<Scalar>& scalars() const { return scalars_; }   ///< by tag and step
  std::uint64_t bytes() const { return bytes_; }                    ///< total size of the files
  bool any_record() const { return any_record_; }
  const frames::Notes& notes() const { return notes_; }

 private:
  void read(std::uint32_t file, const frames::Progress& progress);
  void take(const log::ValueOutline& value, std::int64_t step, const log::EventReader& reader,
            std::string_view message, std::uint32_t file);
  void take_tensor(const log::ValueOutline& value, std::uint32_t tag, Place place);
  void take_scalar(std::uint32_t tag, std::int64_t step, double value);
  std::uint32_t tag_of(std::string_view name);
  void keep_last();

  std::vector<log::OpenPath> files_;
  const std::optional<std::string>& recorded_scale_;
  std::vector<Tag> tags_;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> tag_numbers_;
  std::vector<Place> places_;
  std::vector<Scalar> scalars_;
  std::vector<std::int64_t> restarts_;  ///< the steps from which the run went on, in order
  std::uint64_t bytes_ = 0, bytes_before_ = 0;
  std::uint64_t unnamed_ = 0;  ///< tensors skipped, since their tag has no plugin
  bool any_record_ = false;
  frames::Notes notes_;
};

}  // namespace halfscope::analyzers::readers::tensorboard
