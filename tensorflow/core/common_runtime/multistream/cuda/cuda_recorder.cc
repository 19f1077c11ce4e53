// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/cuda_recorder.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/executor_compat.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/fuse/fused_program.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recorded_order.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording_memory.h"
#include "tensorflow/core/common_runtime/multistream/cuda/capture_gate.h"
#include "tensorflow/core/common_runtime/multistream/cuda/captured_launches.h"
#include "tensorflow/core/common_runtime/multistream/cuda/cuda_stream_group.h"
#include "tensorflow/core/common_runtime/multistream/cuda/fused_kernels.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_branches.h"
#include "tensorflow/core/common_runtime/multistream/cuda/graph_memory.h"
#include "tensorflow/core/common_runtime/multistream/cuda/recorded_callbacks.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow::multistream {
namespace {

CUstream HandleOf(se::Stream* stream) {
  return static_cast<CUstream>(stream->platform_specific_handle().stream);
}

absl::Status Refused(const std::string& reason) {
  return absl::FailedPreconditionError(absl::StrCat("it has ", reason));
}

// A recorded copy may only use GPU memory, or the recording's pinned memory:
// other memory may be freed before a replay.
absl::Status CheckCopied(const RecordingMemory& memory, CUmemorytype type,
                         const void* host, CUdeviceptr device, size_t bytes) {
  const bool of_device =
      type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
  const CUdeviceptr address =
      of_device ? device : reinterpret_cast<CUdeviceptr>(host);
  if (memory.IsPinned(reinterpret_cast<const void*>(address), bytes)) {
    return absl::OkStatus();
  }
  unsigned int kind = 0;
  const CUresult found =
      cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  if (found == CUDA_SUCCESS && kind == CU_MEMORYTYPE_DEVICE) {
    return absl::OkStatus();
  }
  return Refused("a copy of the host's memory that may be freed before it");
}

absl::Status CheckCopy(const RecordingMemory& memory, CUgraphNode node) {
  CUDA_MEMCPY3D copy;
  TF_RETURN_IF_ERROR(Checked("cuGraphMemcpyNodeGetParams",
                             cuGraphMemcpyNodeGetParams(node, &copy)));
  if (copy.srcMemoryType == CU_MEMORYTYPE_ARRAY ||
      copy.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return Refused("a copy of a texture");
  }
  const size_t bytes = copy.WidthInBytes;
  TF_RETURN_IF_ERROR(CheckCopied(memory, copy.srcMemoryType, copy.srcHost,
                                 copy.srcDevice, bytes));
  return CheckCopied(memory, copy.dstMemoryType, copy.dstHost, copy.dstDevice,
                     bytes);
}

// A graph's kernels, and its memory beside its recording's.
struct GraphContents {
  int64_t driver_bytes = 0;
  int64_t pool_bytes = 0;  // in use while the graph runs
  int64_t kernels = 0;
};

// Refuses a graph with nodes that cannot be replayed.
absl::Status CheckNodes(const RecordingMemory& memory,
                        const std::vector<CUgraphNode>& nodes,
                        GraphContents* contents) {
  int allocated = 0;
  for (CUgraphNode node : nodes) {
    CUgraphNodeType type;
    TF_RETURN_IF_ERROR(
        Checked("cuGraphNodeGetType", cuGraphNodeGetType(node, &type)));
    switch (type) {
      case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUDA_KERNEL_NODE_PARAMS kernel;
        TF_RETURN_IF_ERROR(Checked("cuGraphKernelNodeGetParams",
                                   cuGraphKernelNodeGetParams(node, &kernel)));
        contents->driver_bytes += DriverBytesOfKernel(kernel);
        ++contents->kernels;
        break;
      }
      case CU_GRAPH_NODE_TYPE_MEMCPY:
        TF_RETURN_IF_ERROR(CheckCopy(memory, node));
        [[fallthrough]];
      case CU_GRAPH_NODE_TYPE_MEMSET:
        contents->driver_bytes += DriverBytesOfCopy();
        break;
      case CU_GRAPH_NODE_TYPE_EMPTY:
        break;
      case CU_GRAPH_NODE_TYPE_HOST:
        return Refused("a host callback");
      // cuBLAS's workspaces, which belong to the graph. Each is freed before
      // the next one is allocated.
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC: {
        CUDA_MEM_ALLOC_NODE_PARAMS params;
        TF_RETURN_IF_ERROR(
            Checked("cuGraphMemAllocNodeGetParams",
                    cuGraphMemAllocNodeGetParams(node, &params)));
        contents->pool_bytes = std::max(contents->pool_bytes,
                                        PoolBytesOfAllocation(params.bytesize));
        ++allocated;
        break;
      }
      case CU_GRAPH_NODE_TYPE_MEM_FREE:
        --allocated;
        break;
      default:
        return Refused(
            absl::StrCat("a CUDA graph node of type ", static_cast<int>(type)));
    }
  }
  if (allocated != 0) return Refused("memory of the stream that is not freed");
  return absl::OkStatus();
}

// An op that waits for the GPU ends the capture, even if the op returns OK.
absl::Status StillCaptures(CUstream stream, const GatedCapture& capture) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  TF_RETURN_IF_ERROR(
      Checked("cuStreamIsCapturing", cuStreamIsCapturing(stream, &status)));
  return status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? absl::OkStatus()
                                                   : capture.WhyEnded();
}

class CudaRecording : public Recording {
 public:
  explicit CudaRecording(CudaRecorder* recorder)
      : recorder_(recorder),
        executor_(recorder->executor()),
        group_(static_cast<CudaStreamGroup*>(recorder->group())),
        stream_(recorder->compute_stream()),
        memory_(recorder->OwnAllocator(AllocatorAttributes()),
                recorder->OwnAllocator(PinnedMemory()),
                recorder->apart_bytes()) {}

  // Must not use recorder_: its session, and with it the recorder, may be gone.
  ~CudaRecording() override {
    for (CUgraphExec exec : {exec_, with_branches_}) {
      if (exec == nullptr) continue;
      auto active = Activated(executor_);
      cuGraphExecDestroy(exec);
    }
    for (const auto& callback : callbacks_) callback();
  }

  Allocator* memory() override { return memory_.device(); }
  bool Has(const void* address, size_t bytes) const override {
    return memory_.IsDevice(address, bytes);
  }

  absl::Status Record(std::function<absl::Status()> enqueue) override {
    CudaRecorder::Uses uses(recorder_, &memory_);
    memory_.Start();
    TF_RETURN_IF_ERROR(RunOnce(enqueue));
    auto active = Activated(executor_);
    const bool looks_at_ops =
        recorder_->most_branches() > 1 || recorder_->fuses();
    CapturesOps captures(HandleOf(stream_));
    absl::StatusOr<CapturedOps> captured =
        absl::UnimplementedError("its ops are not looked at");
    CUgraph graph = nullptr;
    if (looks_at_ops) uses.Watch(&captures);
    absl::Status status = Capture(enqueue, &uses, &graph, [&] {
      if (looks_at_ops) captured = captures.Finish(memory_);
    });
    uses.Watch(nullptr);
    if (graph == nullptr) return status;
    CUgraph with_branches = nullptr;
    if (status.ok() && captured.ok()) {
      std::optional<FusedOps> fused = Fuse(*captured);
      if (fused) {
        status = CaptureFused(enqueue, *captured, &uses, &graph, &fused);
      }
      if (status.ok() && recorder_->most_branches() > 1) {
        status = Branch(enqueue, *captured, fused, &uses, &with_branches);
      }
    } else if (looks_at_ops) {
      VLOG(1) << "A recording has no branches: " << captured.status();
    }
    if (status.ok()) status = Instantiate(graph, &exec_);
    if (graph != nullptr) cuGraphDestroy(graph);
    if (with_branches != nullptr) {
      // The recording works without branches, if there is no memory for both
      // graphs.
      if (status.ok() && !Instantiate(with_branches, &with_branches_).ok()) {
        with_branches_ = nullptr;
      }
      cuGraphDestroy(with_branches);
    }
    return status;
  }

  bool has_branches() const override { return with_branches_ != nullptr; }

  absl::Status Launch(bool with_branches) override {
    auto active = Activated(executor_);
    return Checked("cuGraphLaunch",
                   cuGraphLaunch(with_branches ? with_branches_ : exec_,
                                 HandleOf(group_->stream())));
  }

  int64_t bytes() const override {
    return memory_.bytes() + contents_.driver_bytes;
  }
  int64_t workspace_bytes() const override {
    return contents_.pool_bytes * workspaces_;
  }
  int64_t kernels() const override { return contents_.kernels; }

 private:
  // Runs the step without capturing it. launch_mu keeps recordings from being
  // launched meanwhile, since they may use cuBLAS's workspaces of the
  // recorder's stream. The group's other steps may run: cuBLAS has separate
  // workspaces for each stream.
  absl::Status RunOnce(const std::function<absl::Status()>& enqueue) {
    Callbacks callbacks;
    absl::MutexLock lock(group_->launch_mu());
    absl::Status status = stream_->WaitFor(group_->stream());
    {
      const KeepCallbacks keep(stream_, &callbacks);
      if (status.ok()) status = enqueue();
    }
    status.Update(stream_->BlockHostUntilDone());
    for (const auto& callback : callbacks) callback();
    return status;
  }

  // Calls `at_end` just before the capture ends.
  absl::Status Capture(const std::function<absl::Status()>& enqueue,
                       CudaRecorder::Uses* uses, CUgraph* graph,
                       absl::FunctionRef<void()> at_end) {
    const CUstream stream = HandleOf(stream_);
    const GatedCapture capture(ProcessCaptureGate());
    TF_RETURN_IF_ERROR(capture.status());
    const CapturedLaunches launches;
    const KeepCallbacks keep(stream_, &callbacks_);
    memory_.Repeat();
    // Relaxed mode, so that other threads may call any CUDA function.
    TF_RETURN_IF_ERROR(
        Checked("cuStreamBeginCapture",
                cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED)));
    uses->CheckAfterOps([&] {
      capture.NoteProgress();
      absl::Status status = StillCaptures(stream, capture);
      status.Update(launches.failure());
      return status;
    });
    absl::Status status = enqueue();
    uses->CheckAfterOps(nullptr);
    if (!uses->failure().ok()) status = uses->failure();
    at_end();
    const CUresult ended = cuStreamEndCapture(stream, graph);
    if (ended == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {
      const absl::Status why = capture.WhyEnded();
      // Ops may behave differently after the capture ended: ignore their
      // errors.
      if (absl::IsInternal(why)) return why;
      if (status.ok()) status = why;
    }
    status.Update(Checked("cuStreamEndCapture", ended));
    status.Update(launches.failure());
    return memory_.Check(status);
  }

  // The kernels for many elementwise ops, if they are worthwhile and possible.
  std::optional<FusedOps> Fuse(const CapturedOps& captured) {
    if (!recorder_->fuses()) return std::nullopt;
    FusedOps fused = FusedOpsOf(captured.ops);
    if (fused.saved == 0) return std::nullopt;
    for (const FusedKernel& kernel : fused.kernels) {
      if (const absl::Status status = LoadFused(kernel.program); !status.ok()) {
        LOG_FIRST_N(WARNING, 1)
            << "Multi-stream: recordings keep their small kernels: " << status;
        return std::nullopt;
      }
    }
    if (!memory_.KeepApart(fused.apart)) return std::nullopt;
    return fused;
  }

  // Captures the step again, in one chain, with `fused`. Replaces `*graph`, or
  // resets `*fused` if the step cannot be captured so.
  absl::Status CaptureFused(const std::function<absl::Status()>& enqueue,
                            const CapturedOps& captured,
                            CudaRecorder::Uses* uses, CUgraph* graph,
                            std::optional<FusedOps>* fused) {
    std::vector<std::vector<int>> waits((*fused)->launched.size());
    for (size_t i = 1; i < waits.size(); ++i) {
      waits[i] = {static_cast<int>(i) - 1};
    }
    CUgraph with_fused = nullptr;
    TF_RETURN_IF_ERROR(CaptureAgain(enqueue, captured, *fused, std::move(waits),
                                    uses, &with_fused));
    if (with_fused == nullptr) {
      fused->reset();
      // The memory may be another now, and tables of pointers in pinned memory
      // that the first graph copies.
      cuGraphDestroy(std::exchange(*graph, nullptr));
      return Capture(enqueue, uses, graph, [] {});
    }
    VLOG(1) << "A recording of group " << group_->index() << " has "
            << (*fused)->Summary();
    cuGraphDestroy(std::exchange(*graph, with_fused));
    return absl::OkStatus();
  }

  // Captures the step again, with branches, if it gains by them. `*graph` stays
  // null if it does not gain, or if CUDA cannot make branches.
  absl::Status Branch(const std::function<absl::Status()>& enqueue,
                      const CapturedOps& captured,
                      const std::optional<FusedOps>& fused,
                      CudaRecorder::Uses* uses, CUgraph* graph) {
    Branches order = BranchesOf(fused ? fused->launched : captured.ops,
                                recorder_->most_branches());
    if (!order.gain) {
      VLOG(1) << "A recording has no branches: they would gain too little for "
              << order.launches << " launches, of which " << order.length
              << " would be one after the other";
      return absl::OkStatus();
    }
    TF_RETURN_IF_ERROR(CaptureAgain(enqueue, captured, fused,
                                    std::move(order.waits), uses, graph));
    if (*graph == nullptr) return absl::OkStatus();
    VLOG(1) << "A recording of group " << group_->index() << " has up to "
            << order.chains << " branches";
    workspaces_ = order.workspaces;
    return absl::OkStatus();
  }

  // Captures the step with these waits. `*graph` stays null if CUDA cannot do
  // that.
  absl::Status CaptureAgain(const std::function<absl::Status()>& enqueue,
                            const CapturedOps& captured,
                            const std::optional<FusedOps>& fused,
                            std::vector<std::vector<int>> waits,
                            CudaRecorder::Uses* uses, CUgraph* graph) {
    class Launcher : public FusedLauncher {
     public:
      explicit Launcher(CUstream stream) : stream_(stream) {}
      absl::Status Launch(const FusedProgram& program,
                          absl::Span<const FusedCall> calls) override {
        return LaunchFused(program, calls, stream_);
      }

     private:
      const CUstream stream_;
    };
    Launcher launcher(HandleOf(stream_));
    BranchesOps ordered(HandleOf(stream_), captured, fused ? &*fused : nullptr,
                        &launcher, std::move(waits));
    absl::Status finished;
    uses->Watch(&ordered);
    const absl::Status status =
        Capture(enqueue, uses, graph, [&] { finished = ordered.Finish(); });
    uses->Watch(nullptr);
    if (finished.ok() && status.ok() && *graph != nullptr) {
      return absl::OkStatus();
    }
    VLOG(1) << "A recording keeps the order of its ops: " << finished << ", "
            << status;
    if (*graph != nullptr) cuGraphDestroy(std::exchange(*graph, nullptr));
    return status;
  }

  absl::Status Instantiate(CUgraph graph, CUgraphExec* exec) {
    size_t count = 0;
    TF_RETURN_IF_ERROR(
        Checked("cuGraphGetNodes", cuGraphGetNodes(graph, nullptr, &count)));
    std::vector<CUgraphNode> nodes(count);
    TF_RETURN_IF_ERROR(Checked("cuGraphGetNodes",
                               cuGraphGetNodes(graph, nodes.data(), &count)));
    GraphContents contents;
    TF_RETURN_IF_ERROR(CheckNodes(memory_, nodes, &contents));
    contents.driver_bytes += contents_.driver_bytes;
    contents_ = contents;
    VLOG(1) << "Recorded a step of group " << group_->index() << ": " << count
            << " nodes, " << memory_.bytes() << " bytes";
    return Checked("cuGraphInstantiate", cuGraphInstantiate(exec, graph, 0));
  }

  CudaRecorder* const recorder_;
  se::StreamExecutor* const executor_;
  CudaStreamGroup* const group_;
  se::Stream* const stream_;  // the recorder's
  RecordingMemory memory_;
  Callbacks callbacks_;  // free memory that the graph's copies read
  CUgraphExec exec_ = nullptr;
  CUgraphExec with_branches_ = nullptr;  // null: no branches
  GraphContents contents_;               // of both graphs
  int workspaces_ = 1;                   // in use at once, at most
};

}  // namespace

void* MemoryOfRecorder::AllocateRaw(size_t alignment, size_t bytes,
                                    const AllocationAttributes& attributes) {
  void* address = AllocatorWrapper::AllocateRaw(alignment, bytes, attributes);
  se::Stream* const stream = stream_;
  if (address == nullptr || stream == nullptr) return address;
  const absl::Status ordered = stream->WaitFor(group_->stream());
  if (ordered.ok()) return address;
  LOG(ERROR) << "Multi-stream: memory for a recording is not used: " << ordered;
  DeallocateRaw(address);
  return nullptr;
}

std::unique_ptr<Recording> CudaRecorder::NewRecording() {
  memory_->set_stream(compute_stream());
  return std::make_unique<CudaRecording>(this);
}

}  // namespace tensorflow::multistream
