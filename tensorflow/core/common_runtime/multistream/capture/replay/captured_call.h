// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does a step take and give that may be launched as a recording? Captured
// steps make a call for each: it collects what the step takes before any of its
// ops has run, and stands between the step and who asked for it.
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
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/padding.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/kernel_settings.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow {
namespace multistream {

// Of memory that the GPU copies from and to.
AllocatorAttributes PinnedMemory();

// What all steps of a graph take and give.
struct StepInterface {
  explicit StepInterface(const Capturable& graph);

  // A key of a rendezvous, which refers to its text.
  struct Key {
    std::string text;
    Rendezvous::ParsedKey parsed;
  };
  static std::vector<Key> Parsed(const std::vector<std::string>& keys);
  static std::optional<size_t> IndexOf(const Rendezvous::ParsedKey& key,
                                       const std::vector<Key>& keys);

  size_t outputs() const { return sends.size() + results.size(); }

  const std::vector<Key> receives;
  const std::vector<Key> sends;
  const std::vector<Capturable::Argument> arguments;
  const std::vector<Capturable::Variable> variables;
  const bool changes_variables;
  const std::vector<Capturable::Result> results;
  // By index in the call frame: where it is in `arguments` and `results`, or
  // -1.
  std::vector<int> argument_at;
  std::vector<int> result_at;
};

// What a step takes: values from the host, and arguments, as in StepInterface.
struct StepInputs {
  std::vector<Tensor> received;
  std::vector<Tensor> arguments;  // on the device, or variables' handles
};

// What a step has made: first what it sends, then its results.
struct StepOutput {
  Tensor tensor;
  bool on_host = false;
};

// A step.
class CapturedCall {
 public:
  // Runs the step as always, and ends it; with these in place of its own.
  using RunAsAlways = std::function<void(
      std::shared_ptr<RendezvousInterface> rendezvous,
      CallFrameInterface* frame, Executor::DoneCallback done)>;

  // A value from the host.
  struct Received {
    absl::Status status;
    Rendezvous::Args send_args;
    bool is_dead = false;
  };

  CapturedCall(const StepInterface& step, const Executor::Args& args,
               StreamGroup* group, RunAsAlways run_as_always,
               Executor::DoneCallback done);

  // Receives what the host sends; then calls `then`, on any thread.
  static void Receive(const std::shared_ptr<CapturedCall>& call,
                      std::function<void()> then);

  // False if it must run as always: something is missing, or in an unknown
  // place. `resources` are those of the device, which is named so.
  bool Collect(ResourceMgr* resources, const std::string& device);

  // Runs the step as always and ends it.
  static void RunAlways(const std::shared_ptr<CapturedCall>& call);
  // Runs it with these inputs, and keeps its results; `then` is to end it.
  static void RunAndKeep(
      const std::shared_ptr<CapturedCall>& call, StepInputs inputs,
      std::function<void(absl::Status, std::vector<StepOutput>)> then);

  // Gives what the step has made to who asked for it.
  absl::Status Give(const std::vector<Tensor>& outputs) const;

  StreamGroup* group() const { return group_; }
  const Executor::DoneCallback& done() const { return done_; }
  // It is to end when the device has completed it, whatever it gives.
  bool ends_when_completed() const { return args_.sync_on_finish; }
  // Someone wants to see the step's ops.
  bool is_traced() const { return args_.stats_collector != nullptr; }

  // What it takes; handles of variables among the arguments.
  const StepInputs& inputs() const { return inputs_; }
  // The same with more rows, if it is padded. Enqueues copies of the arguments
  // on the group's stream, into memory of `device`.
  absl::StatusOr<StepInputs> PaddedInputs(Allocator* device,
                                          Allocator* pinned) const;
  const std::vector<core::RefCountPtr<Var>>& variables() const {
    return variables_;
  }
  // By which the variables are locked.
  const std::vector<GpuGroups::StateKey>& state() const { return state_; }

  // Types and shapes of what it takes, padded if it is, which variables, whose
  // shapes are not in it, and the settings.
  const std::string& shapes() const { return shapes_; }
  // What its kernels are to be launched with: as it was when Collect began.
  const KernelSettings& settings() const { return settings_; }

  StepShapes ShapesOfInputs() const;
  // Gives it to a recording of more rows than it has.
  void Pad(std::shared_ptr<const Padding> padding);
  const Padding* padding() const { return padding_.get(); }  // or nullptr

 private:
  class EarlierReceived;
  class Kept;

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
  std::vector<Received> received_;
  StepInputs inputs_;
  std::vector<core::RefCountPtr<Var>> variables_;
  std::vector<GpuGroups::StateKey> state_;
  KernelSettings settings_;
  std::string shapes_;
  std::shared_ptr<const Padding> padding_;
};

// While it lives, nobody changes the variables that the call's step reads; nor
// does anybody read them, if the step `changes` variables: all at once, as two
// such steps may each read what the other one changes.
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

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_CAPTURED_CALL_H_
