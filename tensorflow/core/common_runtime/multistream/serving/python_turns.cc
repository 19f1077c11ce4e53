// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/python_turns.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/common_runtime/multistream/base/spin.h"

namespace tensorflow::multistream {
namespace {

constexpr int kLooksBetweenYields = 64;

// The number of the turn that the calling thread has (or had, if the turn was
// lost since); 0: none. A thread uses one PythonTurns only.
thread_local int64_t mine = 0;

}  // namespace

bool PythonTurns::Enter() {
  Leave();  // ends the turn of a nested call
  const int64_t begin = SteadyNanos();
  if (IsOff()) return false;
  Waiter waiter;
  {
    absl::MutexLock lock(&mu_);
    // Waiters that are still waking do not keep this thread out. If no waiter
    // polls, taking over a lost turn does not count as a loss: nobody waited.
    if (IsFree() && FirstThatLooks() == nullptr) {
      mine = Begin();
      return true;
    }
    // Waiting for the end of a pause must not lead to another pause.
    const bool is_pause =
        holds_since_.load(std::memory_order_relaxed) == kNobody;
    if (waited_since_ == 0 && !is_pause) waited_since_ = begin;
    waiter.place = waiters_.insert(waiters_.end(), &waiter);
    waiter.looks = waiter.is_called =
        static_cast<int>(waiters_.size()) <= limits_.looking;
  }
  const int64_t most = limits_.wait.count();
  if (!waiter.looks &&
      waiter.wakes.WaitForNotificationWithTimeout(absl::Nanoseconds(most))) {
    absl::MutexLock lock(&mu_);
    waiter.looks = true;
  }
  if (waiter.looks) {
    YieldUntil(begin + most - SteadyNanos(), kLooksBetweenYields, [&] {
      return waiter.turn.load(std::memory_order_relaxed) != 0 || IsOff() ||
             (IsFree() && TakeIfFree(&waiter));
    });
  }
  if (waiter.turn.load(std::memory_order_acquire) == 0 && GiveUp(&waiter)) {
    return false;
  }
  mine = waiter.turn.load(std::memory_order_relaxed);
  return true;
}

void PythonTurns::HasLock() {
  if (mine == 0) return;
  // Still this thread's turn: only after this store can a turn be lost.
  holds_since_.store(SteadyNanos(), std::memory_order_relaxed);
}

void PythonTurns::Leave() {
  const int64_t left = std::exchange(mine, 0);
  if (left == 0) return;
  std::vector<Waiter*> called;
  {
    absl::MutexLock lock(&mu_);
    if (turn_ != left) return;  // it was lost
    if (lost_ > 0 && --lost_ == 0) off_ = limits_.off.count();
    if (!IsKept(Rule::kWhoLeavesEndsItsTurn)) return;
    holds_since_.store(kNobody, std::memory_order_relaxed);
    if (BeginPause()) return;
    if (Waiter* next = FirstThatLooks()) {
      called = Remove(next);
      next->turn.store(Begin(), std::memory_order_release);
    }
  }
  Wake(called);
}

int PythonTurns::waiting() const {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(waiters_.size());
}

bool PythonTurns::IsOff() const {
  return SteadyNanos() < off_until_.load(std::memory_order_relaxed);
}

bool PythonTurns::IsFree() const {
  const int64_t since = holds_since_.load(std::memory_order_relaxed);
  if (since == kAsks) return false;
  const int64_t now = SteadyNanos();
  return since == kNobody ? now >= pause_until_.load(std::memory_order_relaxed)
                          : now - since > limits_.turn.count() &&
                                IsKept(Rule::kWhoHasTheTurnLongLosesIt);
}

bool PythonTurns::TakeIfFree(Waiter* waiter) {
  std::vector<Waiter*> called;
  {
    absl::MutexLock lock(&mu_);
    if (waiter->turn.load(std::memory_order_relaxed) != 0) return true;
    if ((!IsFree() || IsOff()) && IsKept(Rule::kOneHasTheTurn)) return false;
    if (holds_since_.load(std::memory_order_relaxed) != kNobody) CountLost();
    called = Remove(waiter);
    waiter->turn.store(Begin(), std::memory_order_relaxed);
  }
  Wake(called);
  return true;
}

bool PythonTurns::GiveUp(Waiter* waiter) {
  std::vector<Waiter*> called;
  {
    absl::MutexLock lock(&mu_);
    if (waiter->turn.load(std::memory_order_relaxed) != 0) return false;
    called = Remove(waiter);
  }
  Wake(called);
  // Another thread may be about to notify `waiter`, which dies on return.
  if (waiter->is_called && !waiter->looks) waiter->wakes.WaitForNotification();
  return true;
}

std::vector<PythonTurns::Waiter*> PythonTurns::Remove(Waiter* waiter) {
  waiters_.erase(waiter->place);
  std::vector<Waiter*> called;
  int place = 0;
  const bool is_off = IsOff();  // then all waiters leave
  for (Waiter* one : waiters_) {
    if (++place > limits_.looking && !is_off) break;
    if (!std::exchange(one->is_called, true)) called.push_back(one);
  }
  return called;
}

void PythonTurns::Wake(const std::vector<Waiter*>& called) {
  if (!IsKept(Rule::kWhoGoesCallsTheNext)) return;
  for (Waiter* waiter : called) waiter->wakes.Notify();
}

PythonTurns::Waiter* PythonTurns::FirstThatLooks() {
  auto first = std::find_if(waiters_.begin(), waiters_.end(),
                            [](const Waiter* waiter) { return waiter->looks; });
  return first == waiters_.end() ? nullptr : *first;
}

bool PythonTurns::BeginPause() {
  if (waited_since_ == 0) return false;
  const int64_t now = SteadyNanos();
  if (now - waited_since_ < limits_.pause_after.count()) return false;
  waited_since_ = 0;
  pause_until_.store(now + limits_.pause.count(), std::memory_order_relaxed);
  return true;
}

int64_t PythonTurns::Begin() {
  holds_since_.store(kAsks, std::memory_order_relaxed);
  return ++turn_;
}

void PythonTurns::CountLost() {
  lost_ += limits_.turns_for_lost;
  if (lost_ < limits_.lost * limits_.turns_for_lost) return;
  // One below the limit: until kept turns drain it, one more loss is enough.
  lost_ -= limits_.turns_for_lost;
  off_until_.store(SteadyNanos() + off_, std::memory_order_relaxed);
  off_ = std::min(2 * off_, int64_t{limits_.most_off.count()});
}

}  // namespace tensorflow::multistream
