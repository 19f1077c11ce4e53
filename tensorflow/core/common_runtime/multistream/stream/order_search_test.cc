// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// Interleavings of threads and late streams: one group's stream
// reads what another group's stream wrote, whole and in order.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/expect_finds.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/late_streams.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

namespace tensorflow::multistream::search {
namespace {

// Two variables of a GPU: their memory, and the value of the last launched
// write of each. In the table of VariableOrder they share the slots of all rows
// but one; if `alike`, of all rows.
struct Variables {
  explicit Variables(int groups, bool alike = false)
      : late(groups),
        keys{1, alike ? 1 | uint64_t{1} << (VariableOrder::kRows *
                                            VariableOrder::kSlotBits)
                      : 2} {}

  LateGpu late;
  const GpuGroups::StateKey keys[2];
  Halves memory[2];
  int64_t launched[2] = {0, 0};
};

void Write(Variables* all, int variable) {
  const GpuGroups::StateKeys keys = {&all->keys[variable], 1};
  all->late.gpu->BeginWrite(keys);
  LateStreamGroup* leader = all->late.streams[0];
  Halves* memory = &all->memory[variable];
  leader->Enqueue("writes one half", [memory] { ++memory->first; });
  leader->Enqueue("writes the other half", [memory] { ++memory->second; });
  ++all->launched[variable];
  all->late.gpu->EndWrite(keys);
}

// The read must see all writes launched before it. Returns the value read,
// which is set once the stream has run the read.
std::shared_ptr<int64_t> Read(Variables* all, int group, int variable) {
  const GpuGroups::StateKeys keys = {&all->keys[variable], 1};
  LateStreamGroup* stream = all->late.streams[group];
  all->late.gpu->BeginRead(stream, keys);
  const int64_t launched = all->launched[variable];
  Halves* memory = &all->memory[variable];
  auto seen = std::make_shared<int64_t>(-1);
  stream->Enqueue("reads one half", [memory, seen] { *seen = memory->first; });
  stream->Enqueue("reads the other half", [memory, seen, launched] {
    Expect(*seen == memory->second, "a value is read half changed");
    Expect(*seen == launched, absl::StrCat("write ", *seen, " is read, and ",
                                           launched, " were before it"));
  });
  all->late.gpu->EndRead(stream, keys);
  return seen;
}

void OneVariable(Program* program) {
  Variables all(3);
  all.late.AddTo(program);
  program->Thread("writer", [&] {
    Write(&all, 0);
    Write(&all, 0);
  });
  for (int group : {1, 2}) {
    program->Thread(absl::StrCat("reader ", group),
                    [&, group] { Read(&all, group, 0); });
  }
  program->Run();
}

// Runs the program, with a writer of each of two variables.
void RunWithWriters(Program* program, Variables* all) {
  for (int variable : {0, 1}) {
    program->Thread(absl::StrCat("writer of ", variable),
                    [all, variable] { Write(all, variable); });
  }
  program->Run();
}

// Writers of two variables share the marks of which groups have read.
void TwoVariables(Program* program, bool alike) {
  Variables all(2, alike);
  all.late.AddTo(program);
  Read(&all, 1, 0);
  program->Thread("reader", [&] {
    Read(&all, 1, 0);
    Read(&all, 1, 1);
  });
  RunWithWriters(program, &all);
}
void SharedSlots(Program* program) { TwoVariables(program, /*alike=*/false); }
void AllSlotsShared(Program* program) { TwoVariables(program, /*alike=*/true); }

// Two writers of two variables number the slots that the variables share, while
// the reader's group waits for all work: from then on the numbers alone say
// whether it has to wait again.
void TwoWriters(Program* program) {
  Variables all(2);
  all.late.AddTo(program);
  program->Thread("reader", [&] {
    all.late.gpu->OrderAfterLeader(all.late.streams[1]);
    Read(&all, 1, 0);
    Read(&all, 1, 1);
  });
  RunWithWriters(program, &all);
}

// Two groups mark slots that the variables share. The wait for one group must
// leave the other's mark.
void TwoGroups(Program* program) {
  Variables all(3);
  all.late.AddTo(program);
  for (int group : {1, 2}) {
    program->Thread(absl::StrCat("reader ", group),
                    [&, group] { Read(&all, group, group - 1); });
  }
  program->Thread("writer", [&] {
    Write(&all, 0);
    Write(&all, 1);
  });
  program->Run();
}

// The leader computes a value, and hands it to a step on group 1, which the
// host starts then. Another thread does the same for a step on group 2.
void Arguments(Program* program) {
  struct {
    LateGpu late{3};
    Halves values[2];
  } all;
  all.late.AddTo(program);
  for (int i : {0, 1}) {
    program->Thread(absl::StrCat("caller ", i), [&all, i] {
      Halves* value = &all.values[i];
      all.late.streams[0]->Enqueue("computes", [value] { value->first = 1; });
      all.late.gpu->NoteLeaderWork();
      LateStreamGroup* stream = all.late.streams[i + 1];
      all.late.gpu->OrderAfterLeader(stream);
      stream->Enqueue("takes", [value] {
        Expect(value->first == 1, "a value is taken before it is computed");
      });
    });
  }
  program->Run();
}

void Versions(Program* program) {
  Variables all(2);
  all.late.AddTo(program);
  program->Thread("reader", [&] {
    const GpuGroups::StateKeys keys = {&all.keys[0], 1};
    const std::optional<int64_t> before = all.late.gpu->StateVersion(keys);
    auto first = Read(&all, 1, 0);
    auto second = Read(&all, 1, 0);
    const std::optional<int64_t> after = all.late.gpu->StateVersion(keys);
    all.late.streams[1]->Synchronize().IgnoreError();
    if (!before.has_value() || before != after) return;
    Expect(*first == *second, "one version has two values");
  });
  program->Thread("writer", [&] { Write(&all, 0); });
  program->Run();
}

TEST(OrderSearchTest, ReadersSeeAllWritesBeforeThemAndNoneAfter) {
  for (const Body& body : {OneVariable, SharedSlots, AllSlotsShared, TwoWriters,
                           TwoGroups, Versions}) {
    EXPECT_TRUE(SearchAll(body, Of(1)).all);
    SearchAtRandom(body, Seconds(1.5));
  }
}

TEST(OrderSearchTest, AStepSeesWhatTheLeaderHasComputedForIt) {
  EXPECT_TRUE(SearchAll(Arguments, Of(2)).all);
  SearchAtRandom(Arguments, Seconds(1));
  EXPECT_FINDS(Rule::kNumberIsReadBeforeTheEvent, SearchAtRandom(Arguments),
               "taken before it is computed");
}

TEST(OrderSearchTest, EachOrderOfPublicationThatIsBrokenIsFound) {
  const char* const kWrong = "half changed|were before it";
  const auto expect_finds = [&](Rule rule, const Body& body) {
    SCOPED_TRACE(static_cast<int>(rule));
    EXPECT_FINDS(rule, SearchAtRandom(body), kWrong);
  };
  expect_finds(Rule::kChangeIsNumberedOnceLaunched, TwoWriters);
  expect_finds(Rule::kChangeIsNumberedBeforeLeaving, OneVariable);
  expect_finds(Rule::kChangesAreNumberedInALock, TwoWriters);
  expect_finds(Rule::kNumberIsReadBeforeTheEvent, TwoWriters);
  expect_finds(Rule::kReadIsMarkedBeforeLeaving, OneVariable);
  for (const Body& body : {SharedSlots, AllSlotsShared}) {
    expect_finds(Rule::kReadIsMarkedOnceLaunched, body);
    expect_finds(Rule::kMarksAreTakenBeforeTheWait, body);
    expect_finds(Rule::kReadersAreWaitedForInALock, body);
  }
  expect_finds(Rule::kOnlyMarksWaitedForAreTaken, TwoGroups);
  EXPECT_FINDS(Rule::kWriteIsCountedBeforeItIsMade, SearchAtRandom(Versions),
               "one version has two values");
}

// Two readers on one group: the first waits for the leader's work, and the
// second relies on this wait.
void TwoReadersOfOneGroup(Program* program) {
  Variables all(2);
  all.late.AddTo(program);
  program->Thread("writer", [&] { Write(&all, 0); });
  for (const char* name : {"reader", "other reader"}) {
    program->Thread(name, [&] { Read(&all, 1, 0); });
  }
  program->Run();
}

TEST(OrderSearchTest, ReadersOfOneGroup) {
  EXPECT_TRUE(SearchAll(TwoReadersOfOneGroup, Of(1)).all);
  SearchAtRandom(TwoReadersOfOneGroup, Seconds(1));
  EXPECT_FINDS(Rule::kSeenIsNotedAfterTheWait,
               SearchAtRandom(TwoReadersOfOneGroup),
               "half changed|were before it");
}

// A run at node level: two ops on group 1 write. For each an op on group 0,
// launched by another thread, waits.
void OpsOfARun(Program* program) {
  struct {
    LateGpu late{2};
    StreamOrder order{late.gpu.get(), /*reduce=*/true};
    Halves values[2];
    std::atomic<int64_t> launched[2] = {{0}, {0}};
  } run;
  run.late.AddTo(program);
  program->Thread("writes", [&] {
    for (int i : {0, 1}) {
      Halves* value = &run.values[i];
      LateStreamGroup* stream = run.late.streams[1];
      stream->Enqueue("writes one half", [value] { value->first = 1; });
      stream->Enqueue("writes the other half", [value] { value->second = 1; });
      run.launched[i].store(run.order.Launched(1));
    }
  });
  for (const char* name : {"reads", "reads, too"}) {
    program->Thread(name, [&] {
      for (int i : {0, 1}) {
        const int64_t position = run.launched[i].load();
        if (position == 0) return;
        if (i == 0) {
          run.order.WaitForTail(0, 1, position);
        } else {
          auto event = run.order.Record(1);
          run.order.WaitFor(0, *event);
          run.order.Recycle(std::move(event));
        }
        Halves* value = &run.values[i];
        run.late.streams[0]->Enqueue("reads", [value] {
          Expect(value->first == 1 && value->second == 1,
                 "a value is read before it is written");
        });
      }
    });
  }
  program->Run();
}

TEST(OrderSearchTest, WaitsThatAreLeftOut) {
  EXPECT_TRUE(SearchAll(OpsOfARun, Of(1)).all);
  SearchAtRandom(OpsOfARun, Seconds(2));
  EXPECT_FINDS(Rule::kPositionIsReadBeforeTheEvent, SearchAtRandom(OpsOfARun),
               "a value is read before it is written");
  EXPECT_FINDS(Rule::kKnownAfterTheWait, SearchAtRandom(OpsOfARun),
               "a value is read before it is written");
}

}  // namespace
}  // namespace tensorflow::multistream::search
