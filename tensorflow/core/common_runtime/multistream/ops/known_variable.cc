// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/ops/known_variable.h"

#include <utility>

#include "absl/container/flat_hash_set.h"
#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow::multistream {
namespace {

// All that there are: as many as variables that Python reads often.
struct Known {
  absl::Mutex mu;
  absl::flat_hash_set<KnownVariable*> all ABSL_GUARDED_BY(mu);
};

Known& AllKnown() {
  static auto* known = new Known;
  return *known;
}

}  // namespace

KnownVariable::KnownVariable(core::RefCountPtr<Var> variable, Tensor value)
    : variable_(std::move(variable)), value_(std::move(value)) {
  Known& known = AllKnown();
  absl::MutexLock lock(&known.mu);
  known.all.insert(this);
}

KnownVariable::~KnownVariable() {
  Known& known = AllKnown();
  absl::MutexLock lock(&known.mu);
  known.all.erase(this);
}

bool KnownVariable::CanBe(const Var& variable, const Tensor& value) {
  if (!variable.is_initialized || variable.copy_on_read_mode.load() ||
      !value.IsInitialized() || value.TotalBytes() > kMostBytes) {
    return false;
  }
  auto* buffer = const_cast<TensorBuffer*>(DMAHelper::buffer(&value));
  return buffer != nullptr && buffer->root_buffer()->size() <= kMostAllocated;
}

bool KnownVariable::IsStill() const {
  tf_shared_lock variable_lock(*variable_->mu());
  const Tensor& now = *variable_->tensor();
  absl::MutexLock lock(&mu_);
  return CanBe(*variable_, now) && now.SharesBufferWith(value_) &&
         now.data() == value_.data() && now.dtype() == value_.dtype() &&
         now.shape() == value_.shape();
}

bool KnownVariable::Forget(const Tensor& value) {
  Known& known = AllKnown();
  absl::MutexLock lock(&known.mu);
  bool was_known = false;
  for (KnownVariable* variable : known.all) {
    absl::MutexLock variable_lock(&variable->mu_);
    if (!variable->value_.SharesBufferWith(value)) continue;
    variable->value_ = Tensor();
    was_known = true;
  }
  return was_known;
}

}  // namespace tensorflow::multistream
