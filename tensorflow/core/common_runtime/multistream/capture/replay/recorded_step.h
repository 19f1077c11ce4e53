// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does it take to launch a recorded step? A recording
// (capture/record/recording.h), copies of the inputs into the recording's
// memory, the variables at their recorded addresses, and copies of the outputs
// out of that memory. CapturedSteps keeps one RecordedStep for each group and
// input shapes.
//
// A step that changes variables (variable_home.h) locks them exclusively
// from the check of their addresses until the step is enqueued.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_STEP_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_STEP_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_call.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/recorded_copies.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/recorded_variables.h"
#include "tensorflow/core/common_runtime/multistream/capture/variables/variable_home.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow::multistream {

class RecordedStep {
 public:
  // A step of `group` of `leader`. The recording is deleted on a stream
  // callback thread, once the last reference is gone and the group's stream has
  // completed all work enqueued by then, which may still use the recording's
  // memory. So a caller may drop its reference right after a launch, even if it
  // is the last one.
  // `generators`: of the random numbers that the step draws.
  static std::shared_ptr<RecordedStep> Make(
      const StepInterface& step, GroupLeader* leader, StreamGroup* group,
      const std::vector<GuardedPhiloxRandom*>& generators);
  ~RecordedStep();

  // Records the call's step, which `executor` runs on the group's recorder.
  // Call once, before any launch. After an error this object is unusable;
  // Aborted or FailedPrecondition say why the step cannot be recorded.
  absl::Status Record(const CapturedCall& call, Executor* executor);

  // Enqueues the call's step; first moves its variables back to their recorded
  // addresses. On success `launched` is called once, with the step's outputs or
  // its error, and with the variables' version (VariableOrder): normally from a
  // stream callback. If `*end` is set, the caller must run it instead, and it
  // calls `launched`: no wait is needed, or the caller polls for the end. An
  // error that is returned means that only the recording's own memory has been
  // changed: Aborted if the recording can never be launched again.
  using Launched = std::function<void(absl::Status, std::vector<Tensor> outputs,
                                      std::optional<int64_t> version)>;
  absl::Status Launch(const std::shared_ptr<CapturedCall>& call,
                      Launched launched, std::function<void()>* end);

  StreamGroup* group() const { return group_; }
  int64_t bytes() const { return bytes_; }
  int64_t workspace_bytes() const { return recording_->workspace_bytes(); }
  // Whether a variable that the step uses has been deleted.
  bool IsOrphaned() const { return variables_.IsOrphaned(); }
  // Number of launches.
  int64_t launches() const { return launches_.load(std::memory_order_relaxed); }

 private:
  class Ends;

  RecordedStep(const StepInterface& step, GroupLeader* leader,
               StreamGroup* group,
               const std::vector<GuardedPhiloxRandom*>& generators);

  // To stock code an emulated GPU is a CPU.
  bool is_emulated() const {
    return leader_->group_device(0)->device_type() == DEVICE_CPU;
  }
  // Runs the step's ops on the recorder's device.
  absl::Status RunOps(Executor* executor);
  // Records the ops. Variables that recording has changed get their old values
  // back.
  absl::Status RecordOps(const CapturedCall& call,
                         const std::vector<Tensor>& variables,
                         Executor* executor);

  // Set and drop the references to the call's variables, around a launch.
  void SetVariables(const CapturedCall& call);
  void DropVariables();

  // False if a variable is not at its recorded address; Aborted if that
  // variable has no home (variable_home.h).
  absl::StatusOr<bool> LaunchInPlace(const std::shared_ptr<CapturedCall>& call,
                                     RecordedCopies::OfCall* copies,
                                     Launched* launched,
                                     std::function<void()>* end);
  // Whether the caller polls the launch that has just been enqueued. Counts
  // down the launches that are not polled.
  bool DecideToPoll();
  // Returns the function that ends the call once the stream has completed the
  // step.
  static std::function<void()> Finish(const std::shared_ptr<CapturedCall>& call,
                                      const absl::Status& status,
                                      std::optional<int64_t> version,
                                      RecordedCopies::OfCall* copies,
                                      Launched* launched);
  // Reports the launch's memory accesses to the sanitizer, if there is one.
  void NoteUses(const CapturedCall& call, const std::vector<Tensor>& variables,
                const std::vector<Tensor>& outputs) const;

  const StepInterface& step_;
  GroupLeader* const leader_;
  StreamGroup* const group_;
  const ReclaimableMemory::Holder has_memory_;
  const ReclaimableMemory::Holder has_homes_;  // in the leader's memory
  const std::unique_ptr<Recording> recording_;
  const std::unique_ptr<StreamEvent> last_launch_;  // recorded after the launch
  // How many of the next launches are not polled.
  std::atomic<int> unpolled_{0};
  const std::unique_ptr<Ends> ends_;
  RecordedCopies copies_;  // after recording_, which owns the memory
  RecordedVariables variables_;
  std::vector<Var*> to_change_;          // set during a launch
  ChangedVariables* changed_ = nullptr;  // set while ops run
  std::vector<Tensor> made_;             // outputs, if a launch reruns the ops
  int64_t bytes_ = 0;
  bool complete_ = false;  // recorded: the places are final
  std::atomic<int64_t> launches_{0};
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_STEP_H_
