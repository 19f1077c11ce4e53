// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What are the inputs and outputs of a step that may be replayed? CapturedSteps
// makes a CapturedCall for each such step. The call collects all inputs before
// any op of the step has run, and stands between the step and its caller.
//
//   from the host       received and sent through a rendezvous
//   from a caller       arguments and results of a function, in a call frame,
//                       on the device
//   variables           read where they are

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_CAPTURED_CALL_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_CAPTURED_CALL_H_

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/paddings.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/refcount.h"
#include "tensorflow/core/platform/tensor_float_32_utils.h"
#include "tensorflow/core/util/determinism.h"

namespace tensorflow::multistream {

// The inputs and outputs that all steps of a graph have.
struct StepInterface {
  explicit StepInterface(const Capturable& graph);

  // A rendezvous key. `parsed` points into `text`.
  struct Key {
    std::string text;
    Rendezvous::ParsedKey parsed;
  };
  static std::vector<Key> Parsed(const std::vector<std::string>& keys);
  static std::vector<Key> KeysOf(const std::vector<Capturable::Passed>& passed);
  static std::optional<size_t> IndexOf(const Rendezvous::ParsedKey& key,
                                       const std::vector<Key>& keys);

  // Whether the key is that of an argument that is passed on.
  bool IsPassed(const Rendezvous::ParsedKey& key) const {
    return IndexOf(key, passed_keys).has_value();
  }
  // What the caller gets: first the sends, then the results.
  size_t outputs() const { return sends.size() + results.size(); }
  // What a recording makes: the outputs, then the checks.
  size_t made() const { return outputs() + checks.size(); }
  // Whether something made is in host memory.
  bool GoesToHost(size_t i) const {
    return i < sends.size() || i >= outputs() ||
           results[i - sends.size()].on_host;
  }
  // Whether all checks hold.
  bool AreChecked(const std::vector<Tensor>& made) const;

  const std::vector<Key> receives;
  const std::vector<bool> are_summands;  // of the receives (sums.h)
  const std::vector<Capturable::Passed> passed;
  const std::vector<Key> passed_keys;  // in that order
  const std::vector<Key> messages;
  const std::vector<Key> sends;
  const std::vector<Key> checks;
  const std::string mask_key = MaskKey();
  const std::vector<Key> draw_states;  // of each draw the key, the counter
  const std::vector<Key> draw_shapes;  // one for each draw
  // Of the types and shapes that the states have.
  const std::vector<Tensor> empty_states;
  const std::vector<Capturable::Argument> arguments;
  const std::vector<Capturable::Variable> variables;
  const bool changes_variables;
  const bool is_piece;
  const std::vector<Capturable::Result> results;
  // Maps an index in the call frame to an index in `arguments` or `results`, or
  // to -1.
  std::vector<int> argument_at;
  std::vector<int> result_at;
};

// The inputs of one step: values from the host, and arguments, in the order of
// StepInterface.
struct StepInputs {
  // From the host: what was received, then the arguments that are there and
  // decide no sizes, then places for the states of draws, or the mask if the
  // call is padded to a length. A step that draws is never padded.
  std::vector<Tensor> received;
  // On the device, on the host (Capturable::Argument), or variables' handles.
  std::vector<Tensor> arguments;
};

// One output of a step. Outputs are ordered: first the sends, then the results.
struct StepOutput {
  Tensor tensor;
  bool on_host = false;
};

// The settings of the process that kernels read at each launch. A recording
// fixes the settings of the time when it was made, so they are part of its key.
// Every other setting that kernels read (docs/captured-steps-reference.md has a
// table) is fixed when the process first reads it, or when a kernel is made.
struct KernelSettings {
  // The current settings. Takes nanoseconds.
  static KernelSettings Now() {
    return {tensor_float_32_execution_enabled(), OpDeterminismRequired()};
  }

  bool operator==(const KernelSettings& other) const {
    return tensor_float_32 == other.tensor_float_32 &&
           deterministic == other.deterministic;
  }
  bool operator!=(const KernelSettings& other) const {
    return !(*this == other);
  }

  // tf.config.experimental.enable_tensor_float_32_execution
  bool tensor_float_32 = false;
  // tf.config.experimental.enable_op_determinism
  bool deterministic = false;
};

// One step, with its inputs and its caller.
class CapturedCall {
 public:
  // Runs the step without capture, with this rendezvous and frame in place of
  // the step's own, and ends the step.
  using RunAsAlways = std::function<void(
      std::shared_ptr<RendezvousInterface> rendezvous,
      CallFrameInterface* frame, Executor::DoneCallback done)>;

  // A value from the host.
  struct Received {
    absl::Status status;
    Rendezvous::Args send_args;
    bool is_dead = false;
    Tensor message;  // if it is one
  };

  CapturedCall(const StepInterface& step, const Executor::Args& args,
               StreamGroup* group, RunAsAlways run_as_always,
               Executor::DoneCallback done);

  // Sends the arguments that the step passes on to the host, where the values
  // from the host may depend on them. `device` is the group's.
  absl::Status SendArguments(Device* device) const;
  // Receives all values from the host; then calls `then`, on any thread.
  static void Receive(const std::shared_ptr<CapturedCall>& call,
                      std::function<void()> then);

  // Collects arguments and variables. False if the step must run without
  // capture: an input is missing, or its place is unknown. `resources` belongs
  // to the device named `device`.
  bool Collect(ResourceMgr* resources, const std::string& device);

  // Runs the step without capture and ends it.
  static void RunAlways(const std::shared_ptr<CapturedCall>& call);
  // Runs the step with these inputs and passes its outputs to `then`, which has
  // to end the step.
  static void RunAndKeep(
      const std::shared_ptr<CapturedCall>& call, StepInputs inputs,
      std::function<void(absl::Status, std::vector<StepOutput>)> then);

  // Call when the step ends, or runs without capture. What it has read from
  // variables is then in use no longer, so that a later piece may change the
  // variables in place.
  void DropArguments() { inputs_.arguments.clear(); }

  // Hands the step's outputs to the caller of the step.
  absl::Status Give(const std::vector<Tensor>& outputs) const;

  StreamGroup* group() const { return group_; }
  const Executor::DoneCallback& done() const { return done_; }
  // The step ends only once the device has completed it, even without outputs.
  bool ends_when_completed() const { return args_.sync_on_finish; }
  // A profiler wants to see the step's ops.
  bool is_traced() const { return args_.stats_collector != nullptr; }

  // The inputs. Variables appear among the arguments as handles.
  const StepInputs& inputs() const { return inputs_; }
  // The inputs, with more rows if the call is padded. Enqueues copies of the
  // arguments on the group's stream, into memory of `device`.
  absl::StatusOr<StepInputs> PaddedInputs(Allocator* device,
                                          Allocator* pinned) const;
  const std::vector<core::RefCountPtr<Var>>& variables() const {
    return variables_;
  }
  // The keys by which the variables are locked.
  const std::vector<GpuGroups::StateKey>& state() const { return state_; }

  // The key of a recording for this call: types and shapes of the inputs (after
  // padding), addresses of the variables without their shapes, and the kernel
  // settings.
  const std::string& shapes() const { return shapes_; }
  // The kernel settings of this step, as of the start of Collect.
  const KernelSettings& settings() const { return settings_; }

  StepShapes ShapesOfInputs() const;
  // Pads the call to the larger batch of a recording; pads the inputs to its
  // length, with copies of each row's last entry. Enqueues copies of the
  // arguments on the group's stream, into memory of `device`.
  absl::Status Pad(std::shared_ptr<const Padding> padding, Allocator* device);
  const Padding* padding() const { return padding_.get(); }  // or nullptr

 private:
  class EarlierReceived;
  class Kept;

  // Whether this value from the host is the mask.
  bool IsMask(size_t received) const;
  void AddShapes();
  void AddShape(const Tensor& tensor);
  bool CollectArguments();
  bool CollectVariables(ResourceMgr* resources, const std::string& device);

  const StepInterface& step_;
  const Executor::Args args_;
  StreamGroup* const group_;
  const RunAsAlways run_as_always_;
  const Executor::DoneCallback done_;
  std::atomic<int> pending_{0};
  std::vector<Received> received_;  // then, what messages are
  StepInputs inputs_;
  std::vector<Tensor> received_unpadded_;  // if inputs_ are padded to a length
  std::vector<core::RefCountPtr<Var>> variables_;
  std::vector<GpuGroups::StateKey> state_;
  KernelSettings settings_;
  std::string shapes_;
  std::shared_ptr<const Padding> padding_;
};

// A scoped reader-writer lock on the variables of the call's step: shared, or
// exclusive if the step `changes` variables. All variables are locked at once,
// as two such steps may each read a variable that the other one changes.
class UsesVariables {
 public:
  UsesVariables(GpuGroups* gpu, const CapturedCall& call, bool changes);
  ~UsesVariables();
  UsesVariables(const UsesVariables&) = delete;
  UsesVariables& operator=(const UsesVariables&) = delete;

 private:
  GpuGroups* const gpu_;
  const CapturedCall& call_;
  const bool changes_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_CAPTURED_CALL_H_
