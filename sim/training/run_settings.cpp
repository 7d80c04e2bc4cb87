// SPDX-License-Identifier: Apache-2.0
#include "sim/training/run_settings.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "halfscope/log/error.hpp"

namespace halfscope::sim::training {

using autograd::Parameter;
using backend::UpdateRule;

namespace {

using nlohmann::json;

struct Kind {
  UpdateRule::Kind kind;
  std::string_view name;
};
constexpr std::array kKinds = {Kind{UpdateRule::Kind::sgd, "sgd"},
                               Kind{UpdateRule::Kind::momentum, "momentum"},
                               Kind{UpdateRule::Kind::adam, "adam"}};

std::string_view name_of(UpdateRule::Kind kind) {
  return std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& k) { return k.kind == kind; })
      ->name;
}

/// Returns all settings except the number of steps. run.json stores them as "simulation". If they
/// differ, it is another run.
json identity(const Settings& s) {
  const UpdateRule& rule = s.rule;
  json optimizer = {{"kind", name_of(rule.kind)},
                    {"learning_rate", rule.learning_rate},
                    {"weight_decay", rule.weight_decay}};
  if (rule.kind == UpdateRule::Kind::momentum) optimizer["momentum"] = rule.momentum;
  if (rule.kind == UpdateRule::Kind::adam) {
    optimizer["betas"] = {rule.beta1, rule.beta2};
    optimizer["epsilon"] = rule.epsilon;
  }
  json told = {{"network", s.network->name},
               {"data", s.data},
               {"precision", s.precision.name},
               {"accumulate", text_of(s.accumulation)},
               {"loss_scale", s.policy ? policy::text_of(*s.policy) : "none"},
               {"optimizer", optimizer},
               {"batch", s.batch},
               {"accumulation_steps", s.accumulation_steps},
               {"clip", s.clip},
               {"seed", s.seed},
               {"record_every", s.record_every},
               {"sample_every", s.sample_every},
               {"checkpoint_every", s.checkpoint_every}};
  // Only written if they are not the default.
  if (s.ranks > 1) told["ranks"] = s.ranks;
  if (s.true_error) told["true_error"] = true;
  if (s.cudnn) told["backend"] = "cudnn";
  return told;
}

/// Returns the optimizer in PyTorch's terms, so that updates can be recomputed.
json optimizer_json(const UpdateRule& rule, const std::vector<Parameter*>& trained) {
  json group = {{"lr", rule.learning_rate},
                {"weight_decay", rule.weight_decay},
                {"maximize", false},
                {"params", json::array()}};
  for (const Parameter* parameter : trained) group["params"].push_back(parameter->name);
  const bool adam = rule.kind == UpdateRule::Kind::adam;
  if (adam) {
    group["betas"] = {rule.beta1, rule.beta2};
    group["eps"] = rule.epsilon;
    group["amsgrad"] = false;
  } else {
    group["momentum"] = rule.kind == UpdateRule::Kind::momentum ? rule.momentum : 0.0;
    group["dampening"] = 0;
    group["nesterov"] = false;
  }
  return {{"class", adam ? "torch.optim.Adam" : "torch.optim.SGD"},
          {"param_groups", json::array({group})}};
}

struct ToJson {
  json operator()(std::monostate) const { return nullptr; }
  template <class T>
  json operator()(const T& value) const {
    return value;
  }
};

json scaling_json(const std::optional<policy::Policy>& policy) {
  if (!policy) return {{"policy", "none"}};
  json told = {{"policy", policy::info_of(*policy).name}};
  for (const auto& [name, value] : policy::settings_of(*policy)) {
    told[std::string(name)] = std::visit(ToJson(), value);
  }
  return told;
}

const json* find(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto at = object.find(key);
  return at == object.end() ? nullptr : &*at;
}

[[noreturn]] void not_ours(const std::filesystem::path& folder) {
  throw log::BadInput(
      fmt::format("{}: its run.json does not have the settings of a run of `halfscope simulate`, "
                  "so it cannot continue; name the folder of such a run",
                  log::printable(folder.string())));
}

template <class T>
T get(const json& from, const char* key, const std::filesystem::path& folder) {
  const json* const found = find(from, key);
  if (found == nullptr) not_ours(folder);
  try {
    return found->get<T>();
  } catch (const json::exception&) {
    not_ours(folder);
  }
}

UpdateRule rule_of(const json& told, const std::filesystem::path& folder) {
  UpdateRule rule;
  const auto kind = get<std::string>(told, "kind", folder);
  const auto known =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& k) { return k.name == kind; });
  if (known == kKinds.end()) not_ours(folder);
  rule.kind = known->kind;
  rule.learning_rate = get<double>(told, "learning_rate", folder);
  rule.weight_decay = get<double>(told, "weight_decay", folder);
  if (rule.kind == UpdateRule::Kind::momentum)
    rule.momentum = get<double>(told, "momentum", folder);
  if (rule.kind == UpdateRule::Kind::adam) {
    const auto betas = get<std::vector<double>>(told, "betas", folder);
    if (betas.size() != 2) not_ours(folder);
    rule.beta1 = betas[0];
    rule.beta2 = betas[1];
    rule.epsilon = get<double>(told, "epsilon", folder);
  }
  return rule;
}

const networks::Network* network_of(const json& told, const std::filesystem::path& folder) {
  const auto name = get<std::string>(told, "network", folder);
  if (const networks::Network* const known = networks::find_network(name)) return known;
  throw log::BadInput(
      fmt::format("{}: is a run of the network '{}', which this program does not have; continue "
                  "with the program that began it",
                  log::printable(folder.string()), log::printable(name)));
}

backend::Precision precision_of(const json& told, const std::filesystem::path& folder) {
  const auto name = get<std::string>(told, "precision", folder);
  const auto mode = std::find_if(backend::kPrecisions.begin(), backend::kPrecisions.end(),
                                 [&](const backend::Precision& p) { return p.name == name; });
  if (mode == backend::kPrecisions.end()) not_ours(folder);
  return *mode;
}

backend::Accumulation accumulation_of(const json& told, const std::filesystem::path& folder) {
  const auto known = backend::find_accumulation(get<std::string>(told, "accumulate", folder));
  if (!known) not_ours(folder);
  return *known;
}

std::optional<policy::Policy> policy_of(const json& told, const std::filesystem::path& folder) {
  const auto text = get<std::string>(told, "loss_scale", folder);
  if (text == "none") return std::nullopt;
  try {
    return policy::make(text);
  } catch (const std::invalid_argument&) {
    not_ours(folder);
  }
}

}  // namespace

std::vector<std::string_view> state_names(UpdateRule::Kind kind) {
  switch (kind) {
    case UpdateRule::Kind::sgd: return {};
    case UpdateRule::Kind::momentum: return {"momentum_buffer"};
    case UpdateRule::Kind::adam: return {"exp_avg", "exp_avg_sq"};
  }
  return {};
}

std::filesystem::path log_folder(const std::filesystem::path& run, const Settings& settings,
                                 int rank) {
  return settings.ranks == 1 ? run : run / fmt::format("rank-{:04}", rank);
}

log::Manifest first_manifest(const std::filesystem::path& run) {
  const std::vector<std::filesystem::path> ranks = log::rank_folders(run);
  return log::RunLog(ranks.empty() ? run : ranks.front()).manifest();
}

log::Manifest manifest_of(const Settings& settings, int rank, const data::Data& data,
                          const backend::Backend& backend, const std::vector<Parameter*>& trained) {
  log::Manifest manifest;
  manifest.gradients = settings.policy ? log::ScaleState::scaled : log::ScaleState::unscaled;
  manifest.loss_dtype = Dtype::f32;
  manifest.rank = rank;
  manifest.world_size = settings.ranks;
  if (settings.ranks > 1) {
    manifest.sharded = {log::Role::activation, log::Role::activation_grad,
                        log::Role::local_weight_grad};
  }
  json& about = *manifest.about;
  about["recorder"] = "halfscope simulate";
  about["simulation"] = identity(settings);
  about["network"] = {{"name", settings.network->name}, {"what", settings.network->what}};
  about["data"] = data.describe();
  about["seed"] = settings.seed;
  about["precision"] = settings.precision.name;
  about["steps"] = settings.steps;
  about["optimizer"] = optimizer_json(settings.rule, trained);
  about["loss_scaling"] = scaling_json(settings.policy);
  about["backend"] = backend.describe();
  if (nlohmann::json details = backend.details(); !details.is_null()) {
    about["backend_details"] = std::move(details);
  }
  if (settings.clip > 0) {
    about["clipping"] =
        fmt::format("by norm {}, after unscaling; gradients are recorded before it", settings.clip);
  }
  return manifest;
}

void require_same(const Settings& settings, const log::Manifest& manifest,
                  const std::filesystem::path& folder) {
  const json* const recorded = find(*manifest.about, "simulation");
  if (recorded == nullptr) not_ours(folder);
  const json asked = identity(settings);
  for (const auto& [key, value] : asked.items()) {
    const json* const has = find(*recorded, key.c_str());
    if (has != nullptr && *has == value) continue;
    throw log::BadInput(fmt::format(
        "{}: this run has {} {}, and {} was asked for; a run continues with its own settings, so "
        "remove that option, or start another run in another folder",
        log::printable(folder.string()), key, has == nullptr ? "none" : has->dump(), value.dump()));
  }
  for (const auto& [key, value] : recorded->items()) {
    if (asked.contains(key)) continue;
    throw log::BadInput(
        fmt::format("{}: this run has {} {}, and none was asked for; a run continues with its own "
                    "settings, so remove that option, or start another run in another folder",
                    log::printable(folder.string()), log::printable(key), value.dump()));
  }
}

std::string identity_text(const Settings& settings) { return identity(settings).dump(); }

std::string other_run(const Settings& settings, const std::string& told) {
  const json own = identity(settings), other = json::parse(told, nullptr, false);
  if (other == own) return "";
  for (const auto& [key, value] : own.items()) {
    const json* const has = find(other, key.c_str());
    if (has != nullptr && *has == value) continue;
    return fmt::format("it is of a run with {0} {1}, and this one has {0} {2}", key,
                       has == nullptr ? "none" : log::printable(has->dump()), value.dump());
  }
  return "it is of a run with other settings";
}

Settings recorded_settings(const std::filesystem::path& folder) {
  const log::Manifest manifest = first_manifest(folder);
  const json* const told = find(*manifest.about, "simulation");
  if (told == nullptr) not_ours(folder);
  Settings settings;
  settings.network = network_of(*told, folder);
  settings.data = get<std::string>(*told, "data", folder);
  settings.precision = precision_of(*told, folder);
  settings.accumulation = accumulation_of(*told, folder);
  settings.policy = policy_of(*told, folder);
  settings.rule = rule_of(get<json>(*told, "optimizer", folder), folder);
  settings.batch = get<std::int64_t>(*told, "batch", folder);
  settings.accumulation_steps = get<int>(*told, "accumulation_steps", folder);
  settings.clip = get<double>(*told, "clip", folder);
  settings.seed = get<std::uint64_t>(*told, "seed", folder);
  settings.record_every = get<std::int64_t>(*told, "record_every", folder);
  settings.sample_every = get<std::int64_t>(*told, "sample_every", folder);
  settings.checkpoint_every = get<std::int64_t>(*told, "checkpoint_every", folder);
  if (find(*told, "ranks") != nullptr) settings.ranks = get<int>(*told, "ranks", folder);
  settings.true_error = find(*told, "true_error") != nullptr;
  settings.cudnn = find(*told, "backend") != nullptr;
  settings.steps = get<std::int64_t>(*manifest.about, "steps", folder);
  return settings;
}

}  // namespace halfscope::sim::training
