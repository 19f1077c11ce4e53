// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/waiting_caller.h"

#include <utility>

namespace tensorflow {
namespace multistream {
namespace {
thread_local bool waits = false;
}  // namespace

WaitingCaller::WaitingCaller() : before_(std::exchange(waits, true)) {}

WaitingCaller::~WaitingCaller() { waits = before_; }

bool WaitingCaller::OfThisThread() { return waits; }

}  // namespace multistream
}  // namespace tensorflow
