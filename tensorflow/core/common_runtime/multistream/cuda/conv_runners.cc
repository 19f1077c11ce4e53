// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/conv_runners.h"

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/process_options.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"

namespace tensorflow::multistream {
namespace {

// The groups' entries for one kind of operation.
template <typename Op>
class EntriesOfGroups {
 public:
  using Runner = se::dnn::LazyOpRunner<Op>;

  static EntriesOfGroups* Get() {
    static auto* entries = new EntriesOfGroups;
    return entries;
  }

  // The algorithms of `stock`, with runners for the executor of this thread's
  // group.
  AutotuneEntry<Op> Of(const AutotuneEntry<Op>& stock) {
    const auto& runners = stock.GetOpRunners();
    const Key key(runners.primary.get(), GroupOnThread::Get());
    Entries dropped;  // destroyed after the lock is released
    absl::MutexLock lock(&mu_);
    auto own = entries_.find(key);
    if (own != entries_.end()) return own->second.entry;
    auto known = old_.extract(key);
    if (entries_.size() >= kMostConvRunners / 2) {
      dropped = std::exchange(old_, std::exchange(entries_, {}));
    }
    if (known) {
      return entries_.insert(std::move(known)).position->second.entry;
    }
    const Runner* fallback = runners.no_scratch_fallback.get();
    AutotuneEntry<Op> entry(runners.primary->ToAlgorithmDesc(),
                            fallback == nullptr
                                ? absl::optional<se::dnn::AlgorithmDesc>()
                                : fallback->ToAlgorithmDesc());
    entries_.try_emplace(key, Own{runners.primary, entry});
    return entry;
  }

  size_t size() {
    absl::MutexLock lock(&mu_);
    return entries_.size() + old_.size();
  }

 private:
  using Key = std::pair<const Runner*, StreamGroup*>;
  struct Own {
    std::shared_ptr<Runner> primary;  // alive: its address is the key
    AutotuneEntry<Op> entry;
  };
  using Entries = absl::flat_hash_map<Key, Own>;

  absl::Mutex mu_;
  Entries entries_ ABSL_GUARDED_BY(mu_);
  // The older generation of a two-generation LRU.
  Entries old_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

size_t ConvRunnersKept() {
  return EntriesOfGroups<se::dnn::ConvOp>::Get()->size() +
         EntriesOfGroups<se::dnn::FusedConvOp>::Get()->size() +
         EntriesOfGroups<se::dnn::FusedMatmulOp>::Get()->size();
}

template <typename Op>
void UseRunnerOfGroup(AutotuneEntry<Op>* entry) {
  if (IsEnabled() && !entry->is_algorithm_config()) {
    *entry = EntriesOfGroups<Op>::Get()->Of(*entry);
  }
}

template void UseRunnerOfGroup(AutotuneEntry<se::dnn::ConvOp>*);
template void UseRunnerOfGroup(AutotuneEntry<se::dnn::FusedConvOp>*);
template void UseRunnerOfGroup(AutotuneEntry<se::dnn::FusedMatmulOp>*);

}  // namespace tensorflow::multistream
