// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/replay/recorded_step.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_accesses.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/cpu_info.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow::multistream {
namespace {

// Branches pay off if at most this many steps have lately run at once on a GPU.
// More steps keep the GPU busy without branches; then branches cost more than
// they gain, even if only some launches use them.
constexpr int64_t kMostStepsWithBranches = 8;

// If at most this many steps have lately run at once on a GPU, the launching
// thread polls for the end of its step: waking another thread may take as long
// as the step. Each poll takes a core, so at most half of the cores poll.
int64_t MostStepsPolled() {
  static const int64_t most = std::min(4, port::MaxParallelism() / 2);
  return most;
}
// Longer steps gain little from polling.
constexpr std::chrono::microseconds kLongestPoll(2000);
// Launches that are not polled after a launch that took longer.
constexpr int kLaunchesUnpolled = 64;

absl::Status NotMade() {
  return absl::FailedPreconditionError(
      "a branch leaves out one of its results");
}

}  // namespace

// Rendezvous and call frame of a step being recorded: inputs are ready at once,
// and the places of outputs are kept.
class RecordedStep::Ends : public RendezvousInterface,
                           public CallFrameInterface {
 public:
  explicit Ends(RecordedStep* recorded) : recorded_(recorded) {}

  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value,
                    bool is_dead) override {
    if (const auto draw = StepInterface::IndexOf(key, step().draw_shapes)) {
      TensorShape shape;
      TF_RETURN_IF_ERROR(tensor::MakeShape(value, &shape));
      recorded_->copies_.drawn()[*draw] = shape.num_elements();
      return absl::OkStatus();
    }
    const auto i = StepInterface::IndexOf(key, step().sends);
    const auto check = StepInterface::IndexOf(key, step().checks);
    if (!i.has_value() && !check.has_value()) {
      // Each call sends its own arguments.
      if (step().IsPassed(key)) return absl::OkStatus();
      return absl::InternalError(
          absl::StrCat("a recorded step sends ", std::string(key.FullKey())));
    }
    if (is_dead) return NotMade();
    return Made(i.has_value() ? *i : step().outputs() + *check, value,
                args.alloc_attrs.on_host());
  }
  void RecvAsync(const ParsedKey& key, const Args& args,
                 DoneCallback done) override {
    RecordedCopies& copies = recorded_->copies_;
    absl::Status status;
    Tensor value;
    if (const auto i = StepInterface::IndexOf(key, step().receives)) {
      // Each launch copies the inputs in, so an op may write into them.
      value = step().are_summands[*i] ? StandInOf(copies.inputs()[*i])
                                      : copies.inputs()[*i];
    } else if (key.FullKey() == step().mask_key) {
      value = copies.mask();
    } else if (const auto i = StepInterface::IndexOf(key, step().draw_states)) {
      value = copies.draw_state(*i);
    } else {
      status = absl::InternalError(absl::StrCat("a recorded step receives ",
                                                std::string(key.FullKey())));
    }
    done(status, Args(), args, value, /*is_dead=*/false);
  }
  void StartAbort(const absl::Status&) override {}

  size_t num_args() const override { return step().argument_at.size(); }
  size_t num_retvals() const override { return step().result_at.size(); }
  absl::Status GetArg(int index, const Tensor** value) override {
    *value = &recorded_->copies_
                  .inputs()[step().receives.size() + step().argument_at[index]];
    return absl::OkStatus();
  }
  absl::Status SetRetval(int index, const Tensor& value) override {
    const int i = step().result_at[index];
    const bool on_host =
        step().results[i].on_host && !step().results[i].on_device;
    // On an emulated GPU, kernels make host outputs in the device's memory.
    // What a piece gives the host is the same in each replay.
    const bool is_copied = step().is_piece && on_host &&
                           recorded_->is_emulated() &&
                           recorded_->recording_->Has(value.data(), 1);
    return Made(step().sends.size() + i,
                is_copied ? tensor::DeepCopy(value) : value, on_host);
  }

 private:
  const StepInterface& step() const { return recorded_->step_; }

  absl::Status Made(size_t i, Tensor value, bool on_host) {
    ResultPlace& place = recorded_->copies_.places()[i];
    // An int32 argument, of which TensorFlow says that it is on the host.
    on_host = on_host && !recorded_->recording_->Has(value.data(), 1);
    if (recorded_->changed_ != nullptr && !on_host) {
      TF_ASSIGN_OR_RETURN(value, recorded_->changed_->Apart(value));
    }
    if (!recorded_->complete_) {
      place = {value.data(), value.dtype(), value.shape(), on_host, value};
      return absl::OkStatus();
    }
    if (value.data() != place.address &&
        recorded_->recording_->Has(place.address, 1)) {
      return absl::InternalError("a recorded step's result has moved");
    }
    // Keep the output: later ops must not reuse its memory, as they did not
    // when the step was recorded.
    recorded_->made_.push_back(value);
    return absl::OkStatus();
  }

  RecordedStep* const recorded_;
};

std::shared_ptr<RecordedStep> RecordedStep::Make(
    const StepInterface& step, GroupLeader* leader, StreamGroup* group,
    const std::vector<GuardedPhiloxRandom*>& generators) {
  return std::shared_ptr<RecordedStep>(
      new RecordedStep(step, leader, group, generators),
      [](RecordedStep* recorded) {
        if (!IsKept(Rule::kEndsAfterItsStream)) return delete recorded;
        recorded->group_->WhenCompleted([recorded] { delete recorded; });
      });
}

RecordedStep::RecordedStep(const StepInterface& step, GroupLeader* leader,
                           StreamGroup* group,
                           const std::vector<GuardedPhiloxRandom*>& generators)
    : step_(step),
      leader_(leader),
      group_(group),
      has_memory_(group->reclaimable()),
      has_homes_(leader->gpu_groups()->leader()->reclaimable()),
      recording_(leader->recorder(group->index())->NewRecording()),
      last_launch_(group->NewEvent()),
      ends_(std::make_unique<Ends>(this)),
      copies_(step, group, leader->group_device(group->index()), generators),
      variables_(step, leader->gpu_groups()) {}

RecordedStep::~RecordedStep() = default;

absl::Status RecordedStep::Record(const CapturedCall& call,
                                  Executor* executor) {
  const RuleLock one_at_a_time(Rule::kOneRecordsAtATime, group_->record_mu());
  Allocator* leaders =
      leader_->group_device(0)->GetAllocator(AllocatorAttributes());
  {
    const UsesVariables reads(leader_->gpu_groups(), call, /*changes=*/false);
    variables_.FindHomes(call, leaders);
  }
  TF_RETURN_IF_ERROR(variables_.CheckDistinct(call));
  if (!variables_.PutBack(call).ok()) return VariableWasChanged();
  const UsesVariables uses(leader_->gpu_groups(), call,
                           step_.changes_variables);
  if (const absl::Status own = variables_.CheckChanged(call); !own.ok()) {
    return absl::IsAborted(own) ? VariableWasChanged() : own;
  }
  std::vector<Tensor> held;
  TF_RETURN_IF_ERROR(variables_.Hold(call, &held));
  TF_RETURN_IF_ERROR(variables_.NotePlaces(call, held));
  // Recording runs the step, so the inputs must be real values.
  Device* device = leader_->group_device(group_->index());
  TF_ASSIGN_OR_RETURN(
      const StepInputs inputs,
      call.PaddedInputs(device->GetAllocator(AllocatorAttributes()),
                        device->GetAllocator(PinnedMemory())));
  Tensor staged;
  if (!copies_.Allocate(inputs, recording_.get()) ||
      !copies_.Stage(inputs, &staged)) {
    return absl::ResourceExhaustedError("there is no memory for its inputs");
  }
  absl::Status status;
  {
    absl::MutexLock lock(group_->launch_mu());
    status = copies_.CopyIn(inputs, staged);
  }
  // Keep the buffers until the stream has finished.
  group_->WhenCompleted(
      [staged = std::move(staged), arguments = inputs.arguments] {});
  TF_RETURN_IF_ERROR(status);
  SetVariables(call);
  status = RecordOps(call, held, executor);
  // Apart from homes, a recording must not hold references to variables: others
  // could then not change them in place.
  DropVariables();
  TF_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < copies_.places().size(); ++i) {
    const ResultPlace& output = copies_.places()[i];
    if (output.type == DT_INVALID) return NotMade();
    if (step_.is_piece && step_.GoesToHost(i) && !output.on_host) {
      return absl::FailedPreconditionError(
          "a piece gives the host a value of the GPU");
    }
  }
  std::vector<Tensor> after;
  TF_RETURN_IF_ERROR(variables_.Hold(call, &after));
  const absl::StatusOr<bool> still = variables_.AreInPlace(after);
  if (!still.ok() || !*still) return VariableWasChanged();
  for (ResultPlace& output : copies_.places()) {
    for (const Tensor& variable : held) {
      if (output.tensor.SharesBufferWith(variable)) output.tensor = Tensor();
    }
  }
  if (call.padding() != nullptr) {
    if (!variables_.Fit(*call.padding())) return VariableWasChanged();
    TF_RETURN_IF_ERROR(copies_.CheckPadding(*call.padding()));
  }
  bytes_ = recording_->bytes();
  complete_ = true;
  return absl::OkStatus();
}

absl::Status RecordedStep::RecordOps(const CapturedCall& call,
                                     const std::vector<Tensor>& variables,
                                     Executor* executor) {
  SavedVariables saved(group_, leader_->group_device(group_->index())
                                   ->GetAllocator(AllocatorAttributes()));
  absl::Status status;
  for (size_t i = 0; i < variables.size() && status.ok(); ++i) {
    if (step_.variables[i].changed) status = saved.Save(variables[i]);
  }
  if (status.ok()) {
    // An emulated GPU's recording keeps this function.
    status = recording_->Record([this, executor] { return RunOps(executor); });
  }
  status.Update(saved.Restore());
  return status;
}

absl::Status RecordedStep::RunOps(Executor* executor) {
  if (!complete_) copies_.places().assign(step_.made(), {});
  ChangedVariables changed(leader_->recorder(group_->index())->device());
  for (Var* variable : to_change_) changed.Take(variable);
  changed_ = &changed;
  CancellationManager never;
  Executor::Args args;
  args.rendezvous = ends_.get();
  args.call_frame = ends_.get();
  args.cancellation_manager = &never;
  // What comes after a receive runs once the receive has returned, and with it
  // its reference to the value: an AddN looks for values of its own.
  std::deque<std::function<void()>> closures;
  args.runner = [&closures](std::function<void()> closure) {
    closures.push_back(std::move(closure));
  };
  args.run_all_kernels_inline = true;
  absl::Notification ended;
  absl::Status result;
  executor->RunAsync(args, [&](const absl::Status& s) {
    result = s;
    ended.Notify();
  });
  while (!closures.empty()) {
    const std::function<void()> closure = std::move(closures.front());
    closures.pop_front();
    closure();
  }
  ended.WaitForNotification();
  made_.clear();
  changed_ = nullptr;
  if (result.ok()) result = changed.PutBack();
  return result;
}

absl::Status RecordedStep::Launch(const std::shared_ptr<CapturedCall>& call,
                                  Launched launched,
                                  std::function<void()>* end) {
  if (call->padding() != nullptr) {
    if (!variables_.Fit(*call->padding())) {
      return absl::AbortedError("a variable has another shape now");
    }
    const absl::Status fits = copies_.CheckPadding(*call->padding());
    if (!fits.ok()) return absl::UnavailableError(fits.message());
  }
  RecordedCopies::OfCall copies;
  if (!copies_.Stage(call->inputs(), &copies.staged) ||
      !copies_.NewOutputs(*call, &copies.outputs)) {
    return absl::ResourceExhaustedError("there is no memory for its copies");
  }
  // Variables have seldom moved, and a check costs as much as trying to launch.
  for (const bool again : {false, true}) {
    if (again) TF_RETURN_IF_ERROR(variables_.PutBack(*call));
    TF_ASSIGN_OR_RETURN(const bool is_launched,
                        LaunchInPlace(call, &copies, &launched, end));
    if (is_launched) return absl::OkStatus();
  }
  return VariableWasChanged();
}

absl::StatusOr<bool> RecordedStep::LaunchInPlace(
    const std::shared_ptr<CapturedCall>& call, RecordedCopies::OfCall* copies,
    Launched* launched, std::function<void()>* end) {
  // Taken before launch_mu, which must not be held while waiting for threads
  // that change a variable.
  const UsesVariables uses(leader_->gpu_groups(), *call,
                           step_.changes_variables);
  const RuleLock lock(Rule::kOneLaunchAtATime, group_->launch_mu());
  // Hold the values until the step is enqueued. After that streams keep the
  // order, and a variable can be changed in place again.
  std::vector<Tensor> held;
  TF_RETURN_IF_ERROR(variables_.Hold(*call, &held));
  TF_ASSIGN_OR_RETURN(const bool are_in_place, variables_.AreInPlace(held));
  if (!are_in_place) return false;
  if (step_.changes_variables) {
    held.clear();
    TF_RETURN_IF_ERROR(variables_.CheckChanged(*call));
    TF_RETURN_IF_ERROR(variables_.Hold(*call, &held));
  }
  const std::optional<int64_t> version =
      leader_->gpu_groups()->StateVersion(call->state());
  // Only now, as a step that is not launched draws its numbers itself.
  copies_.Draw(&copies->staged);
  absl::Status status = copies_.CopyIn(call->inputs(), copies->staged);
  const bool with_branches =
      recording_->has_branches() &&
      leader_->gpu_groups()->recent_most_steps() <= kMostStepsWithBranches;
  const int64_t began = Trace::Begin();
  if (status.ok()) {
    SetVariables(*call);
    status = recording_->Launch(with_branches);
    DropVariables();
    if (!status.ok() && step_.changes_variables) {
      // Some variables may have changed, so the step must not run again. The
      // error is the op's own, as in a step that is not captured.
      group_->WhenCompleted(
          Finish(call, status, std::nullopt, copies, launched),
          /*host_waits=*/true);
      return true;
    }
  }
  if (!status.ok()) {
    // Keep the arguments: the call releases them when it runs without capture.
    group_->WhenCompleted([copies = std::move(*copies), call,
                           arguments = call->inputs().arguments] {});
    return absl::AbortedError(status.message());
  }
  if (began != 0) {
    Trace::Get()->Record({TraceKind::kReplay, group_->gpu(), group_->index(),
                          began, 0, recording_->kernels(), "",
                          "captured step"});
  }
  NoteUses(*call, held, copies->outputs);
  status = copies_.CopyOut(*call, copies->outputs);
  group_->counters()->NoteReplay(step_.is_piece, with_branches);
  launches_.fetch_add(1, std::memory_order_relaxed);
  const bool goes_on =
      step_.is_piece || (step_.changes_variables && !copies_.CopiesToHost() &&
                         !call->ends_when_completed());
  if (goes_on && status.ok()) {
    // As in stock TensorFlow, the step ends once enqueued: users of its results
    // come later on the streams.
    // The op that a piece is holds its arguments (op_holds.h). Padded copies of
    // them are the group's own memory, which its stream may reuse.
    if (IsKept(Rule::kStagedUntilCompleted) &&
        !(step_.is_piece && copies->staged.TotalBytes() == 0)) {
      group_->WhenCompleted([staged = std::move(copies->staged),
                             arguments = step_.is_piece
                                             ? std::vector<Tensor>()
                                             : call->inputs().arguments] {});
    }
    *end = [call, outputs = std::move(copies->outputs),
            launched = std::move(*launched),
            version =
                step_.changes_variables ? std::nullopt : version]() mutable {
      launched(absl::OkStatus(), std::move(outputs), version);
    };
    return true;
  }
  // WatchEnd records the event now, so this step need not wait for later
  // launches.
  if (status.ok() && DecideToPoll()) {
    *end = [this, finish = Finish(call, status, version, copies, launched),
            poll =
                group_->WatchEnd(last_launch_.get(), kLongestPoll)]() mutable {
      if (poll()) {
        group_->counters()->NotePolled();
        return finish();
      }
      unpolled_.store(kLaunchesUnpolled, std::memory_order_relaxed);
      group_->WhenCompleted(std::move(finish), /*host_waits=*/true);
    };
    return true;
  }
  group_->WhenCompleted(Finish(call, status, version, copies, launched),
                        /*host_waits=*/true);
  return true;
}

bool RecordedStep::DecideToPoll() {
  if (leader_->gpu_groups()->recent_most_steps() > MostStepsPolled()) {
    return false;
  }
  return unpolled_.load(std::memory_order_relaxed) <= 0 ||
         unpolled_.fetch_sub(1, std::memory_order_relaxed) <= 0;
}

std::function<void()> RecordedStep::Finish(
    const std::shared_ptr<CapturedCall>& call, const absl::Status& status,
    std::optional<int64_t> version, RecordedCopies::OfCall* copies,
    Launched* launched) {
  return [call, status, version, copies = std::move(*copies),
          launched = std::move(*launched)]() mutable {
    copies.staged = Tensor();
    launched(status, std::move(copies.outputs), version);
  };
}

void RecordedStep::SetVariables(const CapturedCall& call) {
  const std::vector<Tensor>& arguments = call.inputs().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!step_.arguments[i].is_variable) continue;
    copies_.inputs()[step_.receives.size() + i] = arguments[i];
  }
  for (size_t i = 0; i < step_.variables.size(); ++i) {
    if (!step_.variables[i].changed) continue;
    to_change_.push_back(call.variables()[i].get());
  }
}

void RecordedStep::DropVariables() {
  for (size_t i = 0; i < step_.arguments.size(); ++i) {
    if (!step_.arguments[i].is_variable) continue;
    copies_.inputs()[step_.receives.size() + i] = Tensor();
  }
  to_change_.clear();
}

void RecordedStep::NoteUses(const CapturedCall& call,
                            const std::vector<Tensor>& variables,
                            const std::vector<Tensor>& outputs) const {
  Sanitizer* sanitizer = group_->sanitizer();
  if (sanitizer == nullptr) return;
  std::vector<Access> uses;
  const std::vector<Tensor>& arguments = call.inputs().arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Tensor& it = arguments[i];
    if (step_.arguments[i].is_variable || step_.arguments[i].on_host ||
        !IsGroupMemory(it)) {
      continue;
    }
    uses.push_back({it.data(), it.TotalBytes(), false, "argument"});
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    const Tensor& it = variables[i];
    if (!IsGroupMemory(it)) continue;
    const bool is_changed = step_.variables[i].changed;
    // All earlier users of the memory, except gathers of rows, have released
    // it.
    if (is_changed) {
      sanitizer->Renew(group_->index(), it.data(), it.TotalBytes());
    }
    uses.push_back({it.data(), it.TotalBytes(), is_changed, "variable"});
  }
  for (size_t i = step_.sends.size(); i < outputs.size(); ++i) {
    if (step_.GoesToHost(i)) continue;
    const Tensor& it = outputs[i];
    uses.push_back({it.data(), it.TotalBytes(), true, "result"});
  }
  sanitizer->Launch(group_->index(), "captured step", uses);
}

}  // namespace tensorflow::multistream
