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
#include "tensorflow/core/common_runtime/multistream/capture/batches/paddings.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_call.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/recorded_step.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capture_report.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

// The recordings of one executor, and the decisions about them. Thread-safe.
class CapturedSteps final : public ReclaimableMemory::Owner {
 public:
  // Steps of a shape that run without capture on a group before one is
  // recorded: the first step loads kernels, chooses algorithms and makes
  // handles.
  static constexpr int kRunsBefore = 2;
  // Back-off: a shape that could not be recorded is tried again at once, then
  // after this many runs, after twice as many, and so on.
  static constexpr int kRunsBeforeRetry = 64;
  // Runs before a retry after the recording's memory was reclaimed.
  static constexpr int kRunsAfterGivingBack = 1024;
  // A recording with this many launches has saved more time than it took.
  static constexpr int kLaunchesThatPay = 32;
  // Limit of shapes per executor. At the limit, shapes without a recording are
  // evicted.
  static constexpr int kMostShapes = 1024;

  // Makes the executors on the recorders that run a graph, which is that of the
  // steps with masks.
  using MakeRecorders = std::function<absl::Status(
      const Graph&, std::vector<std::unique_ptr<Executor>>*)>;

  // `recorders[i]` is the executor on the recorder of group `i` of `leader`. If
  // capture is mandatory, `required` names the setting that says so, for an
  // error; else it is empty. `name` is the graph's name in reports. `paddings`
  // is nullptr if no batch and no length is to be padded. `generators` are
  // those of the graph's draws; their kernels outlive this object.
  CapturedSteps(GroupLeader* leader, const Options& options,
                std::string required, std::string name, const Capturable& graph,
                std::unique_ptr<Paddings> paddings,
                std::vector<std::unique_ptr<Executor>> recorders,
                MakeRecorders make_recorders = nullptr,
                std::vector<GuardedPhiloxRandom*> generators = {});
  ~CapturedSteps();

  // Runs a step that was started on `group`, and ends it: launches a recording,
  // or calls `run_as_always`, which runs the step without capture.
  void Run(const Executor::Args& args, StreamGroup* group,
           CapturedCall::RunAsAlways run_as_always,
           Executor::DoneCallback done);

  void GiveBack(StreamGroup* group) override;

 private:
  // State of the steps with the same group and the same input shapes.
  struct Shape {
    int64_t runs = 0;
    int64_t next_try = kRunsBefore;
    int failures = 0;
    std::string failure;                     // the last one
    std::shared_ptr<RecordedStep> recorded;  // or nullptr
    int64_t last_use = 0;
  };

  void Received(const std::shared_ptr<CapturedCall>& call);
  // Pads the call if its graph has paddings. Returns why padding was refused,
  // or an empty string.
  std::string Pad(CapturedCall* call);
  // Makes masked_, once. An error if they have other masks.
  absl::Status MakeMasked(
      const std::shared_ptr<const std::vector<NodeMask>>& masks);
  // The recording to launch for the call. Unavailable says why there is none.
  // Any other error becomes the step's error: capture is mandatory and
  // impossible.
  absl::StatusOr<std::shared_ptr<RecordedStep>> Find(const CapturedCall& call);
  absl::StatusOr<std::shared_ptr<RecordedStep>> Record(
      const CapturedCall& call);
  // Notes that a shape could not be recorded, or lost its recording. Returns
  // the run after which recording is retried: the current run for the first
  // `at_once` failures, then with exponential back-off.
  static int64_t NextTry(Shape& shape, int at_once);
  // Removes and returns a shape's recording, which the caller must release
  // without holding the lock. `why` is for reports.
  std::shared_ptr<RecordedStep> Dropped(Shape* shape, int at_once,
                                        absl::string_view why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Drop(const CapturedCall& call,
            const std::shared_ptr<RecordedStep>& recorded,
            const absl::Status& why);
  // Stores a recording; evicts others in LRU order to make room.
  absl::Status Keep(const CapturedCall& call,
                    std::shared_ptr<RecordedStep> recorded);
  // An error means that the step has not been launched. Aborted: a variable has
  // moved, or the driver refuses. Else there is no memory for the copies.
  absl::Status Launch(const std::shared_ptr<CapturedCall>& call,
                      std::shared_ptr<RecordedStep> recorded);
  // Ends the call's step after its completion.
  void Finish(CapturedCall& call, std::vector<Tensor> outputs,
              absl::Status status);
  // Version (VariableOrder) of the variables that the call's step reads.
  std::optional<int64_t> StateVersion(const CapturedCall& call) const;
  // Like Finish, but first runs the step again without capture and checks that
  // both results have the same bits. Skips the comparison if the variables no
  // longer have `version` by then, or a kernel setting was changed.
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
  const std::vector<GuardedPhiloxRandom*> generators_;      // by draw
  const std::vector<std::unique_ptr<Executor>> recorders_;  // by group

  const MakeRecorders make_recorders_;

  std::atomic<int64_t> replays_{0};

  absl::Mutex masked_mu_;
  absl::Status masked_status_ ABSL_GUARDED_BY(masked_mu_);
  // Of the steps that are padded to a length, by group.
  std::vector<std::unique_ptr<Executor>> masked_ ABSL_GUARDED_BY(masked_mu_);
  std::shared_ptr<const std::vector<NodeMask>> masks_
      ABSL_GUARDED_BY(masked_mu_);

  absl::Mutex mu_;
  // Keyed by group and by CapturedCall::shapes.
  absl::flat_hash_map<std::pair<int, std::string>, Shape> shapes_
      ABSL_GUARDED_BY(mu_);
  int64_t uses_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<bool> records_ ABSL_GUARDED_BY(mu_);  // by group
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_CAPTURED_STEPS_H_
