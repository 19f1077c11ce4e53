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

// What must happen around launching one op on a device with stream groups?
// Holds of foreign memory, and the order of reads and changes of state (the
// rules of stream_group.h).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_OP_SCOPE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_OP_SCOPE_H_

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "tensorflow/core/common_runtime/multistream/step/holds.h"
#include "tensorflow/core/common_runtime/multistream/step/launch_log.h"
#include "tensorflow/core/common_runtime/multistream/step/step.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/group_on_thread.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {

// Copies `from` to `to`, memory of the same group, in the order of its stream.
using CopyOnStream =
    std::function<absl::Status(const Tensor& from, Tensor* to)>;

// What is known beforehand of an op that has a group of its own.
struct OpTraits {
  bool changes_state = false;  // it may change a variable
  bool keeps_inputs = false;   // in a resource
  bool takes_lists = false;    // whose elements may be any group's
};

// Alive while an op is launched on `group`'s device. Locks what state it
// touches from Enter to its end; what comes before may wait for memory.
//
// An asynchronous op keeps state locked until it is done, as a variable's own
// mutex is by the kernels that launch on another thread (XlaLaunch, if it has
// collectives). So none that waits for another op may be given a lock: calls
// and what receives are no readers, and a reference to strings, which the ops
// of queues and barriers take, is none to a variable.
class OpScope {
 public:
  // `traits`: if the step's ops have groups of their own.
  OpScope(GpuGroups* gpu, StreamGroup* group, OpKernel* kernel,
          OpKernelContext* context, const OpTraits* traits = nullptr);
  ~OpScope();

  // An op that may keep an input in a variable must not keep memory of another
  // group (rule 3); one that adds begins with the first input whose memory it
  // may take for the sum, and must begin where it would on one stream. Replaces
  // such inputs by copies in `allocator`'s memory for the time of the scope.
  // Synchronous ops only.
  absl::Status AdoptForeignInputs(Allocator* allocator,
                                  const CopyOnStream& copy);

  // To be called when the inputs are what the op will see.
  void Enter();

  // A gather on a variable makes it one whose readers get copies, and for that
  // may move it into the memory of the group that gathers. Where such a gather
  // is to run on another group, it happens before, on the leader: `allocator`
  // and `copy` are the leader's. To be called before anything else.
  static absl::Status MakeGathered(GpuGroups* gpu, StreamGroup* group,
                                   OpKernel* kernel, OpKernelContext* context,
                                   Allocator* allocator,
                                   const CopyOnStream& copy);
  static bool MayMakeGathered(StreamGroup* group, const OpKernel* kernel) {
    return !group->is_leader() &&
           (kernel->type_string_view() == "ResourceGather" ||
            kernel->type_string_view() == "ResourceGatherNd");
  }

  // True if AdoptForeignInputs has something to do.
  bool must_adopt() const {
    return (adopts_ && !foreign_.empty()) || !taken_over_.empty();
  }

  // To be called when a synchronous op has computed.
  void Launched() {
    HoldForLaterOps();
    if (log_) log_->Launched();
  }
  // What to tell the sanitizer, if there is one, when an asynchronous op is
  // done.
  const std::optional<LaunchLog>& log() const { return log_; }

  // For an asynchronous op, after Enter: a function to be called when the op is
  // done, which has enqueued its last work by then and perhaps not before. What
  // the scope would do at its end waits for that: state stays locked, and what
  // the op holds is pending.
  std::function<void()> TakeEnd();

 private:
  // What the op does to state, from Begin to End.
  struct Access {
    GpuGroups* gpu;
    StreamGroup* group;
    bool reads = false;
    bool writes = false;
    // Other groups may depend on it: it runs outside any read-only step.
    bool is_leader_work = false;
    bool has_begun = false;
    absl::InlinedVector<GpuGroups::StateKey, 4> state;  // what it locks

    void Begin();
    void End();
  };

  void FindForeignInputs(const KernelTraits* traits);
  void FindState();
  const FunctionLibraryDefinition* Library() const;
  bool MayReadReferences() const;
  bool MayWrite() const;
  void ForEachVariable(absl::FunctionRef<void(Var*)> f);
  void LetGoOfVariables();
  void Hold(const Tensor& tensor);
  // Holds to the step's end what later ops use without having it for an input:
  // the elements of a list (of tensors, in a variant) that comes from outside
  // the step, an argument or a variable's value; and variables' memory that an
  // op passes on.
  void HoldForLaterOps();
  void HoldToEnd(const Tensor& tensor);

  const GroupOnThread on_thread_;
  GpuGroups* const gpu_;
  StreamGroup* const group_;
  OpKernel* const kernel_;
  OpKernelContext* const context_;
  const OpTraits* const traits_;
  const StepRunner* const runner_;  // if the op is one of a step's
  Step* const step_;
  bool adopts_ = false;
  Access access_;
  std::vector<int> foreign_;  // inputs in other groups' memory
  // Inputs whose memory the op would take for its output if nobody held it.
  std::vector<int> taken_over_;
  Holds holds_;
  std::optional<LaunchLog> log_;
  std::unique_ptr<std::vector<Tensor>> adopted_;
  std::vector<TensorValue> adopted_inputs_;
  absl::Span<const TensorValue> original_inputs_;
};

// Adds `tensor` if its memory is another group's than that of `holds`.
void HoldIfForeign(StreamGroup* group, const Tensor& tensor, Holds* holds);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_OP_SCOPE_H_
