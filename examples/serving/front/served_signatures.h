// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which dtypes do the inputs of a model's signatures have? JSON does not say
// them, so Python does, of each version that the engine answers for.

#ifndef EXAMPLES_SERVING_FRONT_SERVED_SIGNATURES_H_
#define EXAMPLES_SERVING_FRONT_SERVED_SIGNATURES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "examples/serving/front/json_request.h"

namespace front {

// Thread-safe.
class ServedSignatures {
 public:
  // Adds a version, from JSON: {"model": NAME, "version": NUMBER, "signatures":
  // {NAME: {INPUT: DTYPE, ...}, ...}}. Without "signatures" it takes the
  // version away. Ignores what is not such JSON.
  void Set(const std::string& json);

  // Of a version of a model, the newest if it is not named; null if there is
  // none. Another version may be the newest when the engine is asked: it leaves
  // to Python what has other dtypes.
  std::shared_ptr<const Signatures> Find(const std::string& model,
                                         std::optional<int64_t> version) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::map<int64_t, std::shared_ptr<const Signatures>>>
      models_;
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_SERVED_SIGNATURES_H_
