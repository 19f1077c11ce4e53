// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/constant_cache.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/lib/strings/proto_serialization.h"
#include "tensorflow/core/platform/hash.h"

namespace tensorflow {
namespace multistream {

ConstantCache* ConstantCache::Get() {
  static ConstantCache* cache = new ConstantCache;
  return cache;
}

absl::Status ConstantCache::Acquire(
    int gpu, const std::shared_ptr<const NodeProperties>& node,
    const MakeKernel& make, OpKernel** kernel) {
  const auto& attributes = node->node_def.attr();
  auto value = attributes.find("value");
  if (value == attributes.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Const node ", node->node_def.name(), " has no attribute value"));
  }
  std::string serialized;
  SerializeToStringDeterministic(value->second, &serialized);
  const Key key(
      gpu, serialized.size(),
      Hash64(serialized.data(), serialized.size(), /*seed=*/0x2545f4914f6cdd1d),
      Hash64(serialized.data(), serialized.size(),
             /*seed=*/0x9e3779b97f4a7c15));
  absl::MutexLock lock(&mu_);
  auto found = entries_.find(key);
  if (found != entries_.end()) {
    ++found->second.uses;
    *kernel = found->second.kernel.get();
    return absl::OkStatus();
  }
  absl::Status status = make(node, kernel);
  if (!status.ok()) return status;
  keys_.try_emplace(*kernel, key);
  entries_.try_emplace(key, Entry{std::unique_ptr<OpKernel>(*kernel), 1});
  return absl::OkStatus();
}

bool ConstantCache::Release(const OpKernel* kernel) {
  // In a fork()ed child, a thread that no longer exists may hold the lock.
  if (GroupsAreOfParent()) return true;
  std::unique_ptr<OpKernel> last;
  absl::MutexLock lock(&mu_);
  auto key = keys_.find(kernel);
  if (key == keys_.end()) return false;
  auto entry = entries_.find(key->second);
  if (--entry->second.uses == 0) {
    last = std::move(entry->second.kernel);
    entries_.erase(entry);
    keys_.erase(key);
  }
  return true;
}

}  // namespace multistream
}  // namespace tensorflow
