// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/graph_branches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_program.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/elementwise_watch.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/cuda/fake_graphs.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow::multistream {
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

TEST_F(BranchesOpsTest, AnOpOfSeveralStreamsEndsWhereAllOfThemDo) {
  FakeStream streams[2];
  // The second node does not come after the first one.
  const auto run = [](FakeStream* stream, OpWatcher* watcher) {
    watcher->Begins({"two"});
    const int first = stream->Add(Kernel({}));
    const int second = stream->Add(Kernel({}));
    stream->ends = {stream->NodeOf(first), stream->NodeOf(second)};
    watcher->Launched({"two", {Writes(kRegion, kRegion + 8)}});
    for (int i = 0; i < 2; ++i) {
      watcher->Begins({"one"});
      stream->Launch(Kernel({}));
      watcher->Launched({"one", {Reads(kRegion, kRegion + 8)}});
    }
  };
  CapturesOps captures(streams[0].handle(), FakeParametersOf);
  run(&streams[0], &captures);
  const absl::StatusOr<CapturedOps> captured = captures.Finish(memory_);
  ASSERT_TRUE(captured.ok()) << captured.status();
  BranchesOps branches(streams[1].handle(), *captured, /*fused=*/nullptr,
                       /*launcher=*/nullptr, {{}, {0}, {0}});
  run(&streams[1], &branches);
  const absl::Status status = branches.Finish();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(streams[1].edges(), Edges({{}, {}, {0, 1}, {0, 1}}));
}

// Ten updates of variables, each of a value that is made before it, and a
// reader of the first variable.
class FusedKernelsOfOpsTest : public BranchesOpsTest {
 protected:
  static constexpr int kUpdates = 10;
  static constexpr uint64_t kEach = 64;

  FusedKernelsOfOpsTest() {
    for (int i = 0; i < kUpdates; ++i) values_.push_back(Take(kEach));
  }

  // `launch_updates`: whether their own kernels are launched.
  void Run(FakeStream* stream, OpWatcher* watcher, bool launch_updates) {
    const auto run = [&](LaunchedOp op, bool launch = true) {
      watcher->Begins(op);
      std::vector<uint64_t> pointers;
      for (const MemoryUse& use : op.uses) pointers.push_back(use.begin);
      if (launch) stream->Launch(Kernel(pointers));
      watcher->Launched(std::move(op));
    };
    for (int i = 0; i < kUpdates; ++i) {
      const uint64_t value = values_[i], variable = kVariable + i * kEach;
      run({"made", {Writes(value, value + kEach)}});
      const ElementwiseOp add{
          Arithmetic::kAdd, 8, {{variable}, {value}}, variable};
      run({"update", UsesOf(add), add}, launch_updates);
    }
    run({"read", {Reads(kVariable, kVariable + kEach)}});
  }

  CapturedOps Captured() {
    FakeStream stream;
    CapturesOps captures(stream.handle(), FakeParametersOf);
    Run(&stream, &captures, /*launch_updates=*/true);
    absl::StatusOr<CapturedOps> captured = captures.Finish(memory_);
    EXPECT_TRUE(captured.ok()) << captured.status();
    return *std::move(captured);
  }

  std::vector<uint64_t> values_;
};

TEST_F(FusedKernelsOfOpsTest, AFusedKernelWaitsForWhatItsOpsNeed) {
  const CapturedOps captured = Captured();
  const FusedOps fused = FusedOpsOf(captured.ops);
  ASSERT_EQ(fused.kernels.size(), 1);
  FakeStream stream;
  class Launcher : public FusedLauncher {
   public:
    explicit Launcher(FakeStream* stream) : stream_(stream) {}
    absl::Status Launch(const FusedProgram&,
                        absl::Span<const FusedCall> calls) override {
      calls_ += calls.size();
      stream_->Launch(Kernel({}));
      return absl::OkStatus();
    }
    size_t calls_ = 0;

   private:
    FakeStream* const stream_;
  } launcher(&stream);
  BranchesOps branches(stream.handle(), captured, &fused, &launcher,
                       OrderOf(fused.launched, kUpdates, 1));
  Run(&stream, &branches, /*launch_updates=*/false);
  const absl::Status status = branches.Finish();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(launcher.calls_, kUpdates);
  Edges edges(kUpdates);
  std::set<int> all;
  for (int i = 0; i < kUpdates; ++i) all.insert(i);
  edges.push_back(all);
  edges.push_back({kUpdates});  // the reader
  EXPECT_EQ(stream.edges(), edges);
}

TEST_F(FusedKernelsOfOpsTest, KernelsThatAreLaunchedAllTheSameAreAnError) {
  const CapturedOps captured = Captured();
  const FusedOps fused = FusedOpsOf(captured.ops);
  FakeStream stream;
  BranchesOps branches(stream.handle(), captured, &fused, /*launcher=*/nullptr,
                       OrderOf(fused.launched, kUpdates, 1));
  Run(&stream, &branches, /*launch_updates=*/true);
  EXPECT_EQ(branches.Finish().message(), "an op launched something else");
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
  EXPECT_EQ(error({{one, one}}, {{one, one}, one.nodes}),
            "something else was launched at the end");
}

TEST_F(BranchesOpsTest, ErrorsOfTheDriverAreErrors) {
  const StepOfOps step = {{{{}, {Kernel({})}}, {{}, {Kernel({})}}}};
  const CapturedOps captured = Captured(step);
  for (const char* function : {"cuStreamGetCaptureInfo", "cuGraphGetNodes",
                               "cuStreamUpdateCaptureDependencies"}) {
    for (const int calls_before : {0, 1}) {  // called for each op
      Driver()->failing = function;
      Driver()->calls_before = calls_before;
      FakeStream stream;
      const absl::Status status = Branch(captured, {{}, {}}, step, &stream);
      EXPECT_TRUE(absl::StrContains(status.message(), function)) << status;
    }
  }
  Driver()->failing = "";
  FakeStream stream;
  stream.captures = false;
  const absl::Status status = Branch(captured, {{}, {}}, step, &stream);
  EXPECT_TRUE(absl::StrContains(status.message(), "not capture")) << status;
}

// A random step, whose ops declare their uses, or only have pointers to them.
class RandomStep {
 public:
  // `blocks`: the recording's memory, kBlock bytes each.
  RandomStep(int seed, const std::vector<uint64_t>& blocks, uint64_t pinned)
      : random_(seed), blocks_(blocks), pinned_(pinned) {
    const int ops = Below(40) + 2;
    for (int i = 0; i < ops; ++i) {
      Op op;
      if (Below(15) == 0) op.before = OfNobody();
      Truth truth;
      AddUses(&op, &truth);
      if (Below(4) != 0) AddNodes(&op, &truth);
      if (!op.nodes.empty()) truths_.push_back(truth);
      step_.ops.push_back(op);
    }
    if (Below(4) == 0) step_.after = OfNobody();
  }
  static constexpr uint64_t kBlock = 128;

  // All that an op may use, declared or not.
  struct Truth {
    bool any = false;  // unknown: may use anything
    std::vector<MemoryUse> uses;

    bool HasToWaitFor(const Truth& before) const {
      if (any || before.any) return true;
      for (const MemoryUse& a : uses) {
        for (const MemoryUse& b : before.uses) {
          const bool both = a.begin < b.end && b.begin < a.end;
          if (both && (a.writes || b.writes)) return true;
        }
      }
      return false;
    }
  };

  int Below(int end) { return static_cast<int>(random_() % end); }
  const StepOfOps& step() const { return step_; }
  // One for each op that launches something.
  const std::vector<Truth>& truths() const { return truths_; }

 private:
  std::vector<FakeNode> OfNobody() {
    truths_.push_back({/*any=*/true});
    return std::vector<FakeNode>(1 + Below(2), Kernel({}));
  }

  uint64_t AnyBlock() {
    return blocks_[Below(static_cast<int>(blocks_.size()))];
  }

  void AddUses(Op* op, Truth* truth) {
    for (int uses = Below(4); uses > 0; --uses) {
      // All of a block, or a part of it.
      uint64_t begin = AnyBlock(), end = begin + kBlock;
      if (Below(3) == 0) {
        begin += Below(kBlock / 2);
        end = begin + 1 + Below(kBlock / 2);
      } else if (Below(8) == 0) {
        begin = kVariable + kBlock * Below(4);
        end = begin + kBlock;
      }
      op->uses.push_back({begin, end, Below(3) == 0});
      truth->uses.push_back(op->uses.back());
    }
  }

  // A random parameter value; adds to `truth` the memory that it lets an op
  // use.
  uint64_t AnyValue(const Op& op, Truth* truth) {
    const auto writes = [truth](uint64_t begin, uint64_t bytes) {
      truth->uses.push_back({begin, begin + bytes, true});
    };
    const auto is_of = [&op](uint64_t value) {
      return std::any_of(op.uses.begin(), op.uses.end(),
                         [value](const MemoryUse& use) {
                           return value >= use.begin && value < use.end;
                         });
    };
    switch (Below(16)) {
      case 0: {
        const uint64_t block = AnyBlock(), value = block + Below(kBlock);
        if (!is_of(value)) writes(block, kBlock);
        return value;
      }
      case 1: {
        const uint64_t library = Below(2) == 0 ? kLibrary : kOtherLibrary;
        writes(library, kBytes);
        return library + Below(kBytes);
      }
      case 2: {
        const uint64_t value = kInRegion + Below(200) * 1024;
        writes(value, kPage);
        return value;
      }
      case 3: {  // whose use other ops may declare
        const uint64_t block = kVariable + kBlock * Below(4);
        const uint64_t value = block + Below(kBlock);
        if (!is_of(value)) writes(block, kBlock);
        return value;
      }
      case 4:
        return pinned_ + Below(64);
      case 5:
        return Below(1 << 30);
      default: {
        if (op.uses.empty()) return 0;
        const MemoryUse& own = op.uses[Below(static_cast<int>(op.uses.size()))];
        return own.begin + Below(static_cast<int>(own.end - own.begin));
      }
    }
  }

  void AddNodes(Op* op, Truth* truth) {
    const bool takes = Below(8) == 0;
    // May be at the address of an earlier op's pool memory.
    const uint64_t taken = kPool + kBlock * Below(4);
    if (takes) op->nodes.push_back(Takes(taken, kBlock));
    for (int nodes = 1 + Below(3); nodes > 0; --nodes) {
      switch (Below(8)) {
        case 0:
          op->nodes.push_back(Copy(AnyValue(*op, truth), AnyValue(*op, truth)));
          break;
        case 1:
          op->nodes.push_back(Set(AnyValue(*op, truth)));
          break;
        case 2:
          if (Below(6) == 0) {
            op->nodes.push_back(Other(CU_GRAPH_NODE_TYPE_HOST));
            truth->any = true;
          }
          [[fallthrough]];
        default: {
          std::vector<Parameter> parameters;
          size_t offset = 0;
          for (int values = Below(4); values > 0; --values) {
            offset += 4 * Below(3);
            // Pointers are aligned relative to all parameters.
            const size_t at = (8 - offset % 8) % 8 + 8 * Below(3);
            parameters.push_back(
                Structure(offset, at + 8 + Below(8), at, AnyValue(*op, truth)));
            offset = (offset + parameters.back().value.size() + 3) / 4 * 4;
          }
          if (takes) parameters.push_back(Value((offset + 7) / 8 * 8, taken));
          op->nodes.push_back(KernelOf(std::move(parameters)));
        }
      }
    }
    if (takes) op->nodes.push_back(Frees());
  }

  std::mt19937 random_;
  const std::vector<uint64_t> blocks_;
  const uint64_t pinned_;
  StepOfOps step_;
  std::vector<Truth> truths_;
};

TEST_F(BranchesOpsTest, RandomOpsWaitForThoseThatUseWhatTheyWrite) {
  std::vector<uint64_t> blocks;
  for (int i = 0; i < 24; ++i) blocks.push_back(Take(RandomStep::kBlock));
  const uint64_t pinned = Take(memory_.pinned(), 64);
  int64_t apart = 0;
  for (int seed = 0; seed < 300; ++seed) {
    RandomStep random(seed, blocks, pinned);
    const CapturedOps captured = Captured(random.step());
    ASSERT_EQ(captured.ops.size(), random.truths().size()) << "seed " << seed;
    const Waits waits =
        OrderOf(captured.ops, 1 + random.Below(12), 1 + random.Below(4));
    FakeStream stream;
    const absl::Status status = Branch(captured, waits, random.step(), &stream);
    ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status;
    EXPECT_EQ(stream.edges(), EdgesOf(captured, waits)) << "seed " << seed;

    // Make `before` transitive, and find the nodes of each op.
    Edges before = stream.edges();
    for (std::set<int>& all : before) {
      for (const int node : std::set<int>(all)) {
        all.insert(before[node].begin(), before[node].end());
      }
    }
    std::vector<int> first, last;
    for (const RecordedOp& op : captured.ops) {
      first.push_back(last.empty() ? 0 : last.back() + 1);
      last.push_back(first.back() + op.launches - 1);
    }
    ASSERT_EQ(last.empty() ? 0 : last.back() + 1, before.size());
    for (size_t i = 0; i < first.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        const bool waits_for = before[first[i]].count(last[j]) != 0;
        apart += !waits_for;
        if (!random.truths()[i].HasToWaitFor(random.truths()[j])) continue;
        EXPECT_TRUE(waits_for) << "seed " << seed << ": " << i << ", " << j;
      }
    }
  }
  EXPECT_GT(apart, 5000);  // many pairs are indeed unordered
}

}  // namespace
}  // namespace tensorflow::multistream
