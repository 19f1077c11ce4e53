// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// In which CUDA context is a kernel of TensorFlow's MLIR compiler loaded?
// A loaded kernel belongs to one context, and TensorFlow loads each kernel once
// for all groups of a GPU. Its generated code calls
// _mlir_ciface_tf_launch_kernel; hooks/ calls LaunchKernel instead, so that a
// group in another context than the GPU's first gets kernels loaded there.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GENERATED_KERNELS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GENERATED_KERNELS_H_

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/framework/resource_base.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace tensorflow {
namespace multistream {

// The kernels of one context. A resource of the device, as TensorFlow's own
// are, so that both are deleted with the compiled code that contains them.
class GeneratedKernels : public ResourceBase {
 public:
  ~GeneratedKernels() override;

  // The kernel `name` of the module `data`, loaded into the calling thread's
  // context, which must be the same at each call. The address `data` identifies
  // a module. Errors are CUDA's.
  absl::StatusOr<CUfunction> Get(void* data, absl::string_view name);

  std::string DebugString() const override;

 private:
  struct Module {
    CUmodule loaded;
    absl::flat_hash_map<std::string, CUfunction> kernels;
  };
  absl::Mutex mu_;
  absl::flat_hash_map<void*, Module> modules_ ABSL_GUARDED_BY(mu_);
};

using LaunchKernelFunction = void(void* context, void* module, char* name,
                                  intptr_t grid_x, intptr_t grid_y,
                                  intptr_t grid_z, intptr_t block_x,
                                  intptr_t block_y, intptr_t block_z,
                                  void** params);

// Replaces _mlir_ciface_tf_launch_kernel, which is `stock`.
void LaunchKernel(void* context, void* module, char* name, intptr_t grid_x,
                  intptr_t grid_y, intptr_t grid_z, intptr_t block_x,
                  intptr_t block_y, intptr_t block_z, void** params,
                  LaunchKernelFunction* stock);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CUDA_GENERATED_KERNELS_H_
