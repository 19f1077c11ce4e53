// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/graph_branches.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_memory.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"

namespace tensorflow::multistream {
namespace {

constexpr uint64_t kPage = 4096;

bool IsIn(uint64_t value, absl::Span<const MemoryUse> uses) {
  return std::any_of(uses.begin(), uses.end(), [value](const MemoryUse& use) {
    return value >= use.begin && value < use.end;
  });
}

// The start of the CUDA allocation that contains an address; 0: none does.
uint64_t AllocationOf(uint64_t address) {
  constexpr uint64_t kLowest = uint64_t{1} << 16;
  CUdeviceptr begin = 0;
  if (address < kLowest ||
      cuPointerGetAttribute(&begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                            address) != CUDA_SUCCESS) {
    return 0;
  }
  return begin;
}

// The graph that a stream captures; `ends`: the nodes that the stream's next
// node will depend on.
absl::StatusOr<CUgraph> GraphOf(CUstream stream,
                                std::vector<CUgraphNode>* ends) {
  CUstreamCaptureStatus status;
  cuuint64_t id;
  CUgraph graph = nullptr;
  const CUgraphNode* nodes = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  TF_RETURN_IF_ERROR(
      Checked("cuStreamGetCaptureInfo",
              cuStreamGetCaptureInfo_v3(stream, &status, &id, &graph, &nodes,
                                        &edges, &count)));
  if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return absl::InternalError("the stream does not capture any more");
  }
  if (ends != nullptr) ends->assign(nodes, nodes + count);
  return graph;
}

bool IsOneKernel(const std::vector<CUgraphNode>& nodes) {
  CUgraphNodeType type;
  return nodes.size() == 1 &&
         cuGraphNodeGetType(nodes[0], &type) == CUDA_SUCCESS &&
         type == CU_GRAPH_NODE_TYPE_KERNEL;
}

}  // namespace

void CapturesOps::Begins(const LaunchedOp&) { Add({}, /*is_no_ops=*/true); }

void CapturesOps::Launched(LaunchedOp op) {
  Add(std::move(op), /*is_no_ops=*/false);
}

void CapturesOps::Add(LaunchedOp launched, bool is_no_ops) {
  if (!status_.ok()) return;
  absl::StatusOr<std::vector<CUgraphNode>> nodes = NewNodes();
  if (!nodes.ok()) {
    status_ = nodes.status();
    return;
  }
  made_.insert(made_.end(), launched.made.begin(), launched.made.end());
  freed_.insert(freed_.end(), launched.freed.begin(), launched.freed.end());
  if (nodes->empty()) {
    if (!is_no_ops) captured_.calls.push_back({});
    return;
  }
  if (captured_.ops.size() == kMostOpsWithBranches) {
    status_ = absl::UnimplementedError(absl::StrCat(
        "more than ", kMostOpsWithBranches, " ops launch something"));
    return;
  }
  captured_.calls.push_back(
      {static_cast<int>(captured_.ops.size()), is_no_ops});
  names_.push_back(launched.name);
  RecordedOp& op = captured_.ops.emplace_back();
  op.uses = std::move(launched.uses);
  op.alone = is_no_ops;
  op.made = std::exchange(made_, {});
  op.freed = std::exchange(freed_, {});
  if (launched.elementwise && IsOneKernel(*nodes)) {
    op.launches = 1;
    op.uses = UsesOf(*launched.elementwise);
    op.elementwise = std::move(launched.elementwise);
    return;
  }
  pool_allocations_ = 0;
  pool_memory_.clear();
  const size_t before = unknown_.size();
  for (const CUgraphNode node : *nodes) status_.Update(AddNode(node, &op));
  // Pool memory is not a use of the op: ops in a chain are all given the same
  // memory, but ops that run side by side get different memory.
  unknown_.erase(std::remove_if(unknown_.begin() + before, unknown_.end(),
                                [this](const Unknown& it) {
                                  return IsIn(it.value, pool_memory_);
                                }),
                 unknown_.end());
  if (pool_allocations_ != 0) {
    status_.Update(absl::UnimplementedError(
        absl::StrCat("'", launched.name, "' keeps memory of the stream")));
  }
}

absl::StatusOr<std::vector<CUgraphNode>> CapturesOps::NewNodes() {
  TF_ASSIGN_OR_RETURN(const CUgraph graph, GraphOf(stream_, nullptr));
  size_t count = 0;
  TF_RETURN_IF_ERROR(
      Checked("cuGraphGetNodes", cuGraphGetNodes(graph, nullptr, &count)));
  std::vector<CUgraphNode> fresh;
  if (count == known_.size()) return fresh;
  std::vector<CUgraphNode> all(count);
  TF_RETURN_IF_ERROR(
      Checked("cuGraphGetNodes", cuGraphGetNodes(graph, all.data(), &count)));
  for (const CUgraphNode node : all) {
    if (known_.insert(node).second) fresh.push_back(node);
  }
  return fresh;
}

absl::Status CapturesOps::AddNode(CUgraphNode node, RecordedOp* op) {
  ++op->launches;
  CUgraphNodeType type;
  TF_RETURN_IF_ERROR(
      Checked("cuGraphNodeGetType", cuGraphNodeGetType(node, &type)));
  switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return AddKernel(node, op);
    case CU_GRAPH_NODE_TYPE_MEMCPY: {
      CUDA_MEMCPY3D copy;
      TF_RETURN_IF_ERROR(Checked("cuGraphMemcpyNodeGetParams",
                                 cuGraphMemcpyNodeGetParams(node, &copy)));
      if (copy.srcMemoryType != CU_MEMORYTYPE_HOST) {
        AddValue(copy.srcDevice, op);
      } else if (copy.Height <= 1 && copy.Depth <= 1) {
        copied_.push_back({static_cast<int>(op - captured_.ops.data()),
                           copy.srcHost, copy.WidthInBytes});
      }
      // For copies to host memory see CheckCopied.
      if (copy.dstMemoryType != CU_MEMORYTYPE_HOST) {
        AddValue(copy.dstDevice, op);
      }
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      CUDA_MEMSET_NODE_PARAMS set;
      TF_RETURN_IF_ERROR(Checked("cuGraphMemsetNodeGetParams",
                                 cuGraphMemsetNodeGetParams(node, &set)));
      AddValue(set.dst, op);
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
      CUDA_MEM_ALLOC_NODE_PARAMS taken;
      TF_RETURN_IF_ERROR(Checked("cuGraphMemAllocNodeGetParams",
                                 cuGraphMemAllocNodeGetParams(node, &taken)));
      pool_memory_.push_back({taken.dptr, taken.dptr + taken.bytesize, true});
      op->takes_workspace = true;
      ++pool_allocations_;
      return absl::OkStatus();
    }
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      --pool_allocations_;
      return absl::OkStatus();
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return absl::OkStatus();
    default:
      op->alone = true;
      return absl::OkStatus();
  }
}

absl::Status CapturesOps::AddKernel(CUgraphNode node, RecordedOp* op) {
  CUDA_KERNEL_NODE_PARAMS kernel;
  TF_RETURN_IF_ERROR(Checked("cuGraphKernelNodeGetParams",
                             cuGraphKernelNodeGetParams(node, &kernel)));
  absl::StatusOr<std::vector<ParameterPlace>> places = parameters_(kernel);
  if (!places.ok()) return places.status();
  if (kernel.kernelParams == nullptr && !places->empty()) {
    op->alone = true;  // the parameters are elsewhere: kernelParams is not used
    return absl::OkStatus();
  }
  for (size_t i = 0; i < places->size(); ++i) {
    const char* parameter = static_cast<const char*>(kernel.kernelParams[i]);
    // A pointer inside a structure is aligned relative to all parameters.
    size_t at = (8 - (*places)[i].offset % 8) % 8;
    for (; at + 8 <= (*places)[i].size; at += 8) {
      uint64_t value;
      std::memcpy(&value, parameter + at, sizeof(value));
      AddValue(value, op);
    }
  }
  return absl::OkStatus();
}

void CapturesOps::AddValue(uint64_t value, RecordedOp* op) {
  if (IsIn(value, op->uses)) return;
  unknown_.push_back({static_cast<int>(op - captured_.ops.data()), value});
}

absl::StatusOr<CapturedOps> CapturesOps::Finish(const RecordingMemory& memory) {
  Add({}, /*is_no_ops=*/true);
  TF_RETURN_IF_ERROR(status_);
  // Kernels with many tensors read their pointers from a table that is copied
  // from pinned memory.
  for (const auto& [i, from, bytes] : copied_) {
    if (!memory.IsPinned(from, bytes)) continue;
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += 8) {
      uint64_t value;
      std::memcpy(&value, static_cast<const char*>(from) + at, sizeof(value));
      AddValue(value, &captured_.ops[i]);
    }
  }
  std::vector<MemoryUse> uses;
  absl::flat_hash_set<uint64_t> regions;
  for (const auto& [address, bytes] : memory.All()) {
    uses.push_back(UseOf(address, bytes, /*writes=*/false));
    regions.insert(AllocationOf(uses.back().begin));
  }
  for (const RecordedOp& op : captured_.ops) {
    uses.insert(uses.end(), op.uses.begin(), op.uses.end());
  }
  const MemoryPlaces known(std::move(uses));
  int of_others = 0, of_libraries = 0;
  for (const auto& [i, value] : unknown_) {
    RecordedOp& op = captured_.ops[i];
    if (IsIn(value, op.uses)) continue;
    if (const int other = known.Find(value); other >= 0) {
      // An undeclared use, or a stale stack value in a kernel's parameters:
      // assume a write.
      op.uses.push_back({known[other].begin, known[other].end, true});
      VLOG(2) << "'" << names_[i] << "' may use memory of other ops";
      ++of_others;
      continue;
    }
    const uint64_t allocation = AllocationOf(value);
    if (allocation == 0 ||
        memory.IsPinned(reinterpret_cast<const void*>(value), 1)) {
      continue;  // a plain number, or memory that each launch copies
    }
    // Memory of a library, such as a workspace, which one op at a time may use.
    // The whole allocation counts as used; in a region of an allocator, which
    // has other tensors too, only pages around the address.
    MemoryUse use{allocation, allocation + 1, /*writes=*/true};
    if (regions.contains(allocation)) {
      use.begin = value / kPage * kPage;
      use.end = use.begin + 2 * kPage;
    }
    op.uses.push_back(use);
    VLOG(2) << "'" << names_[i] << "' may use memory of a library";
    ++of_libraries;
  }
  VLOG(1) << captured_.ops.size() << " ops launch something; they may use "
          << of_others << " places of others, " << of_libraries
          << " of libraries";
  return std::move(captured_);
}

BranchesOps::BranchesOps(CUstream stream, const CapturedOps& captured,
                         const FusedOps* fused, FusedLauncher* launcher,
                         std::vector<std::vector<int>> waits)
    : stream_(stream),
      captured_(captured),
      fused_(fused),
      launcher_(launcher),
      waits_(std::move(waits)),
      ends_(waits_.size()) {
  if (fused_ != nullptr) calls_of_kernels_.emplace(*fused_);
}

bool BranchesOps::IsNextNoOps() const {
  return call_ < captured_.calls.size() && captured_.calls[call_].is_no_ops;
}

void BranchesOps::Begins(const LaunchedOp&) {
  if (IsNextNoOps()) After(std::nullopt);
  Before();
}

void BranchesOps::Launched(LaunchedOp op) {
  After(std::move(op.elementwise));
  if (IsNextNoOps()) Before();
}

absl::Status BranchesOps::Finish() {
  if (IsNextNoOps()) After(std::nullopt);
  skipped_.reset();
  TF_RETURN_IF_ERROR(status_);
  if (call_ != captured_.calls.size()) {
    return absl::UnimplementedError("it has fewer ops the second time");
  }
  std::vector<CUgraphNode> ends;
  TF_ASSIGN_OR_RETURN(const size_t nodes, CountNodes(&ends));
  if (nodes != nodes_) {
    return absl::UnimplementedError("something else was launched at the end");
  }
  return absl::OkStatus();
}

void BranchesOps::Before() {
  if (!status_.ok()) return;
  if (call_ >= captured_.calls.size()) {
    status_ = absl::UnimplementedError("it has more ops the second time");
    return;
  }
  const int op = captured_.calls[call_].op;
  if (op < 0) return;
  if (IsFused(op)) {
    skipped_.emplace();
    return;
  }
  status_ = WaitFor(LaunchedAs(op));
}

// What is launched next waits as `launched` has to.
absl::Status BranchesOps::WaitFor(int launched) {
  std::vector<CUgraphNode> ends;
  for (const int before : waits_[launched]) {
    ends.insert(ends.end(), ends_[before].begin(), ends_[before].end());
  }
  const size_t count = ends.size();
  ends.resize(std::max<size_t>(count, 1));
  return Checked(
      "cuStreamUpdateCaptureDependencies",
      cuStreamUpdateCaptureDependencies(stream_, ends.data(), count,
                                        CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}

void BranchesOps::After(std::optional<ElementwiseOp> elementwise) {
  skipped_.reset();
  if (!status_.ok()) return;
  const int op = captured_.calls[call_++].op;
  const bool is_fused = op >= 0 && IsFused(op);
  std::vector<CUgraphNode> ends;
  const absl::StatusOr<size_t> nodes = CountNodes(&ends);
  if (!nodes.ok()) {
    status_ = nodes.status();
    return;
  }
  const size_t expected = op < 0 || is_fused ? 0 : captured_.ops[op].launches;
  if (*nodes != nodes_ + expected) {
    status_ = absl::UnimplementedError("an op launched something else");
    return;
  }
  nodes_ = *nodes;
  if (op < 0) return;
  if (!is_fused) {
    ends_[LaunchedAs(op)] = std::move(ends);
  } else if (const FusedKernel* kernel =
                 calls_of_kernels_->Add(op, std::move(elementwise))) {
    status_ = LaunchFused(*kernel, LaunchedAs(op));
  }
}

absl::Status BranchesOps::LaunchFused(const FusedKernel& kernel, int launched) {
  TF_ASSIGN_OR_RETURN(const std::vector<FusedCall> all,
                      calls_of_kernels_->CallsOf(kernel));
  const size_t most = MostCallsOf(kernel.program);
  absl::Span<const FusedCall> calls(all);
  for (; !calls.empty(); calls.remove_prefix(std::min(most, calls.size()))) {
    TF_RETURN_IF_ERROR(WaitFor(launched));
    TF_RETURN_IF_ERROR(
        launcher_->Launch(kernel.program, calls.subspan(0, most)));
    std::vector<CUgraphNode> ends;
    TF_ASSIGN_OR_RETURN(nodes_, CountNodes(&ends));
    ends_[launched].insert(ends_[launched].end(), ends.begin(), ends.end());
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> BranchesOps::CountNodes(std::vector<CUgraphNode>* ends) {
  TF_ASSIGN_OR_RETURN(const CUgraph graph, GraphOf(stream_, ends));
  size_t count = 0;
  TF_RETURN_IF_ERROR(
      Checked("cuGraphGetNodes", cuGraphGetNodes(graph, nullptr, &count)));
  return count;
}

}  // namespace tensorflow::multistream
