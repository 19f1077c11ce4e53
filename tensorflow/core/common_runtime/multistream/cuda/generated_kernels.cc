// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/generated_kernels.h"

#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/cuda/group_contexts.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/op_requires.h"
#include "tensorflow/core/framework/resource_base.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "third_party/gpus/cuda/include/cuda.h"
#include "xla/stream_executor/cuda/cuda_status.h"
#include "xla/stream_executor/stream.h"

namespace tensorflow::multistream {
namespace {

// The kernels of one context. A resource of the device, as TensorFlow's own
// are, so that both are deleted with the compiled code that contains them.
class GeneratedKernels : public ResourceBase {
 public:
  ~GeneratedKernels() override {
    for (const auto& [data, module] : modules_) cuModuleUnload(module.loaded);
  }

  // The kernel `name` of the module `data`, loaded into the calling thread's
  // context, which must be the same at each call. The address `data` identifies
  // a module. Errors are CUDA's.
  absl::StatusOr<CUfunction> Get(void* data, absl::string_view name) {
    absl::MutexLock lock(&mu_);
    auto module = modules_.find(data);
    if (module == modules_.end()) {
      CUmodule loaded = nullptr;
      TF_RETURN_IF_ERROR(se::cuda::ToStatus(cuModuleLoadData(&loaded, data),
                                            "cuModuleLoadData failed"));
      module = modules_.emplace(data, Module{loaded, {}}).first;
    }
    auto& kernels = module->second.kernels;
    if (auto known = kernels.find(name); known != kernels.end()) {
      return known->second;
    }
    std::string kept(name);
    CUfunction kernel = nullptr;
    TF_RETURN_IF_ERROR(se::cuda::ToStatus(
        cuModuleGetFunction(&kernel, module->second.loaded, kept.c_str()),
        "cuModuleGetFunction failed"));
    kernels.emplace(std::move(kept), kernel);
    return kernel;
  }

  std::string DebugString() const override {
    return "generated kernels of a CUDA context";
  }

 private:
  struct Module {
    CUmodule loaded;
    absl::flat_hash_map<std::string, CUfunction> kernels;
  };
  absl::Mutex mu_;
  absl::flat_hash_map<void*, Module> modules_ ABSL_GUARDED_BY(mu_);
};

void LaunchGenerated(OpKernelContext* context, int number, void* module,
                     const char* name, const unsigned (&grid)[3],
                     const unsigned (&block)[3], void** params) {
  ResourceMgr* resources = context->resource_manager();
  GeneratedKernels* kernels = nullptr;
  OP_REQUIRES_OK(context,
                 resources->LookupOrCreate<GeneratedKernels>(
                     resources->default_container(),
                     absl::StrCat("multistream-kernels-of-context-", number),
                     &kernels, [](GeneratedKernels** made) {
                       *made = new GeneratedKernels;
                       return absl::OkStatus();
                     }));
  core::ScopedUnref unref(kernels);
  auto kernel = kernels->Get(module, name);
  OP_REQUIRES_OK(context, kernel.status());
  auto stream = static_cast<CUstream>(context->op_device_context()
                                          ->stream()
                                          ->platform_specific_handle()
                                          .stream);
  OP_REQUIRES_OK(
      context,
      se::cuda::ToStatus(
          cuLaunchKernel(*kernel, grid[0], grid[1], grid[2], block[0], block[1],
                         block[2], /*sharedMemBytes=*/0, stream, params,
                         /*extra=*/nullptr),
          "cuLaunchKernel failed"));
}

}  // namespace

void LaunchKernel(void* context, void* module, char* name, intptr_t grid_x,
                  intptr_t grid_y, intptr_t grid_z, intptr_t block_x,
                  intptr_t block_y, intptr_t block_z, void** params,
                  LaunchKernelFunction* stock) {
  auto* op = static_cast<OpKernelContext*>(context);
  const auto* info = op->device()->tensorflow_accelerator_device_info();
  const int number = info == nullptr ? 0 : ContextOf(info->gpu_id);
  if (number == 0) {
    return stock(context, module, name, grid_x, grid_y, grid_z, block_x,
                 block_y, block_z, params);
  }
  if (grid_x == 0 || grid_y == 0 || grid_z == 0) return;
  const auto u = [](intptr_t size) { return static_cast<unsigned>(size); };
  LaunchGenerated(op, number, module, name, {u(grid_x), u(grid_y), u(grid_z)},
                  {u(block_x), u(block_y), u(block_z)}, params);
}

}  // namespace tensorflow::multistream
