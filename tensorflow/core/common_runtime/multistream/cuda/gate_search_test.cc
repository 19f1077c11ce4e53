// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Searches interleavings of captures and of waits for the whole GPU: the two
// sides exclude each other, neither starves, and no thread blocks forever.

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/cuda/capture_gate.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/expect_finds.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

namespace tensorflow::multistream::search {
namespace {

constexpr CaptureGate::Side kCaptures = CaptureGate::kCaptures;
constexpr CaptureGate::Side kWaits = CaptureGate::kWaits;
constexpr absl::Duration kForever = absl::InfiniteDuration();

// A GPU with CUDA's rule: a wait for the whole GPU during a capture fails, and
// ends the capture.
class World {
 public:
  explicit World(absl::Duration longest_still = CaptureGate::kLongestStill)
      : gate_(longest_still) {
    gate_.set_guards(true);
  }

  CaptureGate* gate() { return &gate_; }
  void Touch(const char* what) { search::Touch(here_, what, TFMS_SEARCH_HERE); }
  template <class Ready>
  void BlockUntil(Ready ready) {
    search::BlockUntil(here_, ready, "waits for another", TFMS_SEARCH_HERE);
  }

  void Capture(absl::Duration longest) {
    const GatedCapture capture(&gate_, longest);
    if (!capture.status().ok()) return;
    Touch("begins a capture");
    const int ended = ended_;
    ++capturing_;
    Touch("launches");
    capture.NoteProgress();
    Touch("ends a capture");
    --capturing_;
    Expect(ended == ended_ || absl::IsInternal(capture.WhyEnded()),
           "a capture that another thread has ended is not tried again");
  }
  // Stands for CUDA's wait for the whole GPU. False: it failed.
  bool WaitForTheGpu() {
    Touch("waits for the GPU");
    if (capturing_ == 0) return true;
    ++ended_;
    Touch("has ended a capture");
    return false;
  }
  void Wait(absl::Duration longest) {
    gate_.Wait(
        [this] {
          const bool has_waited = WaitForTheGpu();
          Expect(has_waited || gate_.passed() > 0,
                 "a wait that is inside ends a capture");
          return has_waited;
        },
        longest);
  }
  void ExpectEmpty() {
    for (auto side : {kCaptures, kWaits}) {
      Expect(gate_.waiting(side) == 0, "a waiter is left");
      Expect(gate_.Enter(side, absl::ZeroDuration()),
             "a thread is left inside");
      gate_.Leave(side);
    }
  }

 private:
  CaptureGate gate_;
  const Shared here_;
  int capturing_ = 0;
  int ended_ = 0;
};

struct Longest {
  absl::Duration capture = kForever;
  absl::Duration wait = kForever;
  absl::Duration still = kForever;
};

Body CapturesAndWaits(int threads, const Longest& longest = {}) {
  return [=](Program* program) {
    auto world = std::make_shared<World>(longest.still);
    for (int i = 0; i < threads; ++i) {
      program->Thread(absl::StrCat("captures ", i), [=] {
        world->Capture(longest.capture);
        world->Capture(longest.capture);
      });
      program->Thread(absl::StrCat("waits ", i),
                      [=] { world->Wait(longest.wait); });
    }
    program->Run();
    world->ExpectEmpty();
  };
}

// A wait with PassBy, beside captures.
Body PassBy(int threads) {
  return [=](Program* program) {
    auto world = std::make_shared<World>();
    for (int i = 0; i < threads; ++i) {
      program->Thread(absl::StrCat("captures ", i),
                      [=] { world->Capture(kForever); });
    }
    program->Thread("waits", [=] {
      world->gate()->PassBy([world] { return world->WaitForTheGpu(); });
    });
    program->Run();
    world->ExpectEmpty();
  };
}

// Two threads keep capturing until the wait has been inside.
void CapturesWithoutEnd(Program* program) {
  auto world = std::make_shared<World>(kForever);
  auto has_waited = std::make_shared<bool>(false);
  for (const char* name : {"captures", "captures, too"}) {
    program->Thread(name, [=] {
      while (!*has_waited) {
        const GatedCapture capture(world->gate(), kForever);
        std::this_thread::yield();
      }
    });
  }
  program->Thread("waits", [=] {
    Expect(world->gate()->Enter(kWaits, kForever), "it has given up");
    *has_waited = true;
    world->gate()->Leave(kWaits);
  });
  program->Run();
}

// A capture that cannot end before a wait for the GPU has returned.
void NeededWait(Program* program) {
  auto world = std::make_shared<World>();
  auto has_waited = std::make_shared<bool>(false);
  program->Thread("captures", [=] {
    const GatedCapture capture(world->gate(), kForever);
    world->BlockUntil([has_waited] { return *has_waited; });
  });
  program->Thread("waits", [=] {
    world->gate()->Wait([] { return true; }, kForever);
    world->Touch("has waited");
    *has_waited = true;
  });
  program->Run();
  world->ExpectEmpty();
}

// A wait that ends only after another wait, which queued behind a capture that
// gives up.
void WaitsAroundACapture(Program* program) {
  auto world = std::make_shared<World>(kForever);
  auto has_waited = std::make_shared<bool>(false);
  program->Thread("waits", [=] {
    Expect(world->gate()->Enter(kWaits, kForever), "it has given up");
    world->BlockUntil([has_waited] { return *has_waited; });
    world->gate()->Leave(kWaits);
  });
  program->Thread("captures",
                  [=] { world->Capture(CaptureGate::kLongestOfCapture); });
  program->Thread("is needed", [=] {
    Expect(world->gate()->Enter(kWaits, kForever), "it has given up");
    world->gate()->Leave(kWaits);
    world->Touch("has waited");
    *has_waited = true;
  });
  program->Run();
  world->ExpectEmpty();
}

TEST(GateSearchTest, CapturesAndWaitsExcludeEachOther) {
  EXPECT_TRUE(SearchAll(CapturesAndWaits(1), Of(3)).all);
  SearchAtRandom(CapturesAndWaits(2), Of(0, 0.5));
  EXPECT_FINDS(Rule::kCapturesExcludeWaits, SearchAll(CapturesAndWaits(1)),
               "that is inside ends a capture");
  EXPECT_FINDS(Rule::kWhoLeavesAdmits, SearchAll(CapturesAndWaits(1)),
               "all threads are blocked");
}

TEST(GateSearchTest, ACaptureThatAnotherThreadHasEndedIsTriedAgain) {
  EXPECT_TRUE(SearchAll(PassBy(1), Of(3)).all);
  SearchAtRandom(PassBy(2), Of(0, 0.5));
  EXPECT_FINDS(Rule::kWhoPassesByIsCountedBefore, SearchAll(PassBy(1)),
               "is not tried again");
}

TEST(GateSearchTest, BothSidesGetIn) {
  EXPECT_TRUE(SearchAll(CapturesWithoutEnd, Of(2)).all);
  EXPECT_FINDS(Rule::kNoSideOvertakesTheOther, SearchAll(CapturesWithoutEnd),
               "does not end");
}

TEST(GateSearchTest, NobodyIsStopped) {
  EXPECT_TRUE(SearchAll(NeededWait, Of(3)).all);
  EXPECT_TRUE(SearchAll(WaitsAroundACapture, Of(3)).all);
  SearchAtRandom(CapturesAndWaits(2, {CaptureGate::kLongestOfCapture,
                                      CaptureGate::kLongestOfWait,
                                      CaptureGate::kLongestStill}),
                 Of(0, 0.5));
  EXPECT_FINDS(Rule::kWaitsEndWhereNoCaptureGetsOn, SearchAll(NeededWait),
               "all threads are blocked");
  EXPECT_FINDS(Rule::kWhoGivesUpAdmits, SearchAll(WaitsAroundACapture),
               "all threads are blocked");
}

}  // namespace
}  // namespace tensorflow::multistream::search
