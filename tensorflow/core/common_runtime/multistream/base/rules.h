// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Which rules keep the protocols between threads right? Mutation tests of the
// search of interleavings (testing/search/scheduler.h) break one rule at a
// time, and the search has to find a failure. In the product each rule is
// kept, and IsKept is constant.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_RULES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_RULES_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow::multistream {

enum class Rule {
  kNone,
  // base/spinning_locks.h
  kReadersStandBackForAWriter,
  kReadersStandBackForTheirOwnLocksWriter,
  kStandingBackEnds,
  kWhoSpinsForLongSleepsInTheLock,
  kOneLooksAtATime,
  kTheTurnToLookIsGivenOn,
  // stream/sided_locks.h
  kMoversExcludeMovers,
  kMoversExcludeReaders,
  kMoversExcludeWriters,
  kReadersExcludeWriters,
  kWhoWaitsIsNotOvertaken,
  kWhoLeavesWakesTheWaitersOfAllKeys,
  // stream/variable_order.h
  kChangeIsNumberedOnceLaunched,
  kChangeIsNumberedBeforeLeaving,
  kChangesAreNumberedInALock,
  kNumberIsReadBeforeTheEvent,
  kSeenIsNotedAfterTheWait,
  kReadIsMarkedOnceLaunched,
  kReadIsMarkedBeforeLeaving,
  kMarksAreTakenBeforeTheWait,
  kOnlyMarksWaitedForAreTaken,
  kReadersAreWaitedForInALock,
  kWriteIsCountedBeforeItIsMade,
  // stream/stream_order.h
  kPositionIsReadBeforeTheEvent,
  kKnownAfterTheWait,
  // memory/stream_aware_pool.h
  kWhoTakesAnothersMemoryWaits,
  kFreesAreReadBeforeTheWait,
  // ops/holds.h
  kHeldByOneUntilEnqueued,
  kHeldUntilCompleted,
  // step/step_threads.h
  kWhoSchedulesWakesTheWatcher,
  kWhoIsBlockedIsReplaced,
  kWhoIsBlockedDoesNotCountForItsGroup,
  kWhoAdmitsTheLastTellsOfTheEnd,
  // cuda/capture_gate.h
  kCapturesExcludeWaits,
  kNoSideOvertakesTheOther,
  kWhoLeavesAdmits,
  kWhoGivesUpAdmits,
  kWaitsEndWhereNoCaptureGetsOn,
  kWhoPassesByIsCountedBefore,
  // capture/variables/variable_home.h
  kHomeKnowsItsOwnBuffer,
  kHomeIsFreeWhenItIsWrittenTo,
  kWhoPutsBackIsAMover,
  // capture/replay/recorded_step.h
  kWhoChangesIsAMover,
  kOneLaunchAtATime,
  kOneRecordsAtATime,
  kChangedIsItsOwn,
  kEndsAfterItsStream,
  kStagedUntilCompleted,
};

#if defined(TFMS_SEARCHED)
// A second rule is broken, too, where two rules keep the same promise.
inline Rule broken_rule = Rule::kNone;
inline Rule also_broken_rule = Rule::kNone;
inline bool IsKept(Rule rule) {
  return rule == Rule::kNone ||
         (rule != broken_rule && rule != also_broken_rule);
}
#else
constexpr bool IsKept(Rule) { return true; }
#endif

// A MutexLock, unless `rule` is broken.
class ABSL_SCOPED_LOCKABLE RuleLock {
 public:
  RuleLock(Rule rule, absl::Mutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu)
      : mu_(IsKept(rule) ? mu : nullptr) {
    if (mu_ != nullptr) mu_->Lock();
  }
  ~RuleLock() ABSL_UNLOCK_FUNCTION() {
    if (mu_ != nullptr) mu_->Unlock();
  }
  RuleLock(const RuleLock&) = delete;
  RuleLock& operator=(const RuleLock&) = delete;

 private:
  absl::Mutex* const mu_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_BASE_RULES_H_
