// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/graph_level/graph_level_executor.h"

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/capture/batches/independent_rows.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/cut.h"
#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_runner.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_steps.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capturable.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capture_mark.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capture_report.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/drawn_numbers.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/equal_ops.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/values_on_device.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/step/group_rendezvous.h"
#include "tensorflow/core/common_runtime/multistream/step/pinned_group.h"
#include "tensorflow/core/common_runtime/multistream/step/shared_kernels.h"
#include "tensorflow/core/common_runtime/multistream/step/step_threads.h"
#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

// The functions that the graph may call, or nullptr.
const FunctionLibraryDefinition* LibraryOf(const LocalExecutorParams& params) {
  return params.function_library == nullptr
             ? nullptr
             : params.function_library->GetFunctionLibraryDefinition();
}

class GraphLevelExecutor : public Executor {
 public:
  GraphLevelExecutor(const LocalExecutorParams& params, GroupLeader* leader,
                     const Options& options, GraphTraits traits,
                     std::string name)
      : leader_(leader),
        options_(options),
        name_(std::move(name)),
        gpu_(leader->gpu_groups()),
        groups_(leader->session_streams().groups),
        step_groups_(gpu_, leader->group_device(0)->name(), options_, groups_),
        traits_(std::move(traits)),
        kernels_(std::make_shared<SharedKernels>(
            gpu_->leader()->gpu(), params, traits_, options.segment_own_const)),
        used_(groups_) {}

  absl::Status Initialize(const LocalExecutorParams& params, const Graph& graph,
                          const MakeStockExecutor& make_stock) {
    return MakeGroupExecutors(params, graph, make_stock, &executors_);
  }

  // Makes captured_ if steps are to be captured and can be.
  absl::Status InitializeCapture(const LocalExecutorParams& params,
                                 const Graph& graph,
                                 const MakeStockExecutor& make_stock) {
    const std::optional<CaptureMode> mark = CaptureMarkOf(graph);
    const CaptureMode mode = mark.value_or(leader_->session_streams().capture);
    if (mode <= CaptureMode::kMarked) return absl::OkStatus();
    std::string required = mode != CaptureMode::kRequire ? ""
                           : mark.has_value()
                               ? "tf.cuda.captured(mode=\"require\")"
                               : absl::StrCat(kCaptureVariable, "=require");
    std::string never = WhyNothingIsCaptured();
    if (leader_->recorder(0) == nullptr) {
      never =
          "the device was made before steps were to be captured, or its "
          "session has a name of its own for it, or limits the kernels that "
          "are pending (kernel_tracker_max_*)";
    }
    if (!never.empty()) {
      return required.empty() ? absl::OkStatus()
                              : NotCaptured(required, params, never);
    }
    // TF_MULTI_STREAM_CAPTURE=require does not mean initializers and training
    // steps, unless the function itself is marked.
    if (changes_state() && !mark.has_value()) required.clear();
    const int launches = CountLaunches(graph);
    CaptureReport::Describe(name_, launches, CaptureReport::Is::kGraph);
    if (launches == 0) {
      // As of a model whose ops are all on the CPU: only variables are read
      // here. A replay would save nothing, and hide that.
      not_captured_ = CaptureReport::CounterOf(
          name_, "none of its ops launches a kernel on the GPU");
      return absl::OkStatus();
    }
    if (mode == CaptureMode::kInference && changes_state()) {
      not_captured_ = CaptureReport::CounterOf(
          name_, absl::StrCat("it changes state; ", kCaptureVariable,
                              "=auto captures training, too"));
      return absl::OkStatus();
    }
    ValuesOnDevice values = PutValuesOnDevice(graph);
    values.graph = WithoutEqualOps(graph, std::move(values.graph));
    const Graph& recorded = values.graph == nullptr ? graph : *values.graph;
    Capturable capturable;
    capturable.obstacle = values.obstacle;
    if (values.obstacle.empty()) {
      capturable = ClassifyForCapture(recorded, LibraryOf(params));
      capturable.messages = std::move(values.messages);
    }
    if (capturable.obstacle.empty() && capturable.is_compiled) {
      capturable.obstacle = ObstacleInXla();
    }
    if (capturable.obstacle.empty() && changes_state() &&
        !capturable.changes_variables) {
      capturable.obstacle =
          absl::StrCat("it changes state: ", traits_.leader_only);
    }
    if (capturable.obstacle.empty()) {
      capturable.obstacle =
          kernels_->GeneratorsOf(capturable.draws).status().message();
    }
    if (!capturable.obstacle.empty()) {
      VLOG(1) << "Steps are not captured: " << capturable.obstacle;
      const bool in_pieces =
          options_.capture_pieces > 0 &&
          (required.empty() || options_.capture_percent < 100);
      int captured = 0;
      std::string no_pieces;
      if (in_pieces) {
        const absl::Status status =
            InitializePieces(params, graph, make_stock, capturable.obstacle,
                             &captured, &no_pieces);
        if (!status.ok()) {
          captured = 0;
          LOG(ERROR) << "Multi-stream: a graph is not captured in pieces: "
                     << status;
          in_pieces_.clear();  // before the pieces that it uses
          pieces_.clear();
        }
      }
      const int percent = 100 * captured / launches;
      if (!required.empty() && percent < options_.capture_percent) {
        return NotCaptured(
            required, params,
            !in_pieces ? capturable.obstacle
                       : absl::StrCat(capturable.obstacle, "; pieces have ",
                                      percent, "% of the launches, less than ",
                                      kCapturePercentVariable, "=",
                                      options_.capture_percent));
      }
      if (pieces_.empty()) {
        not_captured_ = CaptureReport::CounterOf(
            name_, no_pieces.empty()
                       ? capturable.obstacle
                       : absl::StrCat(capturable.obstacle,
                                      "; no pieces: ", no_pieces));
      }
      return absl::OkStatus();
    }
    TF_ASSIGN_OR_RETURN(
        captured_, NewCapturedSteps(params, recorded, make_stock, capturable,
                                    required, name_));
    return absl::OkStatus();
  }

  // A step that has ended on the host may still run on its stream and read the
  // kernels' constants, so the destructor waits for the streams.
  ~GraphLevelExecutor() override {
    if (GroupsAreOfParent()) {
      captured_.release();  // the CUDA graphs belong to the parent process
      for (const auto& piece : pieces_) piece->Abandon();
      return;
    }
    for (int i = 0; i < groups_; ++i) {
      if (used_[i].load(std::memory_order_acquire)) {
        gpu_->group(i)->Block().IgnoreError();
      }
    }
  }

 private:
  // One executor for each group that the graph's steps may run on.
  template <class DeviceOf>
  absl::Status MakeExecutors(const LocalExecutorParams& params,
                             const Graph& graph,
                             const MakeStockExecutor& make_stock,
                             const DeviceOf& device_of,
                             std::vector<std::unique_ptr<Executor>>* made,
                             bool is_late = false) {
    const int groups = changes_state() ? 1 : groups_;
    for (int i = 0; i < groups; ++i) {
      LocalExecutorParams of_group = params;
      of_group.device = device_of(i);
      SharedKernels::Wrap(kernels_, i, &of_group, is_late);
      TF_RETURN_IF_ERROR(make_stock(of_group, graph, &made->emplace_back()));
    }
    return absl::OkStatus();
  }

  absl::Status MakeGroupExecutors(
      const LocalExecutorParams& params, const Graph& graph,
      const MakeStockExecutor& make_stock,
      std::vector<std::unique_ptr<Executor>>* made) {
    return MakeExecutors(
        params, graph, make_stock,
        [this](int group) { return leader_->group_device(group); }, made);
  }

  absl::Status MakeRecorders(const LocalExecutorParams& params,
                             const Graph& recorded,
                             const MakeStockExecutor& make_stock,
                             std::vector<std::unique_ptr<Executor>>* made,
                             bool is_late = false) {
    return MakeExecutors(
        params, recorded, make_stock,
        [this](int group) { return leader_->recorder(group)->device(); }, made,
        is_late);
  }

  // What records and replays the calls of `recorded`, a graph or a piece.
  absl::StatusOr<std::unique_ptr<CapturedSteps>> NewCapturedSteps(
      const LocalExecutorParams& params, const Graph& recorded,
      const MakeStockExecutor& make_stock, const Capturable& capturable,
      const std::string& required, const std::string& name) {
    TF_ASSIGN_OR_RETURN(std::vector<GuardedPhiloxRandom*> generators,
                        kernels_->GeneratorsOf(capturable.draws));
    std::unique_ptr<Graph> stateless;
    if (!generators.empty()) {
      TF_ASSIGN_OR_RETURN(stateless,
                          WithStatelessDraws(recorded, capturable.draws,
                                             params.device->name()));
    }
    std::vector<std::unique_ptr<Executor>> recorders;
    TF_RETURN_IF_ERROR(
        MakeRecorders(params, stateless == nullptr ? recorded : *stateless,
                      make_stock, &recorders));
    std::unique_ptr<Paddings> paddings;
    // No padding in training: the step would learn from the added rows.
    const bool pads =
        !options_.capture_batches.empty() || !options_.capture_lengths.empty();
    if (pads && !changes_state()) {
      paddings = std::make_unique<Paddings>(recorded, options_.capture_batches,
                                            options_.capture_lengths);
    }
    return std::make_unique<CapturedSteps>(
        leader_, options_, required, name, capturable, std::move(paddings),
        std::move(recorders),
        [this, params, make_stock](
            const Graph& masked, std::vector<std::unique_ptr<Executor>>* made) {
          return MakeRecorders(params, masked, make_stock, made,
                               /*is_late=*/true);
        },
        std::move(generators));
  }

  // Makes pieces_ of a graph that cannot be captured as a whole, and executors
  // of what is between, if a piece can be captured. Sets how many launches are
  // `captured`, or why there are `no_pieces`.
  absl::Status InitializePieces(const LocalExecutorParams& params,
                                const Graph& graph,
                                const MakeStockExecutor& make_stock,
                                const std::string& obstacle, int* captured,
                                std::string* no_pieces) {
    Cut cut = CutIntoPieces(graph, LibraryOf(params),
                            /*with_xla=*/ObstacleInXla().empty(),
                            options_.capture_pieces);
    *no_pieces = cut.no_pieces;
    if (cut.pieces.empty()) return absl::OkStatus();
    int in_loops = 0;
    for (Piece& piece : cut.pieces) {
      *captured += piece.launches;
      const std::string name = absl::StrCat(
          name_, ", piece ", pieces_.size() + 1, " of ", cut.pieces.size(),
          " (", piece.launches, " of ", cut.launches, " launches)");
      if (piece.in_loop) in_loops += piece.launches;
      CaptureReport::Describe(name, piece.launches,
                              piece.in_loop ? CaptureReport::Is::kPieceOfLoop
                                            : CaptureReport::Is::kPiece);
      std::vector<std::unique_ptr<Executor>> executors;
      TF_RETURN_IF_ERROR(
          MakeGroupExecutors(params, *piece.graph, make_stock, &executors));
      TF_ASSIGN_OR_RETURN(
          std::unique_ptr<CapturedSteps> of_piece,
          NewCapturedSteps(
              params,
              piece.recorded == nullptr ? *piece.graph : *piece.recorded,
              make_stock, piece.capturable, /*required=*/"", name));
      pieces_.push_back(std::make_unique<PieceRunner>(
          leader_, piece.name, piece.launches, std::move(executors),
          std::move(of_piece), &back_off_));
    }
    CaptureReport::Describe(name_, cut.launches - in_loops,
                            CaptureReport::Is::kGraph);
    not_captured_ = CaptureReport::CounterOf(
        name_, absl::StrCat("in pieces (", *captured, " of ", cut.launches,
                            " launches), as ", obstacle));
    return MakeGroupExecutors(params, *cut.graph, make_stock, &in_pieces_);
  }

  static absl::Status NotCaptured(const std::string& required,
                                  const LocalExecutorParams& params,
                                  const std::string& why) {
    return absl::FailedPreconditionError(
        absl::StrCat(required, ", and steps of a graph on ",
                     params.device->name(), " cannot be captured: ", why));
  }

  std::string ObstacleInXla() const {
#if TF_MAJOR_VERSION == 2 && TF_MINOR_VERSION < 16
    return "XLA of this release of TensorFlow is not recorded";
#endif
    return options_.xla_has_streams
               ? absl::StrCat("XLA has streams of its own, with device_api in ",
                              kTfXlaFlagsVariable)
               : "";
  }

  // Whether the steps have to run on the leader.
  bool changes_state() const { return !traits_.leader_only.empty(); }

  void TFMS_RUN_ASYNC(const Args& args, DoneCallback done) override {
    if (GroupsAreOfParent()) {
      done(GroupsAreOfParentError());
      return;
    }
    const StepRunner* outer = StepRunner::From(&args.runner);
    const bool changes_state = this->changes_state();
    const bool nested = outer != nullptr && !outer->step->finished() &&
                        outer->step->gpu() == gpu_;
    if (nested && (!changes_state || outer->step->changes_state())) {
      RunPart(args, outer->step, outer->run, std::move(done));
      return;
    }
    StreamGroup* group = gpu_->leader();
    if (changes_state) {
      gpu_->StartStepOn(group);
    } else {
      const auto started = step_groups_.StartStep(args);
      if (!started.ok()) {
        done(started.status());
        return;
      }
      group = *started;
    }
    done = TracedStep(group, name_, std::move(done));
    // The leader's stream may still be computing tensors that the step takes. A
    // step that takes none does not wait, so that it can copy the next batch
    // while the leader trains on this one. Nor does it wait for variables: each
    // op that reads variables, of this graph or of a called function, and each
    // captured step waits for the last changes of those (variable_order.h). Ops
    // that use other state of the leader run on the leader.
    if (traits_.takes_tensors) {
      gpu_->OrderAfterLeader(group);
      if (Sanitizer* sanitizer = group->sanitizer()) {
        // Arguments that come from the host are complete without a wait.
        sanitizer->WaitForTail(group->index(), gpu_->leader()->index());
      }
    }
    // Returned tensors may be used on other streams, so they must be complete.
    // A step that changes state runs on the leader and needs no wait: the
    // leader's stream orders later work, as in stock TensorFlow.
    bool complete_on_stream =
        traits_.has_return_values && !changes_state && groups_ > 1;
    if (nested) {
      // A step on another group calls a graph that changes state; the step's
      // own graph did not show the call, or it would run on the leader.
      group->OrderAfter(outer->step->group());
      complete_on_stream = true;
    }
    // A nested call is not captured: its caller does not wait for the leader's
    // stream.
    if (captured_ == nullptr || nested) {
      if (not_captured_ != nullptr) {
        not_captured_->fetch_add(1, std::memory_order_relaxed);
      }
      RunStep(args, group, changes_state, complete_on_stream, std::move(done));
      return;
    }
    used_[group->index()].store(true, std::memory_order_release);
    captured_->Run(
        args, group,
        [this, args, group, changes_state, complete_on_stream](
            std::shared_ptr<RendezvousInterface> rendezvous,
            CallFrameInterface* frame, DoneCallback then) {
          Args ours = args;
          ours.rendezvous = rendezvous.get();
          ours.call_frame = frame;
          RunStep(ours, group, changes_state, complete_on_stream,
                  [rendezvous, then = std::move(then)](const absl::Status& s) {
                    then(s);
                  });
        },
        std::move(done));
  }

  void RunStep(const Args& args, StreamGroup* group, bool changes_state,
               bool complete_on_stream, DoneCallback done) {
    auto step = std::make_shared<Step>(gpu_, group, changes_state);
    RunPart(args, step,
            StepThreads::RunnerFor(options_, args, group, /*groups=*/1,
                                   leader_->session_threads(group->index())),
            [step, complete_on_stream, gpu = gpu_, group,
             failures = gpu_->memory_failures(),
             done = std::move(done)](const absl::Status& result) {
              const absl::Status status =
                  gpu->WithMemoryOfGroups(result, failures);
              step->Finish();
              if (complete_on_stream) {
                step->holds().ReleaseWhenCompleted(
                    group, [gpu, group, status, done] {
                      gpu->EndStep(group, status.ok());
                      done(status);
                    });
                return;
              }
              step->holds().ReleaseWhenCompleted(group);
              gpu->EndStep(group, status.ok());
              done(status);
            });
  }

  // Runs the graph as a step, or as a call by an op of a running step: then on
  // the step's group and with the step's holds, as the caller goes on in the
  // same stream. `run`: where closures run.
  void RunPart(const Args& args, std::shared_ptr<Step> step, Args::Runner run,
               DoneCallback done) {
    if (kernels_->traits().has_references) step->NoteReferences();
    StreamGroup* group = step->group();
    used_[group->index()].store(true, std::memory_order_release);
    Args ours = args;
    ours.runner =
        StepRunner{step, &kernels_->traits(), std::move(run), nullptr, group};
    std::shared_ptr<GroupRendezvous> rendezvous;
    if (args.rendezvous != nullptr) {
      rendezvous = std::make_shared<GroupRendezvous>(
          args.rendezvous, step.get(), group, leader_->group_device(0),
          leader_->group_device(group->index()));
      ours.rendezvous = rendezvous.get();
    }
    // A piece does not lock reference variables, whose memory its arguments may
    // be (op_state.h).
    const bool uses_pieces =
        !in_pieces_.empty() && !step->has_references() && back_off_.UsePieces();
    const auto& executors = uses_pieces ? in_pieces_ : executors_;
    executors[group->index()]->RunAsync(
        ours, [rendezvous, done = std::move(done)](const absl::Status& status) {
          done(status);
        });
  }

  GroupLeader* const leader_;
  const Options options_;
  const std::string name_;  // of the graph
  GpuGroups* const gpu_;
  const int groups_;  // of the session
  const StepGroups step_groups_;
  const GraphTraits traits_;
  const std::shared_ptr<SharedKernels> kernels_;
  // Of a graph that is captured in pieces; else none. The executors' kernels
  // use them.
  PieceBackOff back_off_;
  std::vector<std::unique_ptr<PieceRunner>> pieces_;
  // One for each group, or only the leader's if the graph changes state.
  std::vector<std::unique_ptr<Executor>> executors_;
  // The same, in pieces.
  std::vector<std::unique_ptr<Executor>> in_pieces_;
  std::vector<std::atomic<bool>> used_;
  std::unique_ptr<CapturedSteps> captured_;  // nullptr: no step is captured
  // Not null if capture is on and this graph cannot be captured.
  CaptureReport::Counter* not_captured_ = nullptr;
};

}  // namespace

absl::Status NewGraphLevelExecutor(const LocalExecutorParams& params,
                                   const Graph& graph, GroupLeader* leader,
                                   const Options& options,
                                   const MakeStockExecutor& make_stock,
                                   std::unique_ptr<Executor>* out) {
  if (GroupsAreOfParent()) return GroupsAreOfParentError();
  GraphTraits traits = ClassifyGraph(graph, LibraryOf(params));
  if (!traits.leader_only.empty()) {
    VLOG(1) << "Graph runs on the leader only: " << traits.leader_only;
  }
  auto executor = std::make_unique<GraphLevelExecutor>(
      params, leader, options, std::move(traits), CaptureReport::NameOf(graph));
  TF_RETURN_IF_ERROR(executor->Initialize(params, graph, make_stock));
  TF_RETURN_IF_ERROR(executor->InitializeCapture(params, graph, make_stock));
  *out = std::move(executor);
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
