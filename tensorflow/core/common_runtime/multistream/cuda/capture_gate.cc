// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/capture_gate.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"

namespace tensorflow::multistream {
namespace {

thread_local int captures_on_this_thread = 0;

}  // namespace

bool CaptureGate::MayEnter(Side side, const Request* request) const {
  if (inside_[side == kCaptures ? kWaits : kCaptures] > 0 &&
      IsKept(Rule::kCapturesExcludeWaits)) {
    return false;
  }
  if (!IsKept(Rule::kNoSideOvertakesTheOther)) return true;
  for (const Request* earlier : waiting_) {
    if (earlier == request) break;
    if (earlier->side != side) return false;
  }
  return true;
}

void CaptureGate::Admit() {
  // FIFO: a request that may not enter blocks later ones of the other side.
  for (size_t i = 0; i < waiting_.size();) {
    Request* request = waiting_[i];
    if (!MayEnter(request->side, request)) {
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + i);
    ++inside_[request->side];
    request->admitted = true;
    request->changed.Signal();
  }
}

bool CaptureGate::Enter(Side side, absl::Duration longest) {
  absl::MutexLock lock(&mu_);
  if (MayEnter(side, nullptr)) {
    ++inside_[side];
    return true;
  }
  Request request{side};
  waiting_.push_back(&request);
  const absl::Time end = absl::Now() + longest;
  while (!request.admitted) {
    const int64_t before = progress();
    const absl::Time until =
        side == kWaits && IsKept(Rule::kWaitsEndWhereNoCaptureGetsOn)
            ? std::min(end, absl::Now() + longest_still_)
            : end;
    if (!request.changed.WaitWithDeadline(&mu_, until)) continue;
    if (until == end || progress() == before) break;
  }
  if (request.admitted) return true;
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &request));
  // This request may have been blocking later ones.
  if (IsKept(Rule::kWhoGivesUpAdmits)) Admit();
  return false;
}

void CaptureGate::Leave(Side side) {
  absl::MutexLock lock(&mu_);
  --inside_[side];
  if (IsKept(Rule::kWhoLeavesAdmits)) Admit();
}

void CaptureGate::Wait(absl::FunctionRef<bool()> wait, absl::Duration longest) {
  for (const bool again : {false, true}) {
    if (Enter(kWaits, longest)) {
      wait();
      Leave(kWaits);
      return;
    }
    if (PassBy(wait) || again) return;
  }
}

bool CaptureGate::PassBy(absl::FunctionRef<bool()> wait) {
  const bool counts_before = IsKept(Rule::kWhoPassesByIsCountedBefore);
  if (counts_before) passed_.fetch_add(1);
  const bool succeeded = wait();
  if (!counts_before) passed_.fetch_add(1);
  passed_and_ended_.fetch_add(1);
  return succeeded;
}

int64_t CaptureGate::waiting(Side side) {
  absl::MutexLock lock(&mu_);
  return std::count_if(
      waiting_.begin(), waiting_.end(),
      [side](const Request* request) { return request->side == side; });
}

CaptureGate* ProcessCaptureGate() {
  static auto* gate = new CaptureGate;
  return gate;
}

GatedCapture::GatedCapture(CaptureGate* gate, absl::Duration longest)
    : gate_(gate),
      entered_(gate->Enter(CaptureGate::kCaptures, longest)),
      passed_before_(gate->passed_and_ended()) {
  if (entered_) ++captures_on_this_thread;
}

GatedCapture::~GatedCapture() {
  if (!entered_) return;
  --captures_on_this_thread;
  gate_->Leave(CaptureGate::kCaptures);
}

absl::Status GatedCapture::status() const {
  if (entered_) return absl::OkStatus();
  return absl::DeadlineExceededError(
      "another thread waits for all of the GPU, as cudaDeviceSynchronize does, "
      "and a capture would end");
}

absl::Status GatedCapture::WhyEnded() const {
  if (!gate_->guards() || gate_->passed() != passed_before_) {
    return absl::InternalError(
        "the capture has ended, as by another thread's cudaDeviceSynchronize");
  }
  return absl::FailedPreconditionError(
      "the capture has ended, as by waiting for the GPU");
}

bool GatedCapture::IsOnThisThread() { return captures_on_this_thread > 0; }

}  // namespace tensorflow::multistream
