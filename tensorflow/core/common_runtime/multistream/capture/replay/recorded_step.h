// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What does it take to launch a recorded step? Its recording
// (capture/record/recording.h), copies of what it takes into the recording's
// memory, the variables where they were, and copies of what it makes out of
// there. CapturedSteps keeps one for each group and shapes.
//
// A step that changes variables (changed_variables.h) has them for itself from
// when it is looked at until it is enqueued.

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
#include "tensorflow/core/common_runtime/multistream/capture/variables/changed_variables.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/refcount.h"

namespace tensorflow {
namespace multistream {

class RecordedStep {
 public:
  // Of `group` of `leader`. The recording ends once the last reference to it is
  // gone and the group's stream has completed all that was enqueued by then,
  // which may still use the recording's memory: a caller may drop its reference
  // right after a launch, whatever became of the other references meanwhile. It
  // ends on a thread of the stream's callbacks.
  static std::shared_ptr<RecordedStep> Make(const StepInterface& step,
                                            GroupLeader* leader,
                                            StreamGroup* group);
  ~RecordedStep();

  // Records the call's step, which `executor` runs on the group's recorder.
  // Once, before any launch. After an error it is of no use: Aborted or
  // FailedPrecondition say why there is nothing to record.
  absl::Status Record(const CapturedCall& call, Executor* executor);

  // Enqueues the call's step; first puts its variables back where they were.
  // On success `launched` is called once, with the step's outputs or its error,
  // and with the variables' version (VariableOrder): normally from a stream
  // callback. If `*end` is set, the caller must run it instead, and it calls
  // `launched`: no wait is needed, or the caller polls for the end.
  // An error that is returned means that only the recording's own memory has
  // been changed: Aborted if the recording is of no use any more.
  using Launched = std::function<void(absl::Status, std::vector<Tensor> outputs,
                                      std::optional<int64_t> version)>;
  absl::Status Launch(const std::shared_ptr<CapturedCall>& call,
                      Launched launched, std::function<void()>* end);

  StreamGroup* group() const { return group_; }
  int64_t bytes() const { return bytes_; }
  int64_t workspace_bytes() const { return recording_->workspace_bytes(); }
  // Whether a variable that it reads is no more.
  bool IsOrphaned() const { return variables_.IsOrphaned(); }
  // Times it was launched.
  int64_t launches() const { return launches_.load(std::memory_order_relaxed); }

 private:
  class Ends;

  RecordedStep(const StepInterface& step, GroupLeader* leader,
               StreamGroup* group);

  // Runs the step's ops, on the recorder's device. `call` has its variables.
  absl::Status RunOps(Executor* executor);
  // Records it; a step that changes variables as if it had not run meanwhile.
  absl::Status RecordOps(const CapturedCall& call,
                         const std::vector<Tensor>& variables,
                         Executor* executor);

  // Of the variables, for the time of a launch.
  void SetVariables(const CapturedCall& call);
  void DropVariables();

  // False if a variable is not where it was; Aborted if it has no home.
  absl::StatusOr<bool> LaunchInPlace(const std::shared_ptr<CapturedCall>& call,
                                     RecordedCopies::OfCall* copies,
                                     Launched* launched,
                                     std::function<void()>* end);
  // Whether the launch that has just been enqueued is polled; counts it.
  bool DecideToPoll();
  // What ends the call once the stream has completed its step.
  static std::function<void()> Finish(const std::shared_ptr<CapturedCall>& call,
                                      const absl::Status& status,
                                      std::optional<int64_t> version,
                                      RecordedCopies::OfCall* copies,
                                      Launched* launched);
  // Tells the sanitizer, if there is one.
  void NoteUses(const CapturedCall& call, const std::vector<Tensor>& variables,
                const std::vector<Tensor>& outputs) const;

  const StepInterface& step_;
  GroupLeader* const leader_;
  StreamGroup* const group_;
  const ReclaimableMemory::Holder has_memory_;
  const std::unique_ptr<Recording> recording_;
  const std::unique_ptr<StreamEvent> last_launch_;  // recorded after it
  // So many launches are not to be polled.
  std::atomic<int> unpolled_{0};
  const std::unique_ptr<Ends> ends_;
  RecordedCopies copies_;  // after recording_, whose memory it has
  RecordedVariables variables_;
  std::vector<Var*> to_change_;          // while a launch has its variables
  ChangedVariables* changed_ = nullptr;  // while ops run
  std::vector<Tensor> made_;             // by a launch that runs the ops again
  int64_t bytes_ = 0;
  bool complete_ = false;  // nothing changes any more
  std::atomic<int64_t> launches_{0};
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_STEP_H_
