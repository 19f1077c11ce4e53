/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/
#include "tensorflow/core/common_runtime/multistream/conv_runners.h"

#include <dlfcn.h>

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/group_on_thread.h"

namespace tensorflow {
namespace multistream {
namespace {

// Those of one kind of operation.
template <typename Op>
class RunnersOfGroups {
 public:
  using Runner = se::dnn::LazyOpRunner<Op>;

  static RunnersOfGroups* Get() {
    static auto* runners = new RunnersOfGroups;
    return runners;
  }

  // For the algorithm of `stock`, on the executor of this thread's group.
  std::shared_ptr<Runner> Of(const std::shared_ptr<Runner>& stock) {
    if (stock == nullptr) return nullptr;
    absl::MutexLock lock(&mu_);
    Own& own = runners_[{stock.get(), GroupOnThread::Get()}];
    if (own.runner == nullptr) {
      own.stock = stock;
      own.runner = std::make_shared<Runner>(stock->ToAlgorithmDesc());
    }
    return own.runner;
  }

 private:
  struct Own {
    std::shared_ptr<Runner> stock;  // its address is not another one's
    std::shared_ptr<Runner> runner;
  };
  absl::Mutex mu_;
  absl::flat_hash_map<std::pair<const Runner*, StreamGroup*>, Own> runners_
      ABSL_GUARDED_BY(mu_);
};

template <typename Parameters, typename Op>
bool FindForGroup(const char* stock_name,
                  const AutotuneTable<Parameters, Op>* table,
                  const Parameters& parameters, AutotuneEntry<Op>* entry) {
  using Find = bool (*)(const AutotuneTable<Parameters, Op>*, const Parameters&,
                        AutotuneEntry<Op>*);
  static const auto stock =
      reinterpret_cast<Find>(dlsym(RTLD_NEXT, stock_name));
  if (!stock(table, parameters, entry)) return false;
  if (entry->is_algorithm_config()) return true;
  const auto& runners = entry->GetOpRunners();
  *entry = AutotuneEntry<Op>(
      RunnersOfGroups<Op>::Get()->Of(runners.primary),
      RunnersOfGroups<Op>::Get()->Of(runners.no_scratch_fallback));
  return true;
}

}  // namespace
}  // namespace multistream

// In TensorFlow's place.
template <>
bool multistream::AutotuneTable<ConvParameters, se::dnn::ConvOp>::Find(
    const ConvParameters& params,
    AutotuneEntry<se::dnn::ConvOp>* config) const {
  return multistream::FindForGroup(
      "_ZNK10tensorflow11AutotuneMapINS_14ConvParametersENS_13AutotuneEntryIN15"
      "stream_executor3dnn6ConvOpEEENS_8internal17AutotuneMapHasherIS1_EEE4Find"
      "ERKS1_PS6_",
      this, params, config);
}

template <>
bool multistream::AutotuneTable<ConvParameters, se::dnn::FusedConvOp>::Find(
    const ConvParameters& params,
    AutotuneEntry<se::dnn::FusedConvOp>* config) const {
  return multistream::FindForGroup(
      "_ZNK10tensorflow11AutotuneMapINS_14ConvParametersENS_13AutotuneEntryIN15"
      "stream_executor3dnn11FusedConvOpEEENS_8internal17AutotuneMapHasherIS1_EE"
      "E4FindERKS1_PS6_",
      this, params, config);
}

template <>
bool multistream::AutotuneTable<MatmulParameters, se::dnn::FusedMatmulOp>::Find(
    const MatmulParameters& params,
    AutotuneEntry<se::dnn::FusedMatmulOp>* config) const {
  return multistream::FindForGroup(
      "_ZNK10tensorflow11AutotuneMapINS_16MatmulParametersENS_13AutotuneEntryIN"
      "15stream_executor3dnn13FusedMatmulOpEEENS_8internal17AutotuneMapHasherIS"
      "1_EEE4FindERKS1_PS6_",
      this, params, config);
}

}  // namespace tensorflow
