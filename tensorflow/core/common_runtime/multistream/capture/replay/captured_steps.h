// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// When is a step recorded, and when is a recording launched in its place? The
// graph-level executor asks at each step.
//
//   collect all that it takes --> no recording for it --> the step runs as
//        |    (captured_call.h)   on this group, the      it always does
//        |                        first times
//        |                              |
//        |                              v   the third time
//        |                           record it (recorded_step.h)
//        v                              |
//   copy the inputs in, launch the recording, copy the results out, give them

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_CAPTURED_STEPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_CAPTURED_STEPS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/padding.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_call.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/recorded_step.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capture_report.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {

// Of one executor. Thread-safe.
class CapturedSteps final : public ReclaimableMemory::Owner {
 public:
  // Steps of a shape that run as always on a group before one is recorded: the
  // first loads kernels, chooses algorithms and makes handles.
  static constexpr int kRunsBefore = 2;
  // A shape that could not be recorded is tried again at once, then after so
  // many runs, after twice as many, and so on.
  static constexpr int kRunsBeforeRetry = 64;
  // And so many after its memory was given back.
  static constexpr int kRunsAfterGivingBack = 1024;
  // A recording that was launched so often has saved more time than it took.
  static constexpr int kLaunchesThatPay = 32;
  // Of shapes, per executor; beyond it, those without a recording are
  // forgotten.
  static constexpr int kMostShapes = 1024;

  // `recorders[i]` is the executor on the recorder of group `i` of `leader`.
  // `required` says, for an error, who wants no step to run otherwise; or is
  // empty. `name` is the graph's in reports.
  // `paddings` is nullptr if no batch is to be padded.
  CapturedSteps(GroupLeader* leader, const Options& options,
                std::string required, std::string name, const Capturable& graph,
                std::unique_ptr<Paddings> paddings,
                std::vector<std::unique_ptr<Executor>> recorders);
  ~CapturedSteps();

  // Runs a step that was started on `group`, and ends it: calls
  // `run_as_always`, or launches a recording.
  void Run(const Executor::Args& args, StreamGroup* group,
           CapturedCall::RunAsAlways run_as_always,
           Executor::DoneCallback done);

  void GiveBack(StreamGroup* group) override;

 private:
  // What is known of steps that take values of certain shapes on a group.
  struct Shape {
    int64_t runs = 0;
    int64_t next_try = kRunsBefore;
    int failures = 0;
    std::string failure;                     // the last one
    std::shared_ptr<RecordedStep> recorded;  // or nullptr
    int64_t last_use = 0;
  };

  void Received(const std::shared_ptr<CapturedCall>& call);
  // Why it is not padded, where it would be, or nothing.
  std::string Pad(CapturedCall* call);
  // What to launch for the call's step. Unavailable says why there is nothing;
  // any other error is the step's, as steps must be captured.
  absl::StatusOr<std::shared_ptr<RecordedStep>> Find(const CapturedCall& call);
  absl::StatusOr<std::shared_ptr<RecordedStep>> Record(
      const CapturedCall& call);
  // Notes that a shape could not be recorded, or no longer is: how many runs
  // there are to be before it is tried again. The first `at_once` times, none.
  static int64_t NextTry(Shape& shape, int at_once);
  // Takes a shape's recording from it, for the caller to let go of without the
  // lock; `why`, for reports.
  std::shared_ptr<RecordedStep> Dropped(Shape* shape, int at_once,
                                        absl::string_view why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Drop(const CapturedCall& call,
            const std::shared_ptr<RecordedStep>& recorded,
            const absl::Status& why);
  // Keeps a recording; drops those whose last use is longest ago for it.
  absl::Status Keep(const CapturedCall& call,
                    std::shared_ptr<RecordedStep> recorded);
  // An error if the step has not been launched: there is no memory for the
  // copies, or, and then Aborted, a variable has moved or the driver refuses.
  absl::Status Launch(const std::shared_ptr<CapturedCall>& call,
                      std::shared_ptr<RecordedStep> recorded);
  // Ends the call's step, which has been completed.
  void Finish(const CapturedCall& call, std::vector<Tensor> outputs,
              absl::Status status);
  // Of the variables that the call's step reads, as of VariableOrder.
  std::optional<int64_t> StateVersion(const CapturedCall& call) const;
  // The same, once the step has run as always, too, and gives the same bits. If
  // a variable no longer has its `version` by then, or a setting of kernels was
  // changed, there is nothing to compare.
  void Verify(const std::shared_ptr<CapturedCall>& call, int64_t version,
              std::vector<Tensor> outputs);
  absl::Status Compare(const CapturedCall& call,
                       const std::vector<Tensor>& replayed,
                       const std::vector<Tensor>& expected) const;

  GroupLeader* const leader_;
  const std::string name_;
  CaptureReport::Counter* const replayed_;
  const std::string required_;
  const int64_t most_bytes_;
  const int verify_every_;
  const StepInterface step_;
  const std::unique_ptr<Paddings> paddings_;
  const std::vector<std::unique_ptr<Executor>> recorders_;  // by group

  std::atomic<int64_t> replays_{0};

  absl::Mutex mu_;
  // By group, and types and shapes of the inputs, with settings of kernels.
  absl::flat_hash_map<std::pair<int, std::string>, Shape> shapes_
      ABSL_GUARDED_BY(mu_);
  int64_t uses_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<bool> records_ ABSL_GUARDED_BY(mu_);  // by group
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_CAPTURED_STEPS_H_
