// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_runner.h"

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/step/group_rendezvous.h"
#include "tensorflow/core/framework/attr_value.pb.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/op_requires.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

// The runners of the process, by the names of their pieces.
struct Runners {
  absl::Mutex mu;
  absl::flat_hash_map<std::string, PieceRunner*> by_name ABSL_GUARDED_BY(mu);

  static Runners* Get() {
    static Runners* runners = new Runners;
    return runners;
  }
};

// The op's inputs are the piece's arguments, and its outputs the results.
class OpFrame : public CallFrameInterface {
 public:
  explicit OpFrame(OpKernelContext* context)
      : context_(context), results_(context->num_outputs()) {}

  // Call once, when the piece has run without an error.
  void SetOutputs() {
    for (size_t i = 0; i < results_.size(); ++i) {
      context_->set_output(static_cast<int>(i), std::move(results_[i]));
    }
  }

  size_t num_args() const override { return context_->num_inputs(); }
  size_t num_retvals() const override { return results_.size(); }
  absl::Status GetArg(int index, const Tensor** value) override {
    *value = &context_->input(index);
    return absl::OkStatus();
  }
  // Results of a piece that runs as always come from several threads.
  absl::Status SetRetval(int index, const Tensor& value) override {
    results_[index] = value;
    return absl::OkStatus();
  }

 private:
  OpKernelContext* const context_;
  std::vector<Tensor> results_;
};

// What an executor of a called function gets from the op that calls it.
Executor::Args ArgsOf(OpKernelContext* context) {
  Executor::Args args;
  args.step_id = context->step_id();
  args.rendezvous = context->rendezvous();
  args.stats_collector = context->stats_collector();
  args.cancellation_manager = context->cancellation_manager();
  GiveSessionConfig(context, &args);
  args.session_state = context->session_state();
  args.session_handle = context->session_handle();
  args.tensor_store = context->tensor_store();
  args.step_container = context->step_container();
  args.collective_executor = context->collective_executor();
  args.run_all_kernels_inline = context->run_all_kernels_inline();
  args.runner = *context->runner();
  return args;
}

class PieceKernel : public AsyncOpKernel {
 public:
  explicit PieceKernel(OpKernelConstruction* construction)
      : AsyncOpKernel(construction) {
    NameAttrList piece;
    OP_REQUIRES_OK(construction, construction->GetAttr("f", &piece));
    runner_ = PieceRunner::Find(piece.name());
    OP_REQUIRES(
        construction, runner_ != nullptr,
        absl::NotFoundError(absl::StrCat("there is no piece ", piece.name())));
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    runner_->Run(context, std::move(done));
  }

 private:
  PieceRunner* runner_ = nullptr;
};

REGISTER_KERNEL_BUILDER(Name("_MultiStreamPiece").Device(DEVICE_CPU),
                        PieceKernel);
REGISTER_KERNEL_BUILDER(Name("_MultiStreamPiece").Device(DEVICE_GPU),
                        PieceKernel);

}  // namespace

PieceRunner::PieceRunner(GroupLeader* leader, std::string name, int launches,
                         std::vector<std::unique_ptr<Executor>> executors,
                         std::unique_ptr<CapturedSteps> captured,
                         PieceBackOff* back_off)
    : leader_(leader),
      name_(std::move(name)),
      launches_(launches),
      executors_(std::move(executors)),
      captured_(std::move(captured)),
      back_off_(back_off) {
  Runners* runners = Runners::Get();
  absl::MutexLock lock(&runners->mu);
  runners->by_name[name_] = this;
}

PieceRunner::~PieceRunner() {
  Runners* runners = Runners::Get();
  absl::MutexLock lock(&runners->mu);
  runners->by_name.erase(name_);
}

PieceRunner* PieceRunner::Find(const std::string& name) {
  Runners* runners = Runners::Get();
  absl::MutexLock lock(&runners->mu);
  const auto found = runners->by_name.find(name);
  return found == runners->by_name.end() ? nullptr : found->second;
}

void PieceRunner::Run(OpKernelContext* context,
                      AsyncOpKernel::DoneCallback done) {
  const StepRunner* runner = StepRunner::From(context->runner());
  if (runner == nullptr) {
    context->SetStatus(absl::InternalError(
        absl::StrCat(name_, " runs outside a step of a stream group")));
    return done();
  }
  auto frame = std::make_shared<OpFrame>(context);
  auto is_replayed = std::make_shared<bool>(true);
  Executor::Args args = ArgsOf(context);
  args.call_frame = frame.get();
  Step* step = runner->step.get();
  StreamGroup* group = step->group();
  captured_->Run(
      args, group,
      [this, args, step, group, is_replayed,
       devices = context->function_library()->device_mgr()](
          std::shared_ptr<RendezvousInterface> rendezvous,
          CallFrameInterface* frame, Executor::DoneCallback then) {
        *is_replayed = false;
        Executor::Args ours = args;
        ours.call_frame = frame;
        auto own = std::make_shared<OwnCopies>(std::move(rendezvous), devices);
        // What has been received is on the host.
        auto to_group = std::make_shared<GroupRendezvous>(
            own.get(), step, group, leader_->group_device(0),
            leader_->group_device(group->index()));
        ours.rendezvous = to_group.get();
        executors_[group->index()]->RunAsync(
            ours, [own, to_group,
                   then = std::move(then)](const absl::Status& s) { then(s); });
      },
      [frame, context, is_replayed, back_off = back_off_, launches = launches_,
       done = std::move(done)](const absl::Status& status) {
        back_off->NotePiece(launches, *is_replayed);
        if (status.ok()) {
          frame->SetOutputs();
        } else {
          context->SetStatus(status);
        }
        done();
      });
}

}  // namespace tensorflow::multistream
