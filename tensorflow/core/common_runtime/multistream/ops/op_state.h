// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which variables does an op take, which of them does it read or change, and
// which locks (variable_order.h) does it take for that? An OpScope calls Begin
// before the launch and End after it.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_STATE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_STATE_H_

#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

// The handles in a tensor of type DT_RESOURCE.
absl::Span<const ResourceHandle> HandlesOf(const Tensor& tensor);

// Whether the handle's resource is a variable.
bool IsVariable(const ResourceHandle& handle);

// The variable of a handle on `device`, which has the `resources`. Null if the
// resource is no variable, does not exist, or is on another device.
core::RefCountPtr<Var> VariableOf(const ResourceHandle& handle,
                                  ResourceMgr* resources,
                                  const std::string& device);

// Calls `f` with each existing variable among the op's resource handles.
void ForEachVariable(OpKernelContext* context,
                     absl::FunctionRef<void(const ResourceHandle&, Var*)> f);

// The lock's key for a resource. `resources`: the resources of its device.
GpuGroups::StateKey StateKeyOf(const ResourceHandle& handle,
                               ResourceMgr* resources);
// The key of a resource that is known by name. `container` is not empty.
GpuGroups::StateKey StateKeyOf(ResourceMgr* resources,
                               const std::string& container,
                               const std::string& name);

class OpState {
 public:
  explicit OpState(const OpLaunch& op);

  bool reads() const { return reads_; }
  bool writes() const { return writes_; }
  // Whether the op may keep an input in a variable.
  bool keeps_inputs() const { return keeps_inputs_; }

  void Begin();
  // Does nothing without Begin.
  void End();

  // For an asynchronous op: moves the duty to call End to the result.
  OpState Take();

 private:
  // `references`: the op may read any reference variable.
  void FindKeys(const OpLaunch& op, bool references);

  GpuGroups* const gpu_;
  StreamGroup* const group_;
  bool reads_ = false;
  bool writes_ = false;
  bool keeps_inputs_ = false;
  // The op reads on the leader, and locks: against recorded steps that change
  // variables and, on an emulated GPU, against overlapping ops.
  bool reads_on_leader_ = false;
  // Other groups may depend on the op: it is not part of a read-only step.
  bool is_leader_work_ = false;
  bool has_begun_ = false;
  absl::InlinedVector<GpuGroups::StateKey, 4> keys_;  // of the locks
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_OPS_OP_STATE_H_
