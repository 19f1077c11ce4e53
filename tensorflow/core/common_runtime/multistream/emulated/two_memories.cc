// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/emulated/two_memories.h"

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/bfc_allocator.h"
#include "tensorflow/core/common_runtime/graph_constructor.h"
#include "tensorflow/core/common_runtime/memory_types.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/framework/memory_types.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

bool IsOfGpu(const Tensor& tensor) {
  return DataTypeCanUseMemcpy(tensor.dtype()) && tensor.TotalBytes() > 0 &&
         MemoryOwner::Get()->Find(tensor.data()) != nullptr;
}

// Address space for the tensors that emulated GPUs have on the host.
class HostMemory {
 public:
  // Never deleted.
  static HostMemory* Get() {
    static auto* memory = new HostMemory;
    return memory;
  }
  Allocator* allocator() { return &allocator_; }
  bool Has(const Tensor& tensor) const {
    const char* data = static_cast<const char*>(tensor.data());
    return data >= begin_ && data < begin_ + kBytes &&
           tensor.TotalBytes() > 0 && DataTypeCanUseMemcpy(tensor.dtype());
  }

 private:
  static constexpr size_t kBytes = size_t{16} << 30;

  // The only region of the allocator.
  class Region : public SubAllocator {
   public:
    explicit Region(char* begin) : SubAllocator({}, {}), begin_(begin) {}
    void* Alloc(size_t alignment, size_t bytes, size_t* received) override {
      *received = bytes;
      return begin_;
    }
    void Free(void* memory, size_t bytes) override {}
    bool SupportsCoalescing() const override { return false; }

   private:
    char* const begin_;
  };

  static BFCAllocator::Options AllAtOnce() {
    BFCAllocator::Options options;
    options.allow_growth = false;
    return options;
  }

  HostMemory()
      : begin_(static_cast<char*>(
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
        allocator_(std::make_unique<BFCAllocator>(
            std::make_unique<Region>(begin_), kBytes, "emulated_gpus_host",
            AllAtOnce())) {
    CHECK(begin_ != MAP_FAILED);
  }

  char* const begin_;
  HostAllocator allocator_;
};

void Copy(const Tensor& from, Tensor* to) {
  std::memcpy(to->data(), from.data(), from.TotalBytes());
}

class Context : public DeviceContext {
 public:
  void CopyCPUTensorToDevice(const Tensor* from, Device* device, Tensor* to,
                             StatusCallback done,
                             bool sync_dst_compute) const override {
    Copy(*from, to);
    done(absl::OkStatus());
  }
  void CopyDeviceTensorToCPU(const Tensor* from, absl::string_view name,
                             Device* device, Tensor* to,
                             StatusCallback done) override {
    Copy(*from, to);
    done(absl::OkStatus());
  }
  void CopyTensorInSameDevice(const Tensor* from, Device* device, Tensor* to,
                              StatusCallback done) const override {
    Copy(*from, to);
    done(absl::OkStatus());
  }
};

// Nodes whose inputs have the memory types of the GPU's kernel; and nodes with
// an output that the GPU's kernel would have elsewhere. A few kernels for the
// CPU say of more inputs or outputs that they are on the host; and kernels of
// eager ops, which no executor makes, are as the CPU's.
constexpr char kTypesOfGpuAttr[] = "_multi_stream_types_of_gpu";
constexpr char kMovedAttr[] = "_multi_stream_moved";

std::vector<int> OnHost(const MemoryTypeVector& types) {
  std::vector<int> on_host;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] == HOST_MEMORY) on_host.push_back(static_cast<int>(i));
  }
  return on_host;
}

// Whether the op receives a tensor from a CPU.
bool IsFromCpu(const OpKernel& kernel) {
  if (!absl::EndsWith(kernel.type_string_view(), "Recv")) return false;
  std::string sender;
  DeviceNameUtils::ParsedName name;
  return TryGetNodeAttr(kernel.def(), "send_device", &sender) &&
         DeviceNameUtils::ParseFullName(sender, &name) &&
         name.type == DEVICE_CPU;
}

}  // namespace

bool IsEmulatedGpu(const Device& device) {
  return device.device_type() == DEVICE_CPU &&
         device.parsed_name().type == DEVICE_GPU;
}

MakeKernel MakeKernelWithMemoryTypes(const LocalExecutorParams& params) {
  return [make = params.create_kernel, device = params.device,
          functions = params.function_library](
             const std::shared_ptr<const NodeProperties>& node,
             OpKernel** kernel) {
    const DeviceType gpu(DEVICE_GPU);
    // A node's op may be a function, as those of sessions' graphs (Defun).
    const OpRegistryInterface* ops = OpRegistry::Global();
    if (functions != nullptr) ops = functions->GetFunctionLibraryDefinition();
    MemoryTypeVector inputs, outputs;
    TF_RETURN_IF_ERROR(
        MemoryTypesForNode(ops, gpu, node->node_def, &inputs, &outputs));
    // The GPU's kernel for constants on the host runs on any processor; the
    // CPU's would put them into the memory of its device.
    if (node->node_def.op() == "Const" && outputs[0] == HOST_MEMORY &&
        FindKernelDef(gpu, node->node_def, nullptr, nullptr).ok()) {
      return CreateKernel(gpu, device, functions, node, kernel);
    }
    NodeDef def = node->node_def;
    // MemoryTypesForNode reads these.
    AddNodeAttr("_input_hostmem", OnHost(inputs), &def);
    AddNodeAttr("_output_hostmem", OnHost(outputs), &def);
    MemoryTypeVector inputs_of_cpu, outputs_of_cpu;
    TF_RETURN_IF_ERROR(MemoryTypesForNode(ops, DeviceType(DEVICE_CPU), def,
                                          &inputs_of_cpu, &outputs_of_cpu));
    if (inputs_of_cpu == inputs) AddNodeAttr(kTypesOfGpuAttr, true, &def);
    if (outputs_of_cpu != outputs) AddNodeAttr(kMovedAttr, true, &def);
    return make(std::make_shared<const NodeProperties>(
                    node->op_def, std::move(def), node->input_types,
                    node->output_types),
                kernel);
  };
}

absl::Status SendBetweenMemories(const LocalExecutorParams& params,
                                 const Graph& graph,
                                 std::unique_ptr<Graph>* own) {
  const DeviceType gpu(DEVICE_GPU);
  if (ValidateMemoryTypes(gpu, &graph).ok()) return absl::OkStatus();
  *own = std::make_unique<Graph>(graph.flib_def());
  CopyGraph(graph, own->get());
  return EnsureMemoryTypes(gpu, params.device->name(), own->get());
}

void CopyBetweenMemories(const CopyEnd& from, const CopyEnd& to,
                         const Tensor& input, Tensor* output,
                         StatusCallback done,
                         absl::FunctionRef<void(StatusCallback)> stock) {
  const bool from_gpu = !from.on_host && IsEmulatedGpu(*from.device);
  const bool to_gpu = !to.on_host && IsEmulatedGpu(*to.device);
  if ((!from_gpu && !to_gpu) || !DataTypeCanUseMemcpy(input.dtype())) {
    stock(std::move(done));
    return;
  }
  if ((from_gpu && from.context == nullptr) ||
      (to_gpu && to.context == nullptr)) {
    done(absl::InternalError(absl::StrCat("a copy from ", from.device->name(),
                                          " to ", to.device->name(),
                                          " has no DeviceContext of the GPU")));
    return;
  }
  Copy(input, output);
  done(absl::OkStatus());
}

DeviceContext* ContextOfEmulatedGpu() {
  static auto* context = new Context;
  return context;
}

Allocator* HostMemoryOfEmulatedGpus() { return HostMemory::Get()->allocator(); }

absl::Status CheckMemoryOfInputs(const OpKernel& kernel,
                                 OpKernelContext* context) {
  for (int i = 0; i < context->num_inputs(); ++i) {
    if (!context->has_input(i) || context->input_is_ref(i)) continue;
    const Tensor& input = context->input(i);
    const bool on_host = kernel.input_memory_types()[i] == HOST_MEMORY;
    if (!(on_host ? IsOfGpu(input) : HostMemory::Get()->Has(input)) ||
        (!HasNodeAttr(kernel.def(), kTypesOfGpuAttr) &&
         !HasNodeAttr(kernel.def(), kRunsOnHostAttr))) {
      continue;
    }
    return absl::InternalError(absl::StrCat(
        kernel.type_string(), " '", kernel.name(), "' would read its input ", i,
        " (", DataTypeString(input.dtype()), input.shape().DebugString(), ")",
        on_host ? " on the host, which is in the memory of an emulated GPU"
                : " on an emulated GPU, which is in the host's memory"));
  }
  return absl::OkStatus();
}

void MoveOutputs(const OpKernel& kernel, OpKernelContext* context,
                 bool from_eager) {
  const bool is_argument = kernel.type_string_view() == "_Arg";
  const bool is_received = absl::EndsWith(kernel.type_string_view(), "Recv");
  const bool to_host =
      from_eager && (is_argument || (is_received && IsFromCpu(kernel)));
  const bool to_gpu = !is_argument && !is_received;
  for (int i = 0; i < context->num_outputs(); ++i) {
    if (IsRefType(kernel.output_type(i))) continue;
    Tensor* value = context->mutable_output(i);
    if (value == nullptr) continue;
    bool on_host = kernel.output_memory_types()[i] == HOST_MEMORY;
    if (on_host && HostMemory::Get()->Has(*value)) {
      on_host = !HasNodeAttr(kernel.def(), kMovedAttr);
    }
    if (!(on_host ? to_host && IsOfGpu(*value)
                  : to_gpu && HostMemory::Get()->Has(*value))) {
      continue;
    }
    AllocatorAttributes attributes;
    attributes.set_on_host(on_host);
    Tensor moved;
    OP_REQUIRES_OK(
        context, context->allocate_temp(value->dtype(), value->shape(), &moved,
                                        attributes));
    Copy(*value, &moved);
    *value = moved;
  }
}

}  // namespace tensorflow::multistream
