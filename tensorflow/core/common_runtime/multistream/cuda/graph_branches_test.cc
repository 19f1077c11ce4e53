// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/graph_branches.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/cuda/fake_graphs.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow {
namespace multistream {
namespace {

TEST_F(BranchesOpsTest, AGraphHasTheBranchesOfItsOps) {
  const uint64_t a = Take(64), b = Take(64), c = Take(64);
  const StepOfOps step = {
      {{{Writes(a, a + 64)}, {Kernel({a}), Kernel({a})}},
       {{Reads(a, a + 64), Writes(b, b + 64)}, {Kernel({a, b})}},
       {{Reads(a, a + 64), Writes(c, c + 64)}, {Set(c), Kernel({a, c})}},
       {{Reads(b, b + 64), Writes(c, c + 64)}, {Kernel({b, c})}}}};
  EXPECT_EQ(EdgesWith({{}, {0}, {0}, {2, 1}}, step),
            Edges({{}, {0}, {1}, {1}, {3}, {2, 4}}));
  // Any waits are followed.
  EXPECT_EQ(EdgesWith({{}, {}, {}, {}}, step),
            Edges({{}, {0}, {}, {}, {3}, {}}));
  EXPECT_EQ(EdgesWith({{}, {0}, {1}, {2}}, step),
            Edges({{}, {0}, {1}, {2}, {3}, {4}}));
  const CapturedOps captured = Captured(step);
  const Waits waits = OrderOf(captured.ops, 8, 8);
  EXPECT_EQ(EdgesWith(waits, step), EdgesOf(captured, waits));
}

TEST_F(BranchesOpsTest, WhatIsLaunchedBetweenOpsIsWaitedFor) {
  const uint64_t a = Take(64), b = Take(64);
  const std::vector<FakeNode> of_nobody = {Kernel({}), Kernel({})};
  const StepOfOps step = {{{{}, {}, of_nobody},
                           {{}, {}},
                           {{Writes(a, a + 64)}, {Kernel({a})}},
                           {{}, {}},
                           {{Writes(b, b + 64)}, {Kernel({b})}},
                           {{}, {}, of_nobody},
                           {{Writes(a, a + 64)}, {Kernel({a})}},
                           {{Writes(b, b + 64)}, {Kernel({b})}},
                           {{}, {}}},
                          of_nobody};
  EXPECT_EQ(EdgesWith({{}, {0}, {0}, {1, 2}, {3}, {3}, {4, 5}}, step),
            Edges({{}, {0}, {1}, {1}, {2, 3}, {4}, {5}, {5}, {6, 7}, {8}}));
  const CapturedOps captured = Captured(step);
  const Waits waits = OrderOf(captured.ops, 8, 8);
  EXPECT_EQ(EdgesWith(waits, step), EdgesOf(captured, waits));
}

TEST_F(BranchesOpsTest, AnOpOfSeveralStreamsEndsWhereAllOfThemDo) {
  FakeStream streams[2];
  // The second node does not come after the first one.
  const auto run = [](FakeStream* stream, OpWatcher* watcher) {
    watcher->Begins("two");
    const int first = stream->Add(Kernel({}));
    const int second = stream->Add(Kernel({}));
    stream->ends = {stream->NodeOf(first), stream->NodeOf(second)};
    watcher->Launched("two", {Writes(kRegion, kRegion + 8)});
    for (int i = 0; i < 2; ++i) {
      watcher->Begins("one");
      stream->Launch(Kernel({}));
      watcher->Launched("one", {Reads(kRegion, kRegion + 8)});
    }
  };
  CapturesOps captures(streams[0].handle(), FakeParametersOf);
  run(&streams[0], &captures);
  const absl::StatusOr<CapturedOps> captured = captures.Finish(memory_);
  ASSERT_TRUE(captured.ok()) << captured.status();
  BranchesOps branches(streams[1].handle(), *captured, {{}, {0}, {0}});
  run(&streams[1], &branches);
  const absl::Status status = branches.Finish();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(streams[1].edges(), Edges({{}, {}, {0, 1}, {0, 1}}));
}

TEST_F(BranchesOpsTest, AnythingElseTheSecondTimeIsAnError) {
  const Op one = {{}, {Kernel({})}}, two = {{}, {Kernel({}), Kernel({})}},
           none = {{}, {}}, after_one = {{}, {Kernel({})}, {Kernel({})}};
  const auto error = [&](const StepOfOps& first, const StepOfOps& again) {
    const absl::Status status = Branch(first, again);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
    return std::string(status.message());
  };
  const std::string other = "an op launched something else";
  EXPECT_EQ(error({{one, one}}, {{two, one}}), other);
  EXPECT_EQ(error({{one, two}}, {{one, one}}), other);
  EXPECT_EQ(error({{one, none}}, {{one, one}}), other);
  EXPECT_EQ(error({{one, none, one}}, {{one, one, none}}), other);
  EXPECT_EQ(error({{one, one}}, {{one, none}}), other);
  EXPECT_EQ(error({{one, one}}, {{one, one, one}}),
            "it has more ops the second time");
  EXPECT_EQ(error({{one, one}}, {{one, one, none}}),
            "it has more ops the second time");
  EXPECT_EQ(error({{one, one}}, {{one}}), "it has fewer ops the second time");
  EXPECT_EQ(error({{one, none}}, {{one}}), "it has fewer ops the second time");
  // Launches between ops.
  EXPECT_EQ(error({{one, one}}, {{one, after_one}}), other);
  EXPECT_EQ(error({{one, after_one}}, {{one, one}}), other);
  EXPECT_EQ(error({{one}, one.nodes}, {{one}}), other);
  EXPECT_EQ(error({{one}, one.nodes}, {{one}, two.nodes}), other);
}

TEST_F(BranchesOpsTest, WhatIsOnlyLaunchedAtTheEndOfTheSecondTimeIsAnError) {
  const StepOfOps step = {{{{}, {Kernel({})}}, {{}, {Kernel({})}}}};
  const absl::Status status = Branch(step, {step.ops, {Kernel({})}});
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << status;
}

TEST_F(BranchesOpsTest, ErrorsOfTheDriverAreErrors) {
  const StepOfOps step = {{{{}, {Kernel({})}}, {{}, {Kernel({})}}}};
  const CapturedOps captured = Captured(step);
  for (const char* function : {"cuStreamGetCaptureInfo", "cuGraphGetNodes",
                               "cuStreamUpdateCaptureDependencies"}) {
    for (const int calls_before :
         {0, 1}) {  // the function is called for each op
      Driver()->failing = function;
      Driver()->calls_before = calls_before;
      FakeStream stream;
      const absl::Status status = Branch(captured, {{}, {}}, step, &stream);
      EXPECT_TRUE(absl::StrContains(status.message(), function)) << status;
    }
  }
}

TEST_F(BranchesOpsTest, AStreamThatDoesNotCaptureAnyMoreIsAnError) {
  const StepOfOps step = {{{{}, {Kernel({})}}}};
  const CapturedOps captured = Captured(step);
  FakeStream stream;
  stream.captures = false;
  const absl::Status status = Branch(captured, {{}}, step, &stream);
  EXPECT_TRUE(absl::StrContains(status.message(), "not capture")) << status;
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
