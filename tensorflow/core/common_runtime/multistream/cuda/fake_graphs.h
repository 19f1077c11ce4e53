// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A fake CUDA driver that captures graphs and launches nothing, and the
// fixtures for tests of graph_branches.h.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FAKE_GRAPHS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FAKE_GRAPHS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_device.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_branches.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_memory.h"
#include "tensorflow/core/framework/allocator.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow::multistream {

// A kernel's parameter. Each is a separate allocation, so that AddressSanitizer
// reports reads past its end.
struct Parameter {
  size_t offset;  // within all parameters
  std::string value;
  size_t beyond = 0;  // bytes of `value` that are no part of the parameter
};

// For each node of a graph, the nodes that it depends on.
using Edges = std::vector<std::set<int>>;

struct FakeNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::vector<Parameter> parameters;
  bool has_parameters = true;  // false: the driver cannot tell
  CUDA_MEMCPY3D copy = {};
  uint64_t address = 0;  // that the node sets or allocates
  uint64_t bytes = 0;
  std::vector<void*> values;  // of the parameters
  std::set<int> after;        // dependencies, as indices into the graph
};

// A capturing stream, with its own graph.
struct FakeStream {
  std::deque<FakeNode> nodes;
  std::vector<CUgraphNode> ends;  // that the next node depends on
  bool captures = true;

  CUstream handle() { return reinterpret_cast<CUstream>(this); }
  CUgraphNode NodeOf(int i) { return reinterpret_cast<CUgraphNode>(&nodes[i]); }
  int IndexOf(CUgraphNode node) {
    int i = 0;
    while (NodeOf(i) != node) ++i;
    return i;
  }
  // Adds a node, but leaves `ends` as it was.
  int Add(FakeNode node) {
    for (const CUgraphNode end : ends) node.after.insert(IndexOf(end));
    nodes.push_back(std::move(node));
    for (Parameter& parameter : nodes.back().parameters) {
      nodes.back().values.push_back(parameter.value.data());
    }
    return static_cast<int>(nodes.size()) - 1;
  }
  void Launch(FakeNode node) { ends = {NodeOf(Add(std::move(node)))}; }

  Edges edges() const {
    Edges edges;
    for (const FakeNode& node : nodes) edges.push_back(node.after);
    return edges;
  }
};

inline FakeStream* StreamOf(CUstream stream) {
  return reinterpret_cast<FakeStream*>(stream);
}
inline FakeStream* StreamOf(CUgraph graph) {
  return reinterpret_cast<FakeStream*>(graph);
}
inline const FakeNode* NodeOf(CUgraphNode node) {
  return reinterpret_cast<const FakeNode*>(node);
}

struct FakeDriver {
  std::string failing;   // the name of the function that fails
  int calls_before = 0;  // calls that succeed first
  // Address ranges [first, second) that CUDA knows.
  std::vector<std::pair<uint64_t, uint64_t>> allocations;

  CUresult Result(const char* function) {
    if (failing != function || calls_before-- > 0) return CUDA_SUCCESS;
    return CUDA_ERROR_NOT_SUPPORTED;
  }
};
inline FakeDriver* Driver() {
  static auto* driver = new FakeDriver;
  return driver;
}

inline absl::StatusOr<std::vector<ParameterPlace>> FakeParametersOf(
    const CUDA_KERNEL_NODE_PARAMS& kernel) {
  if (Driver()->Result("ParametersOf") != CUDA_SUCCESS) {
    return absl::UnimplementedError("ParametersOf");
  }
  std::vector<ParameterPlace> places;
  const auto* node = reinterpret_cast<const FakeNode*>(kernel.func);
  for (const Parameter& parameter : node->parameters) {
    places.push_back(
        {parameter.offset, parameter.value.size() - parameter.beyond});
  }
  return places;
}

// Addresses without memory behind them: a region of the allocator, and memory
// of a variable, of a pool and of two libraries.
inline constexpr uint64_t kRegion = 0x700000000000;
inline constexpr uint64_t kInRegion = kRegion + (uint64_t{1} << 30);
inline constexpr uint64_t kRegionEnd = kRegion + (uint64_t{1} << 31);
// Pinned memory is real, because CapturesOps reads it.
alignas(4096) inline char pinned_bytes[1 << 20];
inline const uint64_t kPinned = reinterpret_cast<uint64_t>(pinned_bytes);
inline constexpr uint64_t kVariable = 0x720000000000;
inline constexpr uint64_t kPool = 0x730000000000;
inline constexpr uint64_t kLibrary = 0x740000000000;
inline constexpr uint64_t kOtherLibrary = 0x750000000000;
inline constexpr uint64_t kBytes = 1 << 20;  // size of each, except the region
inline constexpr uint64_t kPage = 4096;

class FakeAllocator : public Allocator {
 public:
  explicit FakeAllocator(uint64_t begin) : next_(begin) {}

  std::string Name() override { return "fake"; }
  void* AllocateRaw(size_t, size_t bytes) override {
    return reinterpret_cast<void*>(std::exchange(next_, next_ + bytes));
  }
  void DeallocateRaw(void*) override {}

 private:
  uint64_t next_;
};

inline MemoryUse Reads(uint64_t begin, uint64_t end) {
  return {begin, end, false};
}
inline MemoryUse Writes(uint64_t begin, uint64_t end) {
  return {begin, end, true};
}

using Uses = std::set<std::tuple<uint64_t, uint64_t, bool>>;
inline Uses UsesOf(const RecordedOp& op) {
  Uses uses;
  for (const MemoryUse& use : op.uses) {
    uses.emplace(use.begin, use.end, use.writes);
  }
  return uses;
}

inline Parameter Value(size_t offset, uint64_t value) {
  return {offset, std::string(reinterpret_cast<const char*>(&value), 8)};
}

// A structure with `value` at offset `at`.
inline Parameter Structure(size_t offset, size_t size, size_t at,
                           uint64_t value) {
  Parameter parameter{offset, std::string(size, '\0')};
  std::memcpy(&parameter.value[at], &value, sizeof(value));
  return parameter;
}

inline FakeNode KernelOf(std::vector<Parameter> parameters) {
  FakeNode node;
  node.type = CU_GRAPH_NODE_TYPE_KERNEL;
  node.parameters = std::move(parameters);
  return node;
}

inline FakeNode Kernel(const std::vector<uint64_t>& values) {
  std::vector<Parameter> parameters;
  for (const uint64_t value : values) {
    parameters.push_back(Value(8 * parameters.size(), value));
  }
  return KernelOf(std::move(parameters));
}

inline FakeNode Copy(uint64_t from, uint64_t to) {
  FakeNode node;
  node.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  node.copy.srcMemoryType = node.copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  node.copy.srcDevice = from;
  node.copy.dstDevice = to;
  return node;
}

inline FakeNode Set(uint64_t address) {
  FakeNode node;
  node.type = CU_GRAPH_NODE_TYPE_MEMSET;
  node.address = address;
  return node;
}

inline FakeNode Takes(uint64_t address, uint64_t bytes) {
  FakeNode node;
  node.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  node.address = address;
  node.bytes = bytes;
  return node;
}

inline FakeNode Other(CUgraphNodeType type) {
  FakeNode node;
  node.type = type;
  return node;
}
inline FakeNode Frees() { return Other(CU_GRAPH_NODE_TYPE_MEM_FREE); }

// An op of a step, the same at each launch.
struct Op {
  std::vector<MemoryUse> uses;  // as reported by TensorFlow
  std::vector<FakeNode> nodes;
  std::vector<FakeNode> before = {};  // launched outside of any op
};
struct StepOfOps {
  std::vector<Op> ops;
  std::vector<FakeNode> after = {};
};

inline void LaunchAll(const StepOfOps& step, FakeStream* stream,
                      OpWatcher* watcher) {
  int i = 0;
  for (const Op& op : step.ops) {
    const std::string name = absl::StrCat("op", i++);
    for (const FakeNode& node : op.before) stream->Launch(node);
    watcher->Begins({name});
    for (const FakeNode& node : op.nodes) stream->Launch(node);
    watcher->Launched({name, op.uses});
  }
  for (const FakeNode& node : step.after) stream->Launch(node);
}

using Waits = std::vector<std::vector<int>>;

class GraphBranchesTest : public ::testing::Test {
 protected:
  GraphBranchesTest() {
    *Driver() = {};
    Driver()->allocations = {{kRegion, kRegionEnd},
                             {kPinned, kPinned + kBytes},
                             {kVariable, kVariable + kBytes},
                             {kPool, kPool + kBytes},
                             {kLibrary, kLibrary + kBytes},
                             {kOtherLibrary, kOtherLibrary + kBytes}};
  }
  ~GraphBranchesTest() override {
    for (const auto& [allocator, address] : taken_) {
      allocator->DeallocateRaw(address);
    }
  }

  uint64_t Take(Allocator* allocator, uint64_t bytes) {
    taken_.emplace_back(allocator, allocator->AllocateRaw(64, bytes));
    return reinterpret_cast<uint64_t>(taken_.back().second);
  }
  // Memory of the recording.
  uint64_t Take(uint64_t bytes) { return Take(memory_.device(), bytes); }

  absl::StatusOr<CapturedOps> Capture(const StepOfOps& step) {
    FakeStream stream;
    CapturesOps captures(stream.handle(), FakeParametersOf);
    LaunchAll(step, &stream, &captures);
    return captures.Finish(memory_);
  }
  // The same, where capturing must succeed.
  CapturedOps Captured(const StepOfOps& step) {
    absl::StatusOr<CapturedOps> captured = Capture(step);
    EXPECT_TRUE(captured.ok()) << captured.status();
    return captured.ok() ? *std::move(captured) : CapturedOps();
  }
  std::vector<RecordedOp> OpsOf(const StepOfOps& step) {
    return Captured(step).ops;
  }
  // Uses that CapturesOps adds to the second op's own. Expects none added to
  // the first op's.
  Uses AddedToSecond(const StepOfOps& step) {
    const std::vector<RecordedOp> ops = OpsOf(step);
    EXPECT_EQ(ops.size(), 2);
    if (ops.size() != 2) return {};
    EXPECT_EQ(UsesOf(ops[0]), UsesOf({step.ops[0].uses}));
    Uses uses = UsesOf(ops[1]);
    for (const auto& said : UsesOf({step.ops[1].uses})) {
      EXPECT_EQ(uses.erase(said), 1);
    }
    return uses;
  }
  Waits WaitsOf(const StepOfOps& step) { return OrderOf(OpsOf(step), 8, 8); }

  FakeAllocator device_{kRegion};
  FakeAllocator pinned_{kPinned};
  RecordingMemory memory_{&device_, &pinned_};
  std::vector<std::pair<Allocator*, void*>> taken_;
};

class BranchesOpsTest : public GraphBranchesTest {
 protected:
  absl::Status Branch(const CapturedOps& captured, Waits waits,
                      const StepOfOps& step, FakeStream* stream) {
    BranchesOps branches(stream->handle(), captured, /*fused=*/nullptr,
                         /*launcher=*/nullptr, std::move(waits));
    LaunchAll(step, stream, &branches);
    return branches.Finish();
  }
  // Edges of the graph of a step whose ops wait as in `waits`.
  Edges EdgesWith(Waits waits, const StepOfOps& step) {
    FakeStream stream;
    const absl::Status status =
        Branch(Captured(step), std::move(waits), step, &stream);
    EXPECT_TRUE(status.ok()) << status;
    return stream.edges();
  }
  // The first capture sees `first`, the second one `again`.
  absl::Status Branch(const StepOfOps& first, const StepOfOps& again) {
    FakeStream stream;
    const CapturedOps captured = Captured(first);
    return Branch(captured, OrderOf(captured.ops, 8, 8), again, &stream);
  }
};

// The expected edges for `waits`, where each op launches a chain of nodes.
inline Edges EdgesOf(const CapturedOps& captured, const Waits& waits) {
  Edges edges;
  std::vector<int> last;
  for (size_t i = 0; i < waits.size(); ++i) {
    std::set<int> after;
    for (const int before : waits[i]) after.insert(last[before]);
    for (int launch = 0; launch < captured.ops[i].launches; ++launch) {
      edges.push_back(after);
      after = {static_cast<int>(edges.size()) - 1};
    }
    last.push_back(static_cast<int>(edges.size()) - 1);
  }
  return edges;
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_FAKE_GRAPHS_H_
