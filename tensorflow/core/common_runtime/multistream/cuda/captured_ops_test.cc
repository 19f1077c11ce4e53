// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/cuda/fake_graphs.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_branches.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow::multistream {
namespace {

class CapturesOpsTest : public GraphBranchesTest {};

TEST_F(CapturesOpsTest, OpsAreToldApartAndTheirLaunchesCounted) {
  const uint64_t a = Take(64), b = Take(64);
  const CapturedOps captured =
      Captured({{{{Writes(a, a + 64)}, {Set(a), Kernel({a})}},
                 {{Reads(a, a + 64)}, {}},  // such as a reshape
                 {{Reads(a, a + 64), Writes(b, b + 64)}, {Copy(a, b)}}}});
  ASSERT_EQ(captured.ops.size(), 2);
  EXPECT_EQ(captured.ops[0].launches, 2);
  EXPECT_EQ(captured.ops[1].launches, 1);
  EXPECT_EQ(UsesOf(captured.ops[0]), Uses({{a, a + 64, true}}));
  EXPECT_EQ(UsesOf(captured.ops[1]),
            Uses({{a, a + 64, false}, {b, b + 64, true}}));
  for (const RecordedOp& op : captured.ops) {
    EXPECT_FALSE(op.alone);
    EXPECT_FALSE(op.takes_workspace);
  }
  ASSERT_EQ(captured.calls.size(), 3);
  EXPECT_EQ(captured.calls[0].op, 0);
  EXPECT_EQ(captured.calls[1].op, -1);
  EXPECT_EQ(captured.calls[2].op, 1);
  for (const CapturedOps::Call& call : captured.calls) {
    EXPECT_FALSE(call.is_no_ops);
  }
  const CapturedOps nothing = Captured({{{{}, {}}}});
  EXPECT_TRUE(nothing.ops.empty());
  EXPECT_EQ(nothing.calls.size(), 1);
}

TEST_F(CapturesOpsTest, ALongLoopHasNoBranches) {
  StepOfOps step;
  step.ops.resize(8192, {{}, {Kernel({})}});
  EXPECT_EQ(Captured(step).ops.size(), 8192);
  step.ops.push_back(step.ops[0]);
  const absl::Status status = Capture(step).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "more than 8192")) << status;
}

TEST_F(CapturesOpsTest, WhatIsLaunchedBetweenOpsIsAloneWhereverItIs) {
  const CapturedOps captured =
      Captured({{{{}, {Kernel({})}, {Kernel({}), Kernel({})}},  // at the start
                 {{}, {}},
                 {{}, {Kernel({})}, {Kernel({})}}},
                {Kernel({}), Kernel({}), Kernel({})}});
  std::vector<std::tuple<int, bool>> calls;
  for (const CapturedOps::Call& call : captured.calls) {
    calls.emplace_back(call.op, call.is_no_ops);
  }
  EXPECT_EQ(calls, (std::vector<std::tuple<int, bool>>{{0, true},
                                                       {1, false},
                                                       {-1, false},
                                                       {2, true},
                                                       {3, false},
                                                       {4, true}}));
  std::vector<std::tuple<int, bool>> ops;
  for (const RecordedOp& op : captured.ops) {
    ops.emplace_back(op.launches, op.alone);
  }
  EXPECT_EQ(ops, (std::vector<std::tuple<int, bool>>{
                     {2, true}, {1, false}, {1, true}, {1, false}, {3, true}}));
}

TEST_F(CapturesOpsTest, PointersToAnOpsOwnMemoryAddNothing) {
  const uint64_t a = Take(64), b = Take(64);
  EXPECT_EQ(AddedToSecond({{{{Writes(a, a + 64)}, {Kernel({a})}},
                            {{Reads(a, a + 64), Writes(b, b + 64)},
                             {Kernel({a, b, a + 63}), Kernel({b + 8}),
                              Copy(a, b + 32), Set(b + 63),
                              KernelOf({Value(0, a), Structure(8, 4, 0, 0),
                                        Structure(12, 20, 12, b)})}}}}),
            Uses());
}

// As when a kernel gets the pointer from an object that stores it.
TEST_F(CapturesOpsTest, PointersToMemoryOfOtherOpsAddAWrittenUse) {
  const uint64_t a = Take(64), b = Take(64);
  const auto added = [&](FakeNode node) {
    return AddedToSecond({{{{Writes(a, a + 64)}, {Kernel({})}},
                           {{Writes(b, b + 64)}, {std::move(node)}}}});
  };
  const Uses none, uses_a = {{a, a + 64, true}};
  EXPECT_EQ(added(Kernel({b, a})), uses_a);
  EXPECT_EQ(added(Kernel({a + 63})), uses_a);
  EXPECT_EQ(added(Copy(a, b)), uses_a);
  EXPECT_EQ(added(Copy(b, a)), uses_a);
  EXPECT_EQ(added(Set(a + 4)), uses_a);
  EXPECT_EQ(added(Kernel({b + 8})), none);
}

TEST_F(CapturesOpsTest, SmallParametersAreNotReadPastTheirEnd) {
  const uint64_t a = Take(64);
  const auto uses = [&](size_t offset, size_t size, size_t at) {
    Parameter parameter = Structure(offset, at + 8, at, a);
    parameter.beyond = at + 8 - size;
    const std::vector<RecordedOp> ops =
        OpsOf({{{{}, {KernelOf({std::move(parameter)})}}}});
    return ops.size() == 1 ? ops[0].uses.size() : -1;
  };
  EXPECT_EQ(uses(0, 8, 0), 1);
  for (const size_t size : {0, 1, 4, 7}) EXPECT_EQ(uses(0, size, 0), 0);
  EXPECT_EQ(uses(4, 8, 4), 0);
  EXPECT_EQ(uses(8, 15, 8), 0);
  EXPECT_EQ(uses(8, 16, 8), 1);
}

TEST_F(CapturesOpsTest, MemoryOfOthersIsAllThatOverlapsAndEndsWhereItDoes) {
  const uint64_t v = kVariable + 128;
  const StepOfOps step = {
      {{{Reads(v + 16, v + 64)}, {Kernel({})}},
       {{Reads(v, v + 32), Reads(v + 24, v + 28)}, {Kernel({})}},
       {{Reads(v + 64, v + 96)}, {Kernel({})}},
       {{}, {Kernel({v + 48})}},
       {{}, {Kernel({v + 96})}}}};
  const std::vector<RecordedOp> ops = OpsOf(step);
  ASSERT_EQ(ops.size(), 5);
  EXPECT_EQ(UsesOf(ops[3]), Uses({{v, v + 64, true}}));
  EXPECT_EQ(OrderOf(ops, 8, 8), Waits({{}, {}, {}, {1, 0}, {}}));
}

TEST_F(CapturesOpsTest, CopiesOfTheHostsMemoryAddNothingForIt) {
  const uint64_t a = Take(64), b = Take(64);
  // The device address of a host side is garbage.
  FakeNode to_device = Copy(a, b), to_host = Copy(b, a);
  to_device.copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  to_host.copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  EXPECT_EQ(AddedToSecond({{{{Writes(a, a + 64)}, {Kernel({})}},
                            {{Writes(b, b + 64)}, {to_device, to_host}}}}),
            Uses());
  // Unified memory counts, wherever it is now.
  FakeNode unified = Copy(b, a);
  unified.copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  EXPECT_EQ(AddedToSecond({{{{Writes(a, a + 64)}, {Kernel({})}},
                            {{Writes(b, b + 64)}, {unified}}}}),
            Uses({{a, a + 64, true}}));
}

// The driver may give the same pool memory to each op of a chain.
TEST_F(CapturesOpsTest, TheSameMemoryOfAPoolDoesNotPutOpsInOrder) {
  const std::vector<FakeNode> nodes = {Takes(kPool, 512), Kernel({kPool + 8}),
                                       Frees()};
  EXPECT_EQ(WaitsOf({{{{}, nodes}, {{}, nodes}}}), Waits({{}, {}}));
}

TEST_F(CapturesOpsTest, PointersThatAreCopiedFromPinnedMemoryCount) {
  const uint64_t a = Take(64), b = Take(64);
  const uint64_t pinned = Take(memory_.pinned(), 64);
  auto* pointers = reinterpret_cast<uint64_t*>(pinned);
  std::fill(pointers, pointers + 8, 0);
  FakeNode copy = Copy(0, b);
  copy.copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.copy.srcHost = pointers;
  copy.copy.WidthInBytes = 64;
  copy.copy.Height = copy.copy.Depth = 1;
  const StepOfOps step = {{{{Writes(a, a + 64)}, {Kernel({})}},
                           {{Writes(b, b + 64)}, {copy, Kernel({b})}}}};
  EXPECT_EQ(WaitsOf(step), Waits({{}, {}}));
  pointers[7] = a + 8;
  EXPECT_EQ(WaitsOf(step), Waits({{}, {0}}));
  // The copied table is not read past its end.
  const_cast<FakeNode&>(step.ops[1].nodes[0]).copy.WidthInBytes = 60;
  EXPECT_EQ(WaitsOf(step), Waits({{}, {}}));
}

TEST_F(CapturesOpsTest, TheMemoryOfALibraryIsForOneOpAtATime) {
  Take(64);
  const StepOfOps step = {{{{}, {Kernel({kLibrary + 10'000})}},
                           {{}, {Kernel({kOtherLibrary})}},
                           {{}, {Set(kLibrary + 900'000)}},
                           {{}, {Kernel({kLibrary})}},
                           {{}, {Kernel({kOtherLibrary + 8})}},
                           {{}, {Kernel({kLibrary + kBytes})}}}};
  EXPECT_EQ(WaitsOf(step), Waits({{}, {}, {0}, {2}, {1}, {}}));
}

TEST_F(CapturesOpsTest, InTheRecordingsRegionOnlyWhatIsCloseTogetherIsOne) {
  Take(64);
  constexpr uint64_t k = kInRegion;
  const StepOfOps step = {{{{}, {Kernel({k})}},
                           {{}, {Kernel({k + 16 * kPage})}},
                           {{}, {Kernel({k + 8})}},
                           {{}, {Kernel({k + 32 * kPage - 8})}},
                           {{}, {Kernel({k + 32 * kPage})}},
                           {{}, {Kernel({k + 17 * kPage})}}}};
  EXPECT_EQ(WaitsOf(step), Waits({{}, {}, {0}, {}, {3}, {1}}));
}

TEST_F(CapturesOpsTest, PinnedMemoryOfTheRecordingAndNumbersAddNothing) {
  Take(64);
  const uint64_t pinned = Take(memory_.pinned(), 64);
  const StepOfOps step = {
      {{{}, {Kernel({pinned, 0, 1, 1024, ~uint64_t{0}, 0x3f8000003f800000})}},
       {{}, {Kernel({pinned + 8, 0, 1, 1024, ~uint64_t{0}})}}}};
  for (const RecordedOp& op : OpsOf(step)) EXPECT_TRUE(op.uses.empty());
  EXPECT_EQ(WaitsOf(step), Waits({{}, {}}));
  // Ops may write memory outside the recording, so their uses of it are
  // ordered.
  EXPECT_EQ(
      WaitsOf({{{{}, {Kernel({pinned + 64})}}, {{}, {Kernel({pinned + 96})}}}}),
      Waits({{}, {0}}));
}

TEST_F(CapturesOpsTest, WhatAnOpTakesFromAPoolAndFreesIsAWorkspace) {
  const StepOfOps step = {
      {{{},
        {Takes(kPool, 512), Takes(kPool + 512, 256), Kernel({kPool + 8}),
         Frees(), Kernel({kPool + 600}), Frees()}},
       {{}, {Takes(kPool + 1024, 64), Frees(), Kernel({})}},
       {{}, {Kernel({})}}}};
  const std::vector<RecordedOp> ops = OpsOf(step);
  ASSERT_EQ(ops.size(), 3);
  EXPECT_TRUE(ops[0].takes_workspace);
  EXPECT_EQ(ops[0].launches, 6);
  EXPECT_FALSE(ops[0].alone);
  EXPECT_EQ(UsesOf(ops[0]), Uses());
  EXPECT_TRUE(ops[1].takes_workspace);
  EXPECT_FALSE(ops[2].takes_workspace);
  EXPECT_EQ(OrderOf(ops, 8, 8), Waits({{}, {}, {}}));
  EXPECT_EQ(OrderOf(ops, 8, 1), Waits({{}, {0}, {}}));
}

TEST_F(CapturesOpsTest, MemoryOfAPoolThatAnOpKeepsIsAnError) {
  for (const StepOfOps& step :
       {StepOfOps{{{{}, {Takes(kPool, 512), Kernel({kPool})}}}},
        StepOfOps{{{{}, {Takes(kPool, 8), Takes(kPool + 8, 8), Frees()}}}},
        // Other ops may be given the memory between the two ops.
        StepOfOps{{{{}, {Takes(kPool, 512)}}, {{}, {Frees()}}}}}) {
    const absl::Status status = Capture(step).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "'op0' keeps memory"));
  }
}

TEST_F(CapturesOpsTest, WhatNobodyCanLookIntoIsAlone) {
  const auto is_alone = [&](const FakeNode& node) {
    const std::vector<RecordedOp> ops = OpsOf({{{{}, {node, Kernel({})}}}});
    return ops.size() == 1 && ops[0].alone;
  };
  FakeNode elsewhere = Kernel({1, 2}), without = Kernel({});
  elsewhere.has_parameters = without.has_parameters = false;
  EXPECT_TRUE(is_alone(elsewhere));
  EXPECT_FALSE(is_alone(without));  // the kernel has no parameters
  EXPECT_TRUE(is_alone(Other(CU_GRAPH_NODE_TYPE_HOST)));
  EXPECT_TRUE(is_alone(Other(CU_GRAPH_NODE_TYPE_GRAPH)));
  EXPECT_TRUE(is_alone(Other(CU_GRAPH_NODE_TYPE_EVENT_RECORD)));
  EXPECT_TRUE(is_alone(Other(CU_GRAPH_NODE_TYPE_CONDITIONAL)));
  EXPECT_FALSE(is_alone(Other(CU_GRAPH_NODE_TYPE_EMPTY)));
}

TEST_F(CapturesOpsTest, ErrorsOfTheDriverAreErrors) {
  const uint64_t a = Take(64);
  const StepOfOps step = {{{{}, {Kernel({1}), Copy(a, a), Set(a)}},
                           {{}, {Takes(kPool, 8), Frees()}}}};
  EXPECT_TRUE(Capture(step).ok());
  for (const char* function :
       {"cuStreamGetCaptureInfo", "cuGraphGetNodes", "cuGraphNodeGetType",
        "cuGraphKernelNodeGetParams", "cuGraphMemcpyNodeGetParams",
        "cuGraphMemsetNodeGetParams", "cuGraphMemAllocNodeGetParams",
        "ParametersOf"}) {
    Driver()->failing = function;
    const absl::Status status = Capture(step).status();
    EXPECT_FALSE(status.ok()) << function;
    EXPECT_TRUE(absl::StrContains(status.message(), function)) << status;
  }
  // Fail only the second call, which gets the nodes.
  Driver()->failing = "cuGraphGetNodes";
  Driver()->calls_before = 1;
  EXPECT_FALSE(Capture(step).ok());
  Driver()->failing = "";
  FakeStream stream;
  CapturesOps captures(stream.handle(), FakeParametersOf);
  LaunchAll(step, &stream, &captures);
  stream.captures = false;
  const absl::Status status = captures.Finish(memory_).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "not capture")) << status;
}

}  // namespace
}  // namespace tensorflow::multistream
