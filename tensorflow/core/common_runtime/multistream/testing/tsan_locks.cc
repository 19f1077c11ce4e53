// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Tells ThreadSanitizer about Abseil's locks, whose code in TensorFlow's
// library is not instrumented: each function below replaces the library's,
// calls the original, and reports acquire and release. Without this, every
// access under an absl::Mutex would be reported as a race.

#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include <atomic>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

#define TFMS_ABSL "lts_20250814"
static_assert(ABSL_LTS_RELEASE_VERSION == 20250814,
              "the names below are of another release of Abseil");

namespace absl {
ABSL_NAMESPACE_BEGIN
namespace {

template <class Function>
Function* Stock(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

void AnnotatedLock(Mutex* mutex, void (*stock)(Mutex*), unsigned flags) {
  __tsan_mutex_pre_lock(mutex, flags);
  stock(mutex);
  __tsan_mutex_post_lock(mutex, flags, /*recursion=*/0);
}

bool AnnotatedTryLock(Mutex* mutex, bool (*stock)(Mutex*), unsigned flags) {
  flags |= __tsan_mutex_try_lock;
  __tsan_mutex_pre_lock(mutex, flags);
  const bool locked = stock(mutex);
  __tsan_mutex_post_lock(mutex,
                         locked ? flags : flags | __tsan_mutex_try_lock_failed,
                         /*recursion=*/0);
  return locked;
}

void AnnotatedUnlock(Mutex* mutex, void (*stock)(Mutex*), unsigned flags) {
  __tsan_mutex_pre_unlock(mutex, flags);
  stock(mutex);
  __tsan_mutex_post_unlock(mutex, flags);
}

// The lock is released while `wait` blocks.
template <class Wait>
bool AnnotatedWait(Mutex* mutex, unsigned flags, const Wait& wait) {
  __tsan_mutex_pre_unlock(mutex, flags);
  __tsan_mutex_post_unlock(mutex, flags);
  __tsan_mutex_pre_lock(mutex, flags);
  const bool result = wait();
  __tsan_mutex_post_lock(mutex, flags, /*recursion=*/0);
  return result;
}

}  // namespace

void Mutex::lock() {
  static const auto stock =
      Stock<void(Mutex*)>("_ZN4absl12" TFMS_ABSL "5Mutex4lockEv");
  AnnotatedLock(this, stock, 0);
}

void Mutex::lock_shared() {
  static const auto stock =
      Stock<void(Mutex*)>("_ZN4absl12" TFMS_ABSL "5Mutex11lock_sharedEv");
  AnnotatedLock(this, stock, __tsan_mutex_read_lock);
}

bool Mutex::try_lock() {
  static const auto stock =
      Stock<bool(Mutex*)>("_ZN4absl12" TFMS_ABSL "5Mutex8try_lockEv");
  return AnnotatedTryLock(this, stock, 0);
}

bool Mutex::try_lock_shared() {
  static const auto stock =
      Stock<bool(Mutex*)>("_ZN4absl12" TFMS_ABSL "5Mutex15try_lock_sharedEv");
  return AnnotatedTryLock(this, stock, __tsan_mutex_read_lock);
}

void Mutex::unlock() {
  static const auto stock =
      Stock<void(Mutex*)>("_ZN4absl12" TFMS_ABSL "5Mutex6unlockEv");
  AnnotatedUnlock(this, stock, 0);
}

void Mutex::unlock_shared() {
  static const auto stock =
      Stock<void(Mutex*)>("_ZN4absl12" TFMS_ABSL "5Mutex13unlock_sharedEv");
  AnnotatedUnlock(this, stock, __tsan_mutex_read_lock);
}

bool Mutex::LockWhenCommon(const Condition& condition,
                           synchronization_internal::KernelTimeout timeout,
                           bool exclusive) {
  static const auto stock = Stock<bool(
      Mutex*, const Condition&, synchronization_internal::KernelTimeout, bool)>(
      "_ZN4absl12" TFMS_ABSL
      "5Mutex14LockWhenCommonERKNS0_9ConditionENS0_24synchronization_"
      "internal13KernelTimeoutEb");
  const unsigned flags = exclusive ? 0 : __tsan_mutex_read_lock;
  __tsan_mutex_pre_lock(this, flags);
  const bool true_in_time = stock(this, condition, timeout, exclusive);
  __tsan_mutex_post_lock(this, flags, /*recursion=*/0);
  return true_in_time;
}

bool Mutex::AwaitCommon(const Condition& condition,
                        synchronization_internal::KernelTimeout timeout) {
  static const auto stock = Stock<bool(
      Mutex*, const Condition&, synchronization_internal::KernelTimeout)>(
      "_ZN4absl12" TFMS_ABSL
      "5Mutex11AwaitCommonERKNS0_9ConditionENS0_24synchronization_"
      "internal13KernelTimeoutE");
  // How the caller holds the lock: the bit is Abseil's kMuReader.
  const bool shared = (mu_.load(std::memory_order_relaxed) & 1) != 0;
  return AnnotatedWait(this, shared ? __tsan_mutex_read_lock : 0,
                       [&] { return stock(this, condition, timeout); });
}

bool CondVar::WaitCommon(Mutex* mutex,
                         synchronization_internal::KernelTimeout timeout) {
  static const auto stock =
      Stock<bool(CondVar*, Mutex*, synchronization_internal::KernelTimeout)>(
          "_ZN4absl12" TFMS_ABSL
          "7CondVar10WaitCommonEPNS0_5MutexENS0_24synchronization_internal13"
          "KernelTimeoutE");
  return AnnotatedWait(mutex, /*flags=*/0,
                       [&] { return stock(this, mutex, timeout); });
}

void Notification::Notify() {
  static const auto stock = Stock<void(Notification*)>(
      "_ZN4absl12" TFMS_ABSL "12Notification6NotifyEv");
  __tsan_release(&notified_yet_);
  stock(this);
}

void Notification::WaitForNotification() const {
  static const auto stock = Stock<void(const Notification*)>(
      "_ZNK4absl12" TFMS_ABSL "12Notification19WaitForNotificationEv");
  stock(this);
  __tsan_acquire(const_cast<std::atomic<bool>*>(&notified_yet_));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static const auto stock = Stock<bool(const Notification*, Duration)>(
      "_ZNK4absl12" TFMS_ABSL
      "12Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  const bool notified = stock(this, timeout);
  if (notified) {
    __tsan_acquire(const_cast<std::atomic<bool>*>(&notified_yet_));
  }
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static const auto stock = Stock<bool(const Notification*, Time)>(
      "_ZNK4absl12" TFMS_ABSL
      "12Notification31WaitForNotificationWithDeadlineENS0_4TimeE");
  const bool notified = stock(this, deadline);
  if (notified) {
    __tsan_acquire(const_cast<std::atomic<bool>*>(&notified_yet_));
  }
  return notified;
}

bool BlockingCounter::DecrementCount() {
  static const auto stock = Stock<bool(BlockingCounter*)>(
      "_ZN4absl12" TFMS_ABSL "15BlockingCounter14DecrementCountEv");
  __tsan_release(this);
  const bool last = stock(this);
  if (last) __tsan_acquire(this);
  return last;
}

void BlockingCounter::Wait() {
  static const auto stock = Stock<void(BlockingCounter*)>(
      "_ZN4absl12" TFMS_ABSL "15BlockingCounter4WaitEv");
  stock(this);
  __tsan_acquire(this);
}

ABSL_NAMESPACE_END
}  // namespace absl
