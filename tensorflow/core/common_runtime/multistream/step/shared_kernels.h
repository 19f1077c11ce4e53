// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do the executors of one graph, one for each group, share their kernels?
// The graph-level and node-level executors wrap TensorFlow's functions that
// make and delete kernels.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_SHARED_KERNELS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_SHARED_KERNELS_H_

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/base/host_kernels.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/util/guarded_philox_random.h"

namespace tensorflow::multistream {

// Makes each kernel once, through the session's functions; counts the executors
// that use the kernel, and deletes it with the last of them. Kernels that keep
// scratch memory between calls exist once for each group.
class SharedKernels {
 public:
  // `share_constants`: equal constants of all graphs exist once, as
  // TF_SEGMENT_OWN_CONST asks for.
  SharedKernels(int gpu, const LocalExecutorParams& params,
                const GraphTraits& traits, bool share_constants);

  // Lets the executor of group `group` make and delete its kernels through
  // `kernels`, which lives until the last kernel is deleted. `is_late`: steps
  // run already, so that traits() stays as it is.
  static void Wrap(std::shared_ptr<SharedKernels> kernels, int group,
                   LocalExecutorParams* params, bool is_late = false);

  // The generators of the nodes with these names, which draw random numbers
  // (capture/which/drawn_numbers.h); an error if a kernel is not TensorFlow's.
  // The executors that share the kernels own the generators.
  absl::StatusOr<std::vector<GuardedPhiloxRandom*>> GeneratorsOf(
      const std::vector<std::string>& nodes);

  // Call only when all executors that are not late are made: there is no lock.
  const KernelTraits& traits() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    return kernel_traits_;
  }

 private:
  absl::Status Make(int group, bool is_late,
                    const std::shared_ptr<const NodeProperties>& node,
                    OpKernel** kernel);
  void Delete(OpKernel* kernel);

  struct Entry {
    std::shared_ptr<const NodeProperties> node;
    OpKernel* kernel;
    int uses;
  };
  // Node name, group, and number. The group is 0 for kernels that all groups
  // share. Nodes that only share their name have other numbers: what is added
  // to the graph of one piece may be called as what is added to another's.
  using Key = std::tuple<std::string, int, int>;

  const int gpu_;
  const bool share_constants_;
  const MakeKernel make_;
  const std::function<void(OpKernel*)> delete_;
  const absl::flat_hash_set<std::string> readers_;

  absl::Mutex mu_;
  absl::flat_hash_map<Key, Entry> kernels_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<const OpKernel*, Key> keys_ ABSL_GUARDED_BY(mu_);
  KernelTraits kernel_traits_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_SHARED_KERNELS_H_
