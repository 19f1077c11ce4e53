// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The sanitizer names what breaks the order of streams at node level.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_stream_group.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_level_fixture.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_on_thread.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {
namespace {

// Shows that the sanitizer finds a fault, in the run in which it found none.
//
//   group 1  --- g1_a -----------          g1_a's memory is released when
//                     \                    g2_b has been launched; nothing
//   group 2  ---------- w --- g2_b ---     orders group 1 after g2_b.
// Names end with `suffix`: a pair of ops is reported once.
Scope HandOver(const std::string& suffix) {
  Scope root = GpuScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Output a = ops::Tanh(root.WithOpName("g1_a" + suffix), x);
  Output b = ops::MatMul(root.WithOpName("g2_b" + suffix), a, a);
  ops::Neg(root.WithOpName("g2_c" + suffix), b);
  return root;
}

class FaultTest : public NodeLevelTest {
 protected:
  static EmulatedStreamGroup* Group(int i) {
    return static_cast<EmulatedStreamGroup*>(FindGpuGroups(0)->group(i));
  }

  // The sanitizer reports the fault, in the graph of HandOver, in these words.
  void ExpectReport(TestFault fault, int times,
                    const std::vector<std::string>& words) {
    const std::string suffix = std::to_string(static_cast<int>(fault));
    auto session = GroupedSession(HandOver(suffix));
    const Tensor x = Square(32, 1);
    auto run = [&] { RunOnce(session.get(), x, "g2_c" + suffix + ":0"); };
    run();
    EXPECT_EQ(NewReports(), 0);
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(InjectTestFault(fault, times));
    // Make the ops take long: memory is not in use once ops have completed.
    for (int i = 0; i < kGroups; ++i) Group(i)->Pause();
    std::atomic<bool> ended{false};
    std::thread step([&] {
      run();
      ended = true;
    });
    EXPECT_TRUE(
        Eventually([&] { return ended || Group(0)->threads_that_wait() > 0; }));
    for (int i = 0; i < kGroups; ++i) Group(i)->Resume();
    step.join();
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_GT(NewReports(), 0) << said;
    for (const std::string& word : words) {
      EXPECT_NE(said.find(word), std::string::npos) << word << "\n" << said;
    }
  }
};

TEST_F(FaultTest, AWaitThatIsDroppedIsReportedByName) {
  // The first wait is for x, the second for g1_a.
  ExpectReport(TestFault::kDropWait, 2,
               {"g2_b", "g1_a", "group 2 must wait for group 1"});
}

TEST_F(FaultTest, AHoldThatIsDroppedIsReportedByName) {
  ExpectReport(TestFault::kDropHold, 100, {"g2_b", "freed"});
}

TEST_F(FaultTest, MemoryGivenBackTooEarlyIsReportedByName) {
  ExpectReport(TestFault::kReleaseTooEarly, 100, {"g2_b", "freed"});
}

// TensorFlow copies an eager tensor from the host to memory that no op asked
// for, and waits for the copy, which comes after all work of the leader's
// stream.
TEST_F(FaultTest, MemoryForACopyFromTheHostIsUsedAtOnce) {
  auto session = GroupedSession(HandOver("_copy"));
  StreamGroup* leader = FindGpuGroups(0)->leader();
  Sanitizer* sanitizer = leader->sanitizer();
  constexpr size_t kSize = 4096;
  auto use_again = [&](const std::string& op) {
    void* first = leader->allocator()->AllocateRaw(64, kSize);
    sanitizer->Launch(0, op + "_before", {{first, kSize, true, "m"}});
    leader->allocator()->DeallocateRaw(first);
    void* again = leader->allocator()->AllocateRaw(64, kSize);
    EXPECT_EQ(again, first);
    sanitizer->Launch(1, op, {{again, kSize, false, "m"}});
    sanitizer->WaitForTail(0, 1);
    leader->allocator()->DeallocateRaw(again);
  };
  use_again("copied");
  EXPECT_EQ(NewReports(), 0);
  // Other groups may use memory that an op asked for only after that op.
  {
    GroupOnThread on(leader);
    use_again("computed");
  }
  EXPECT_EQ(NewReports(), 1);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
