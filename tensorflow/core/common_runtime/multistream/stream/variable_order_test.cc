// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/variable_order.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/watched_thread.h"

namespace tensorflow::multistream {
namespace {

// Two variables, which share the slots of all rows but one.
constexpr GpuGroups::StateKey kState[] = {1};
constexpr GpuGroups::StateKey kOtherState[] = {2};
// Shares all slots of kState.
constexpr GpuGroups::StateKey kAlike[] = {
    1 | uint64_t{1} << (VariableOrder::kRows * VariableOrder::kSlotBits)};

class VariableOrderTest : public ::testing::Test {
 protected:
  // "read2", "write" or "move" uses kState, in upper case kOtherState.
  void Begin(absl::string_view use) {
    const auto& state = use[0] > 'Z' ? kState : kOtherState;
    switch (use[0] | 0x20) {
      case 'r':
        return groups_->BeginRead(groups_->group(use.back() - '0'), state);
      case 'w':
        return groups_->BeginWrite(state);
      default:
        return groups_->BeginMove(state);
    }
  }
  void End(absl::string_view use) {
    const auto& state = use[0] > 'Z' ? kState : kOtherState;
    switch (use[0] | 0x20) {
      case 'r':
        return groups_->EndRead(groups_->group(use.back() - '0'), state);
      case 'w':
        return groups_->EndWrite(state);
      default:
        return groups_->EndMove(state);
    }
  }
  // Steps: uses, "alike": a write of kAlike, "Work" of the leader, and "<2":
  // group 2 goes after that work.
  void Run(absl::string_view program) {
    for (absl::string_view step : absl::StrSplit(program, ' ')) {
      if (step == "Work") {
        groups_->NoteLeaderWork();
      } else if (step == "alike") {
        groups_->BeginWrite(kAlike);
        groups_->EndWrite(kAlike);
      } else if (step[0] == '<') {
        groups_->OrderAfterLeader(groups_->group(step[1] - '0'));
      } else {
        Begin(step);
        End(step);
      }
    }
  }
  // "0!": group 0 records an event; "1<0!": group 1 waits for that event;
  // "0<1": group 0 waits for group 1.
  std::string Calls() {
    std::string calls = absl::StrJoin(record_.Take(), ", ");
    absl::StrReplaceAll({{" records", "!"},
                         {" waits for event of 0", "<0!"},
                         {" waits for ", "<"}},
                        &calls);
    return calls;
  }

  StreamRecord record_;
  const std::unique_ptr<GpuGroups> groups_ =
      NewFakeGroups(/*gpu=*/2, /*count=*/4, &record_);
};

struct Case {
  const char* program;
  const char* calls;
};

class VariableOrderCasesTest : public VariableOrderTest,
                               public ::testing::WithParamInterface<Case> {};

TEST_P(VariableOrderCasesTest, StreamsWait) {
  Run(GetParam().program);
  EXPECT_EQ(Calls(), GetParam().calls) << GetParam().program;
}

INSTANTIATE_TEST_SUITE_P(
    Waits, VariableOrderCasesTest,
    ::testing::Values(
        // Nobody waits for a leader that did nothing.
        Case{"<0 <1 <2 <3", ""},
        // A group waits once for work; another group uses the same event.
        Case{"Work <2 <2 <3 <3", "0!, 2<0!, 3<0!"},
        // A group waits again for later work, and only for the last event.
        Case{"Work <1 Work <1 <2", "0!, 1<0!, 0!, 1<0!, 2<0!"},
        // The leader never waits for itself; others still wait.
        Case{"Work <0 <1", "0!, 1<0!"},
        // A read waits for the last write of the same variable.
        Case{"write read1 read1 write read1", "0!, 1<0!, 0<1, 0!, 1<0!"},
        // Uses of different variables do not wait for each other.
        Case{"write read1 WRITE read1 WRITE READ2", "0!, 1<0!, 0!, 2<0!"},
        Case{"read1 WRITE READ2 write write WRITE", "0!, 2<0!, 0<1, 0<2"},
        // Work of the leader that changes no variable is not waited for.
        Case{"Work read1 write Work read1", "0<1, 0!, 1<0!"},
        // After a wait for the leader's work no read waits for earlier writes.
        Case{"write WRITE <1 read1 READ1", "0!, 1<0!"},
        Case{"write WRITE read1 READ1 READ2", "0!, 1<0!, 2<0!"},
        // A wait for a group covers its reads of all variables. Here a shared
        // slot says so to the second write, and a later read is seen again.
        Case{"read1 READ1 write WRITE READ1 WRITE", "0<1, 0!, 1<0!, 0<1"},
        // Another variable with the same slots costs a wait.
        Case{"alike read1 read1", "0!, 1<0!"},
        Case{"read1 alike write read1", "0<1, 0!, 1<0!"},
        // A write or a move waits for exactly the groups that have read since
        // the last one.
        Case{"read1 read3 read3 write write read2 move",
             "0<1, 0<3, 0!, 2<0!, 0<2"},
        // The leader's reads need no wait.
        Case{"read0 write read0", ""}));

// `second` comes while `first` is launched.
struct Pair {
  const char* first;
  const char* second;
  bool excludes;
};

class VariableOrderPairsTest : public VariableOrderTest,
                               public ::testing::WithParamInterface<Pair> {};

TEST_P(VariableOrderPairsTest, TheSecondStaysOutIfTheFirstExcludesIt) {
  const auto [first, second, excludes] = GetParam();
  Begin(first);
  record_.Take();
  {
    WatchedThread thread([this, second = second] { Run(second); });
    // A thread that is not excluded ends meanwhile, or this test hangs.
    if (excludes) {
      while (groups_->threads_that_wait_for_state() == 0) {
        ASSERT_FALSE(thread.EndsBeforeItSleeps());
      }
      EXPECT_EQ(Calls(), "");
      End(first);
    }
  }
  if (!excludes) End(first);
}

INSTANTIATE_TEST_SUITE_P(
    Pairs, VariableOrderPairsTest,
    ::testing::Values(
        Pair{"read1", "read2", false}, Pair{"write", "read1", true},
        Pair{"read1", "write", true}, Pair{"read0", "write", true},
        Pair{"move", "read1", true}, Pair{"move", "write", true},
        // An op that uses one variable may wait for memory that
        // an op with another variable frees.
        Pair{"write", "READ1", false}, Pair{"READ1", "write", false},
        Pair{"move", "WRITE", false}));

TEST_F(VariableOrderTest, AnOpWaitsForAllThatItReadsOrChanges) {
  const GpuGroups::StateKey both[] = {2, 1};
  Run("write WRITE");
  groups_->BeginRead(groups_->group(1), both);
  groups_->EndRead(groups_->group(1), both);
  EXPECT_EQ(Calls(), "0!, 1<0!");
  Run("write WRITE read2 READ3");
  record_.Take();
  groups_->BeginWrite(both);
  groups_->EndWrite(both);
  EXPECT_EQ(Calls(), "0<2, 0<3");
}

TEST_F(VariableOrderTest, AllGroupsCanRead) {
  const auto many = NewFakeGroups(/*gpu=*/3, kMaxGroupCount, &record_);
  StreamGroup* last = many->group(kMaxGroupCount - 1);
  many->BeginRead(last, kState);
  many->EndRead(last, kState);
  many->BeginWrite(kState);
  many->EndWrite(kState);
  EXPECT_EQ(Calls(), "0<63");
}

TEST_F(VariableOrderTest, ALeaderAloneWaitsForNothing) {
  const auto alone = NewFakeGroups(/*gpu=*/3, 1, &record_);
  alone->BeginRead(alone->leader(), kState);
  alone->EndRead(alone->leader(), kState);
  alone->BeginWrite(kState);
  alone->EndWrite(kState);
  alone->NoteLeaderWork();
  alone->OrderAfterLeader(alone->leader());
  EXPECT_EQ(Calls(), "");
}

TEST_F(VariableOrderTest, AVersionIsOfTheVariablesAskedForAndNoneMeanwhile) {
  const GpuGroups::StateKey both[] = {1, 2};
  const auto version = groups_->StateVersion(kState);
  const auto of_both = groups_->StateVersion(both);
  ASSERT_TRUE(version.has_value());
  Run("read1");
  EXPECT_EQ(groups_->StateVersion(kState), version);
  Begin("write");
  EXPECT_EQ(groups_->StateVersion(kState), std::nullopt);
  EXPECT_EQ(groups_->StateVersion(both), std::nullopt);
  EXPECT_TRUE(groups_->StateVersion(kOtherState).has_value());
  End("write");
  EXPECT_NE(groups_->StateVersion(kState), version);
  EXPECT_NE(groups_->StateVersion(both), of_both);
  EXPECT_EQ(groups_->StateVersion({}), 0);
}

}  // namespace
}  // namespace tensorflow::multistream
