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

#include "tensorflow/core/common_runtime/multistream/serving/python_turns.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/util/spin.h"

namespace tensorflow {
namespace multistream {
namespace {

constexpr int kLooksBetweenYields = 64;
// Turns that make up for a lost one, and lost ones that are too many.
constexpr int kTurnsForOneLost = 4;
constexpr int kMostLost = 16;

// The number of the turn of one PythonTurns that the calling thread has had
// last and not left; 0: none.
thread_local int64_t mine = 0;

}  // namespace

PythonTurns::PythonTurns(const Limits& limits)
    : limits_(limits), others_next_(SteadyNanos() + limits.others.count()) {}

bool PythonTurns::Enter() {
  const int64_t begin = SteadyNanos();
  if (begin < off_until_.load(std::memory_order_relaxed)) return false;
  Waiter waiter;
  {
    absl::MutexLock lock(&mu_);
    // It does not wait for those that are waking.
    if (since_.load(std::memory_order_relaxed) == 0 &&
        FirstThatLooks() == nullptr) {
      mine = Begin();
      return true;
    }
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
  const bool has_turn =
      waiter.looks &&
      YieldUntil(begin + most - SteadyNanos(), kLooksBetweenYields, [&] {
        return waiter.turn.load(std::memory_order_acquire) != 0 ||
               (IsFree() && TakeIfFree(&waiter));
      });
  if (!has_turn) GiveUp(&waiter);
  mine = waiter.turn.load(std::memory_order_relaxed);
  return mine != 0;
}

void PythonTurns::Leave() {
  const int64_t left = std::exchange(mine, 0);
  if (left == 0) return;
  std::vector<Waiter*> called;
  {
    absl::MutexLock lock(&mu_);
    if (turn_ != left) return;  // it was lost
    lost_ = std::max(0, lost_ - 1);
    since_.store(0, std::memory_order_relaxed);
    if (waiters_.empty()) return;
    const int64_t now = SteadyNanos();
    if (now > others_next_) {
      others_next_ = now + limits_.others.count();
      Begin();
      is_for_others_ = true;
    } else if (Waiter* next = FirstThatLooks()) {
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

bool PythonTurns::IsFree() const {
  const int64_t since = since_.load(std::memory_order_relaxed);
  return since == 0 || SteadyNanos() - since > limits_.turn.count();
}

bool PythonTurns::TakeIfFree(Waiter* waiter) {
  std::vector<Waiter*> called;
  {
    absl::MutexLock lock(&mu_);
    if (waiter->turn.load(std::memory_order_relaxed) != 0) return true;
    if (!IsFree()) return false;
    if (since_.load(std::memory_order_relaxed) != 0) CountLost();
    called = Remove(waiter);
    waiter->turn.store(Begin(), std::memory_order_relaxed);
  }
  Wake(called);
  return true;
}

void PythonTurns::GiveUp(Waiter* waiter) {
  std::vector<Waiter*> called;
  {
    absl::MutexLock lock(&mu_);
    if (waiter->turn.load(std::memory_order_relaxed) != 0) return;
    called = Remove(waiter);
  }
  Wake(called);
  // Somebody may be about to wake it.
  if (waiter->is_called && !waiter->looks) waiter->wakes.WaitForNotification();
}

std::vector<PythonTurns::Waiter*> PythonTurns::Remove(Waiter* waiter) {
  waiters_.erase(waiter->place);
  std::vector<Waiter*> called;
  int place = 0;
  for (Waiter* one : waiters_) {
    if (++place > limits_.looking) break;
    if (!std::exchange(one->is_called, true)) called.push_back(one);
  }
  return called;
}

void PythonTurns::Wake(const std::vector<Waiter*>& called) {
  for (Waiter* waiter : called) waiter->wakes.Notify();
}

PythonTurns::Waiter* PythonTurns::FirstThatLooks() {
  auto first = std::find_if(waiters_.begin(), waiters_.end(),
                            [](const Waiter* waiter) { return waiter->looks; });
  return first == waiters_.end() ? nullptr : *first;
}

int64_t PythonTurns::Begin() {
  is_for_others_ = false;
  since_.store(SteadyNanos(), std::memory_order_relaxed);
  return ++turn_;
}

void PythonTurns::CountLost() {
  if (is_for_others_) return;
  lost_ += kTurnsForOneLost;
  if (lost_ < kMostLost * kTurnsForOneLost) return;
  lost_ = 0;
  off_until_.store(SteadyNanos() + limits_.off.count(),
                   std::memory_order_relaxed);
}

}  // namespace multistream
}  // namespace tensorflow
