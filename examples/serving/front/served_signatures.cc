// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/served_signatures.h"

#include <rapidjson/document.h>

#include <utility>

namespace front {

void ServedSignatures::Set(const std::string& json) {
  rapidjson::Document said;
  said.Parse(json.data(), json.size());
  if (!said.IsObject() || !said.HasMember("model") ||
      !said["model"].IsString() || !said.HasMember("version") ||
      !said["version"].IsInt64()) {
    return;
  }
  const std::string model = said["model"].GetString();
  const int64_t number = said["version"].GetInt64();
  if (!said.HasMember("signatures")) {
    std::lock_guard<std::mutex> lock(mutex_);
    models_[model].erase(number);
    return;
  }
  auto signatures = std::make_shared<Signatures>();
  for (const auto& signature : said["signatures"].GetObject()) {
    InputTypes& inputs = (*signatures)[signature.name.GetString()];
    for (const auto& input : signature.value.GetObject()) {
      inputs[input.name.GetString()] = input.value.GetInt();
    }
  }
  std::lock_guard<std::mutex> lock(mutex_);
  models_[model][number] = std::move(signatures);
}

std::shared_ptr<const Signatures> ServedSignatures::Find(
    const std::string& model, std::optional<int64_t> version) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = models_.find(model);
  if (found == models_.end() || found->second.empty()) return nullptr;
  if (!version) return found->second.rbegin()->second;
  const auto named = found->second.find(*version);
  return named == found->second.end() ? nullptr : named->second;
}

}  // namespace front
