/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/core/common_runtime/multistream/cuda/graph_branches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_memory.h"
#include "tensorflow/core/common_runtime/multistream/memory/recording_memory.h"
#include "tensorflow/core/common_runtime/multistream/step/op_uses.h"
#include "tensorflow/core/common_runtime/multistream/step/recorded_order.h"
#include "tensorflow/core/framework/allocator.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow {
namespace multistream {
namespace {

// Of a kernel. Each has memory of its own, where a sanitizer sees who reads
// past its end.
struct Parameter {
  size_t offset;  // among all of them
  std::string value;
  size_t beyond = 0;  // of the value, bytes that are something else
};

// What each node of a graph comes after.
using Edges = std::vector<std::set<int>>;

struct FakeNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::vector<Parameter> parameters;
  bool has_parameters = true;  // where the driver tells
  CUDA_MEMCPY3D copy = {};
  uint64_t address = 0;  // of what it sets or allocates
  uint64_t bytes = 0;
  std::vector<void*> values;  // of the parameters
  std::set<int> after;        // nodes, as numbered in their graph
};

// It captures, into a graph of its own.
struct FakeStream {
  std::deque<FakeNode> nodes;
  std::vector<CUgraphNode> ends;  // what its next node comes after
  bool captures = true;

  CUstream handle() { return reinterpret_cast<CUstream>(this); }
  CUgraphNode NodeOf(int i) { return reinterpret_cast<CUgraphNode>(&nodes[i]); }
  int IndexOf(CUgraphNode node) {
    int i = 0;
    while (NodeOf(i) != node) ++i;
    return i;
  }
  // Without going on there.
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

FakeStream* StreamOf(CUstream stream) {
  return reinterpret_cast<FakeStream*>(stream);
}
FakeStream* StreamOf(CUgraph graph) {
  return reinterpret_cast<FakeStream*>(graph);
}
const FakeNode* NodeOf(CUgraphNode node) {
  return reinterpret_cast<const FakeNode*>(node);
}

struct FakeDriver {
  std::string failing;   // the name of a function
  int calls_before = 0;  // that it fails
  // The bytes that CUDA knows, from the first to the second.
  std::vector<std::pair<uint64_t, uint64_t>> allocations;

  CUresult Result(const char* function) {
    if (failing != function || calls_before-- > 0) return CUDA_SUCCESS;
    return CUDA_ERROR_NOT_SUPPORTED;
  }
};
FakeDriver* Driver() {
  static auto* driver = new FakeDriver;
  return driver;
}

absl::StatusOr<std::vector<ParameterPlace>> FakeParametersOf(
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

}  // namespace
}  // namespace multistream
}  // namespace tensorflow

// In the place of TensorFlow's, which call CUDA's driver. Their names are those
// that the header's macros make of these.

using tensorflow::multistream::Driver;
using tensorflow::multistream::NodeOf;
using tensorflow::multistream::StreamOf;

CUresult cuStreamGetCaptureInfo_v3(CUstream stream,
                                   CUstreamCaptureStatus* status,
                                   cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** ends,
                                   const CUgraphEdgeData** edges,
                                   size_t* count) {
  auto* fake = StreamOf(stream);
  *status = fake->captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                           : CU_STREAM_CAPTURE_STATUS_NONE;
  *id = 1;
  *graph = reinterpret_cast<CUgraph>(fake);
  *ends = fake->ends.data();
  *edges = nullptr;
  *count = fake->ends.size();
  return Driver()->Result("cuStreamGetCaptureInfo");
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* ends,
                                           size_t count, unsigned int flags) {
  EXPECT_EQ(flags, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  StreamOf(stream)->ends.assign(ends, ends + count);
  return Driver()->Result("cuStreamUpdateCaptureDependencies");
}

// The last one first, as there is no order that CUDA promises.
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  auto* fake = StreamOf(graph);
  const size_t all = fake->nodes.size();
  if (nodes != nullptr) {
    EXPECT_EQ(*count, all);
    for (size_t i = 0; i < all; ++i) nodes[i] = fake->NodeOf(all - 1 - i);
  }
  *count = all;
  return Driver()->Result("cuGraphGetNodes");
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  *type = NodeOf(node)->type;
  return Driver()->Result("cuGraphNodeGetType");
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node,
                                    CUDA_KERNEL_NODE_PARAMS* parameters) {
  EXPECT_EQ(NodeOf(node)->type, CU_GRAPH_NODE_TYPE_KERNEL);
  *parameters = {};
  parameters->func = reinterpret_cast<CUfunction>(node);
  if (NodeOf(node)->has_parameters) {
    parameters->kernelParams = const_cast<void**>(NodeOf(node)->values.data());
  }
  return Driver()->Result("cuGraphKernelNodeGetParams");
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) {
  EXPECT_EQ(NodeOf(node)->type, CU_GRAPH_NODE_TYPE_MEMCPY);
  *copy = NodeOf(node)->copy;
  return Driver()->Result("cuGraphMemcpyNodeGetParams");
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node,
                                    CUDA_MEMSET_NODE_PARAMS* set) {
  EXPECT_EQ(NodeOf(node)->type, CU_GRAPH_NODE_TYPE_MEMSET);
  *set = {};
  set->dst = NodeOf(node)->address;
  return Driver()->Result("cuGraphMemsetNodeGetParams");
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node,
                                      CUDA_MEM_ALLOC_NODE_PARAMS* taken) {
  EXPECT_EQ(NodeOf(node)->type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  *taken = {};
  taken->dptr = NodeOf(node)->address;
  taken->bytesize = NodeOf(node)->bytes;
  return Driver()->Result("cuGraphMemAllocNodeGetParams");
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  EXPECT_EQ(attribute, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
  for (const auto& [begin, end] : Driver()->allocations) {
    if (address < begin || address >= end) continue;
    *static_cast<CUdeviceptr*>(data) = begin;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

namespace tensorflow {
namespace multistream {
namespace {

// Addresses at which there is nothing: a region of the allocator, pinned
// memory, memory of a variable, of a pool and of two libraries.
constexpr uint64_t kRegion = 0x700000000000;
constexpr uint64_t kInRegion = kRegion + (uint64_t{1} << 30);
constexpr uint64_t kRegionEnd = kRegion + (uint64_t{1} << 31);
// Which is read.
alignas(4096) char pinned_bytes[1 << 20];
const uint64_t kPinned = reinterpret_cast<uint64_t>(pinned_bytes);
constexpr uint64_t kVariable = 0x720000000000;
constexpr uint64_t kPool = 0x730000000000;
constexpr uint64_t kLibrary = 0x740000000000;
constexpr uint64_t kOtherLibrary = 0x750000000000;
constexpr uint64_t kBytes = 1 << 20;  // of all but the region
constexpr uint64_t kPage = 4096;

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

MemoryUse Reads(uint64_t begin, uint64_t end) { return {begin, end, false}; }
MemoryUse Writes(uint64_t begin, uint64_t end) { return {begin, end, true}; }

using Uses = std::set<std::tuple<uint64_t, uint64_t, bool>>;
Uses UsesOf(const RecordedOp& op) {
  Uses uses;
  for (const MemoryUse& use : op.uses) {
    uses.emplace(use.begin, use.end, use.writes);
  }
  return uses;
}

Parameter Value(size_t offset, uint64_t value) {
  return {offset, std::string(reinterpret_cast<const char*>(&value), 8)};
}

// With `value` at a place of it.
Parameter Structure(size_t offset, size_t size, size_t at, uint64_t value) {
  Parameter parameter{offset, std::string(size, '\0')};
  std::memcpy(&parameter.value[at], &value, sizeof(value));
  return parameter;
}

FakeNode KernelOf(std::vector<Parameter> parameters) {
  FakeNode node;
  node.type = CU_GRAPH_NODE_TYPE_KERNEL;
  node.parameters = std::move(parameters);
  return node;
}

FakeNode Kernel(const std::vector<uint64_t>& values) {
  std::vector<Parameter> parameters;
  for (const uint64_t value : values) {
    parameters.push_back(Value(8 * parameters.size(), value));
  }
  return KernelOf(std::move(parameters));
}

FakeNode Copy(uint64_t from, uint64_t to) {
  FakeNode node;
  node.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  node.copy.srcMemoryType = node.copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  node.copy.srcDevice = from;
  node.copy.dstDevice = to;
  return node;
}

FakeNode Set(uint64_t address) {
  FakeNode node;
  node.type = CU_GRAPH_NODE_TYPE_MEMSET;
  node.address = address;
  return node;
}

FakeNode Takes(uint64_t address, uint64_t bytes) {
  FakeNode node;
  node.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  node.address = address;
  node.bytes = bytes;
  return node;
}

FakeNode Other(CUgraphNodeType type) {
  FakeNode node;
  node.type = type;
  return node;
}
FakeNode Frees() { return Other(CU_GRAPH_NODE_TYPE_MEM_FREE); }

// A step, each time it is launched.
struct Op {
  std::vector<MemoryUse> uses;  // as TensorFlow says
  std::vector<FakeNode> nodes;
  std::vector<FakeNode> before = {};  // launched by nobody knows whom
};
struct StepOfOps {
  std::vector<Op> ops;
  std::vector<FakeNode> after = {};
};

void LaunchAll(const StepOfOps& step, FakeStream* stream, OpWatcher* watcher) {
  int i = 0;
  for (const Op& op : step.ops) {
    const std::string name = absl::StrCat("op", i++);
    for (const FakeNode& node : op.before) stream->Launch(node);
    watcher->Begins(name);
    for (const FakeNode& node : op.nodes) stream->Launch(node);
    watcher->Launched(name, op.uses);
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
  // Where it must work.
  CapturedOps Captured(const StepOfOps& step) {
    absl::StatusOr<CapturedOps> captured = Capture(step);
    EXPECT_TRUE(captured.ok()) << captured.status();
    return captured.ok() ? *std::move(captured) : CapturedOps();
  }
  std::vector<RecordedOp> OpsOf(const StepOfOps& step) {
    return Captured(step).ops;
  }
  // What the second op is said to use besides what it says itself, where the
  // first one is said to use what it says.
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

class CapturesOpsTest : public GraphBranchesTest {};
class BranchesOpsTest : public GraphBranchesTest {
 protected:
  absl::Status Branch(const CapturedOps& captured, Waits waits,
                      const StepOfOps& step, FakeStream* stream) {
    BranchesOps branches(stream->handle(), captured, std::move(waits));
    LaunchAll(step, stream, &branches);
    return branches.Finish();
  }
  // Of the graph of a step whose ops wait so.
  Edges EdgesWith(Waits waits, const StepOfOps& step) {
    FakeStream stream;
    const absl::Status status =
        Branch(Captured(step), std::move(waits), step, &stream);
    EXPECT_TRUE(status.ok()) << status;
    return stream.edges();
  }
  // Of `again` where it was `first` when it was captured.
  absl::Status Branch(const StepOfOps& first, const StepOfOps& again) {
    FakeStream stream;
    const CapturedOps captured = Captured(first);
    return Branch(captured, OrderOf(captured.ops, 8, 8), again, &stream);
  }
};

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
}

TEST_F(CapturesOpsTest, AStepThatLaunchesNothingHasNoOps) {
  const CapturedOps captured = Captured({{{{}, {}}}});
  EXPECT_TRUE(captured.ops.empty());
  EXPECT_EQ(captured.calls.size(), 1);
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

// As where a kernel gets it from an object that keeps it.
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

TEST_F(CapturesOpsTest, APointerInAStructureIsFoundWhereOneMayBe) {
  const uint64_t a = Take(64);
  const auto added = [&](size_t offset, size_t size, size_t at) {
    const FakeNode node = KernelOf({Structure(offset, size, at, a)});
    return AddedToSecond({{{{Writes(a, a + 64)}, {Kernel({})}}, {{}, {node}}}});
  };
  const Uses none, uses_a = {{a, a + 64, true}};
  EXPECT_EQ(added(8, 24, 0), uses_a);
  EXPECT_EQ(added(8, 24, 8), uses_a);
  EXPECT_EQ(added(8, 24, 16), uses_a);
  EXPECT_EQ(added(8, 24, 12), none);
  EXPECT_EQ(added(4, 20, 4), uses_a);
  EXPECT_EQ(added(4, 20, 12), uses_a);
  EXPECT_EQ(added(4, 20, 8), none);  // at 12 of the whole
  EXPECT_EQ(added(12, 12, 4), uses_a);
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

TEST_F(CapturesOpsTest, MemoryThatNoOpSaysItUsesIsUsedByThoseThatPointToIt) {
  const uint64_t a = Take(64), b = Take(64);
  const StepOfOps step = {
      {{{}, {Kernel({b + 8})}}, {{}, {Kernel({a})}}, {{}, {Set(b)}}}};
  const std::vector<RecordedOp> ops = OpsOf(step);
  ASSERT_EQ(ops.size(), 3);
  EXPECT_EQ(UsesOf(ops[0]), Uses({{b, b + 64, true}}));
  EXPECT_EQ(UsesOf(ops[1]), Uses({{a, a + 64, true}}));
  EXPECT_EQ(UsesOf(ops[2]), Uses({{b, b + 64, true}}));
  EXPECT_EQ(WaitsOf(step), Waits({{}, {}, {0}}));
}

TEST_F(CapturesOpsTest, MemoryOutsideOfTheRecordingIsKnownFromOtherOps) {
  const uint64_t v = kVariable + 128;
  EXPECT_EQ(AddedToSecond({{{{Reads(v, v + 64)}, {Kernel({v})}},
                            {{}, {Kernel({v + 16})}}}}),
            Uses({{v, v + 64, true}}));
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
  // The other address is rubbish there.
  FakeNode to_device = Copy(a, b), to_host = Copy(b, a);
  to_device.copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  to_host.copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  EXPECT_EQ(AddedToSecond({{{{Writes(a, a + 64)}, {Kernel({})}},
                            {{Writes(b, b + 64)}, {to_device, to_host}}}}),
            Uses());
  // Wherever the driver says it is.
  FakeNode unified = Copy(b, a);
  unified.copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
  EXPECT_EQ(AddedToSecond({{{{Writes(a, a + 64)}, {Kernel({})}},
                            {{Writes(b, b + 64)}, {unified}}}}),
            Uses({{a, a + 64, true}}));
}

// While ops come one after the other, the driver may give each the same memory.
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
  // Nor is it read past its end.
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
  // Not of the recording, so it may be written.
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
        // Others may have it meanwhile.
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
  EXPECT_FALSE(is_alone(without));  // as it has none
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
  // The second call, which asks for the nodes.
  Driver()->failing = "cuGraphGetNodes";
  Driver()->calls_before = 1;
  EXPECT_FALSE(Capture(step).ok());
}

TEST_F(CapturesOpsTest, AStreamThatDoesNotCaptureAnyMoreIsAnError) {
  FakeStream stream;
  CapturesOps captures(stream.handle(), FakeParametersOf);
  LaunchAll({{{{}, {Kernel({})}}}}, &stream, &captures);
  stream.captures = false;
  const absl::Status status = captures.Finish(memory_).status();
  EXPECT_TRUE(absl::StrContains(status.message(), "not capture")) << status;
}

// Of ops that wait so, and each launch a chain of nodes.
Edges EdgesOf(const CapturedOps& captured, const Waits& waits) {
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

TEST_F(BranchesOpsTest, AGraphHasTheBranchesOfItsOps) {
  const uint64_t a = Take(64), b = Take(64), c = Take(64);
  const StepOfOps step = {
      {{{Writes(a, a + 64)}, {Kernel({a}), Kernel({a})}},
       {{Reads(a, a + 64), Writes(b, b + 64)}, {Kernel({a, b})}},
       {{Reads(a, a + 64), Writes(c, c + 64)}, {Set(c), Kernel({a, c})}},
       {{Reads(b, b + 64), Writes(c, c + 64)}, {Kernel({b, c})}}}};
  EXPECT_EQ(EdgesWith({{}, {0}, {0}, {2, 1}}, step),
            Edges({{}, {0}, {1}, {1}, {3}, {2, 4}}));
  // Whatever the order.
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
  // What is launched between ops.
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
    for (const int calls_before : {0, 1}) {  // it is called for each op
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

// Ops that say what they use, or only point to it.
class RandomStep {
 public:
  // `blocks`: of kBlock bytes each, the recording's.
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

  // What an op may use, whoever says so.
  struct Truth {
    bool any = false;  // nobody knows what
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
  // Of each that launches something.
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

  // A value of a node, and what may be used by who has it.
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
      case 3: {  // of which others may say that they use it
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
    // Maybe where another op has had some before.
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
            // Where the pointer may be in the parameter.
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

    // All the nodes that each comes after, and which are which op's.
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
  EXPECT_GT(apart, 5000);  // not all one after the other
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
