// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensorboard/tensorboard_tags.hpp"

#include <array>
#include <string>

namespace halfscope::analyzers::readers::tensorboard {
namespace {

using What = KnownScalar::What;

struct Row {
  std::string_view tag;
  What what;
};

// Of one thing the most general tags last. Beside plain names: Lightning's train_loss, Hugging
// Face's train/..., Megatron's "lm loss" and loss-scale, DeepSpeed's Train/Samples/...
constexpr std::array kRows = {
    Row{"loss", What::loss},
    Row{"train/loss", What::loss},
    Row{"loss/train", What::loss},
    Row{"train_loss", What::loss},
    Row{"training_loss", What::loss},
    Row{"training/loss", What::loss},
    Row{"train/samples/train_loss", What::loss},
    Row{"lm_loss", What::loss},
    Row{"learning_rate", What::learning_rate},
    Row{"lr", What::learning_rate},
    Row{"train/learning_rate", What::learning_rate},
    Row{"train/lr", What::learning_rate},
    Row{"lr/train", What::learning_rate},
    Row{"train/samples/lr", What::learning_rate},
    Row{"loss_scale", What::loss_scale},
    Row{"grad_scale", What::loss_scale},
    Row{"amp/scale", What::loss_scale},
    Row{"amp/loss_scale", What::loss_scale},
    Row{"amp/grad_scale", What::loss_scale},
    Row{"train/loss_scale", What::loss_scale},
    Row{"train/grad_scale", What::loss_scale},
    Row{"train/samples/loss_scale", What::loss_scale},
    Row{"scale", What::loss_scale},
    Row{"found_inf", What::found_inf},
    Row{"amp/found_inf", What::found_inf},
    Row{"train/found_inf", What::found_inf},
};

std::string plain(std::string_view tag) {
  std::string text(tag);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (c == '-' || c == ' ') c = '_';
  }
  return text;
}

}  // namespace

std::string_view name_of(What what) {
  switch (what) {
    case What::loss: return "loss";
    case What::learning_rate: return "learning rate";
    case What::loss_scale: return "loss scale";
    case What::found_inf: return "found_inf";
  }
  return "";
}

std::optional<KnownScalar> known_scalar(std::string_view tag) {
  const std::string text = plain(tag);
  for (unsigned rank = 0; rank < kRows.size(); ++rank) {
    if (kRows[rank].tag == text) return KnownScalar{kRows[rank].what, rank};
  }
  return std::nullopt;
}

}  // namespace halfscope::analyzers::readers::tensorboard
