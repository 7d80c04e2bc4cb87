// SPDX-License-Identifier: Apache-2.0
// What the event files of one run hold, and where: one pass that looks into no histogram.
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

/// Reads all files, in order, as one run: of a tag and step that are there twice the last value
/// holds, and where the run went on from a step (SessionLog START), what came before of that step
/// and later ones is dropped. Memory is bounded by the number of histograms and of known scalars.
class TensorBoardIndex {
 public:
  /// recorded_scale: a tag that is wanted beside those meaning_of_tag() knows. Throws
  /// log::BadInput.
  TensorBoardIndex(std::vector<log::OpenPath> files,
                   const std::optional<std::string>& recorded_scale,
                   const frames::Progress& progress);

  enum class Form : std::uint8_t { none, histogram, tensor };
  enum class Plugin : std::uint8_t { unknown, scalars, histograms, halfscope, other };
  struct Tag {
    std::string name;
    Plugin plugin = Plugin::unknown;         ///< what its values are, as the first one says
    lines::Named named = {};                 ///< of scalars
    bool scalar = false, histogram = false;  ///< what values of it there are
    bool of_run_log = false;                 ///< a histogram of Halfscope's own
  };
  struct Place {  ///< of a histogram: bytes [offset, offset + size) of a file
    std::uint32_t tag;
    std::uint32_t file;
    std::int64_t step;
    std::uint64_t offset;
    std::uint32_t size;
    Form form;
    std::uint32_t restarts;  ///< that came before it
  };
  struct Scalar {
    std::uint32_t tag;
    std::uint32_t restarts;
    std::int64_t step;
    double value;
  };

  const log::OpenPath& file(std::uint32_t number) const { return files_[number]; }
  const std::vector<Tag>& tags() const { return tags_; }
  const std::vector<Place>& histograms() const { return places_; }  ///< as they were written
  const std::vector<Scalar>& scalars() const { return scalars_; }   ///< by tag and step
  std::uint64_t bytes() const { return bytes_; }                    ///< of all files
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
  std::vector<std::int64_t> restarts_;  ///< the steps the run went on from, in order
  std::uint64_t bytes_ = 0, bytes_before_ = 0;
  std::uint64_t unnamed_ = 0;  ///< tensors of tags whose plugin nothing names
  bool any_record_ = false;
  frames::Notes notes_;
};

}  // namespace halfscope::analyzers::readers::tensorboard
