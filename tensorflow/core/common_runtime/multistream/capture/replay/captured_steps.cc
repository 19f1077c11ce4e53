// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_steps.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/framework/tensor_util.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

// Copies of a step's outputs, valid on the host once `group`'s stream has
// completed.
struct HostCopies {
  absl::Status Add(StreamGroup* group, Allocator* pinned, const Tensor& made,
                   bool on_host) {
    if (on_host) {
      copies.push_back(made);
      return absl::OkStatus();
    }
    const Tensor& copy =
        copies.emplace_back(pinned, made.dtype(), made.shape());
    if (!copy.IsInitialized()) {
      return absl::ResourceExhaustedError(
          "no pinned memory to verify a replay with");
    }
    return group->CopyToHost(made.data(), copy.data(), made.TotalBytes());
  }

  std::vector<Tensor> copies;
};

}  // namespace

CapturedSteps::CapturedSteps(GroupLeader* leader, const Options& options,
                             std::string required, std::string name,
                             const Capturable& graph,
                             std::unique_ptr<Paddings> paddings,
                             std::vector<std::unique_ptr<Executor>> recorders,
                             MakeRecorders make_recorders,
                             std::vector<GuardedPhiloxRandom*> generators)
    : leader_(leader),
      name_(std::move(name)),
      replayed_(CaptureReport::CounterOf(name_, CaptureReport::kReplayed)),
      required_(std::move(required)),
      most_bytes_(int64_t{options.capture_mb} << 20),
      verify_every_(options.capture_verify),
      step_(graph),
      paddings_(std::move(paddings)),
      generators_(std::move(generators)),
      recorders_(std::move(recorders)),
      make_recorders_(std::move(make_recorders)),
      records_(recorders_.size()) {
  for (size_t i = 0; i < recorders_.size(); ++i) {
    leader_->gpu_groups()->group(i)->reclaimable()->Add(this);
  }
}

CapturedSteps::~CapturedSteps() {
  for (size_t i = 0; i < recorders_.size(); ++i) {
    leader_->gpu_groups()->group(i)->reclaimable()->Remove(this);
  }
  absl::MutexLock lock(&mu_);
  for (auto& [key, shape] : shapes_) {
    if (shape.recorded == nullptr) continue;
    shape.recorded->group()->counters()->NoteRecordings(
        -1, -shape.recorded->bytes());
  }
}

void CapturedSteps::Run(const Executor::Args& args, StreamGroup* group,
                        CapturedCall::RunAsAlways run_as_always,
                        Executor::DoneCallback done) {
  auto call = std::make_shared<CapturedCall>(
      step_, args, group, std::move(run_as_always), std::move(done));
  const absl::Status status =
      call->SendArguments(leader_->group_device(group->index()));
  if (!status.ok()) return Finish(*call, {}, status);
  CapturedCall::Receive(call, [this, call] { Received(call); });
}

void CapturedSteps::Received(const std::shared_ptr<CapturedCall>& call) {
  Device* device = leader_->group_device(0);
  absl::Status why;  // why the step is not replayed
  std::string not_padded;
  if (call->is_traced()) {
    why = absl::UnavailableError("it is traced");
  } else if (!call->Collect(device->resource_manager(), device->name())) {
    why = absl::UnavailableError(
        "something that it takes is missing, or in an unknown place");
  } else {
    not_padded = Pad(call.get());
    do {
      absl::StatusOr<std::shared_ptr<RecordedStep>> recorded = Find(*call);
      if (!recorded.ok()) {
        if (!absl::IsUnavailable(recorded.status())) {
          return Finish(*call, {}, recorded.status());
        }
        why = recorded.status();
        break;
      }
      why = Launch(call, *std::move(recorded));
      if (why.ok()) return;
      // Aborted: this recording is gone, so record again now, if back-off
      // allows. A step that runs without capture shares the variables' memory.
      // A step that changes a variable meanwhile must move it, away from the
      // recordings of other groups.
    } while (absl::IsAborted(why));
  }
  CaptureReport::CounterOf(
      name_, not_padded.empty() ? why.message()
                                : absl::StrCat(why.message(), "; ", not_padded))
      ->fetch_add(1, std::memory_order_relaxed);
  CapturedCall::RunAlways(call);
}

std::string CapturedSteps::Pad(CapturedCall* call) {
  if (paddings_ == nullptr) return "";
  std::shared_ptr<const Padding> padding =
      paddings_->Of(call->shapes(), call->ShapesOfInputs());
  if (padding == nullptr) return "";
  const std::string why_not = padding->why_not;
  if (padding->rows == 0 && padding->length == 0) return why_not;
  absl::Status status;
  if (padding->length > 0) status = MakeMasked(padding->masks);
  if (status.ok()) {
    status = call->Pad(std::move(padding),
                       leader_->group_device(call->group()->index())
                           ->GetAllocator(AllocatorAttributes()));
  }
  return status.ok() ? why_not : std::string(status.message());
}

absl::Status CapturedSteps::MakeMasked(
    const std::shared_ptr<const std::vector<NodeMask>>& masks) {
  absl::MutexLock lock(&masked_mu_);
  if (!masked_status_.ok()) return masked_status_;
  if (masked_.empty()) {
    const auto graph =
        paddings_->Masked(*masks, leader_->group_device(0)->name());
    masked_status_ = graph.status();
    if (graph.ok()) masked_status_ = make_recorders_(**graph, &masked_);
    if (!masked_status_.ok()) {
      LOG(ERROR) << "Multi-stream: a graph cannot be padded to a length: "
                 << masked_status_;
      masked_.clear();
      return masked_status_;
    }
    masks_ = masks;
  }
  if (masks == masks_ || *masks == *masks_) return absl::OkStatus();
  return absl::UnavailableError(
      "its length is not padded: it needs other masks than before");
}

absl::StatusOr<std::shared_ptr<RecordedStep>> CapturedSteps::Find(
    const CapturedCall& call) {
  const int group = call.group()->index();
  {
    absl::MutexLock lock(&mu_);
    if (shapes_.size() >= kMostShapes &&
        !shapes_.contains({group, call.shapes()})) {
      absl::erase_if(shapes_, [](const auto& entry) {
        return entry.second.recorded == nullptr;
      });
    }
    Shape& shape = shapes_[{group, call.shapes()}];
    shape.last_use = ++uses_;
    if (shape.recorded != nullptr) return shape.recorded;
    if (++shape.runs <= shape.next_try) {
      return absl::UnavailableError(
          shape.failure.empty()
              ? "it is one of the first of its shapes on its stream group"
              : shape.failure);
    }
    // One recording at a time on a group; other steps do not wait for its end.
    if (records_[group]) {
      return absl::UnavailableError("another step was just being recorded");
    }
    records_[group] = true;
  }
  absl::StatusOr<std::shared_ptr<RecordedStep>> recorded = Record(call);
  const absl::Status status =
      recorded.ok() ? Keep(call, *recorded) : recorded.status();
  absl::MutexLock lock(&mu_);
  records_[group] = false;
  if (status.ok()) return recorded;
  Shape& shape = shapes_[{group, call.shapes()}];
  shape.failure = std::string(status.message());
  if (absl::IsUnavailable(status)) {
    // Another step must first gather from, change or release a variable.
    shape.next_try = shape.runs;
    return status;
  }
  // Retry the first failure at once: choosing kernel algorithms may have made
  // the first try fail.
  shape.next_try = NextTry(shape, /*at_once=*/1);
  LOG_FIRST_N(WARNING, 10)
      << "Multi-stream: a step was not captured and runs as always: "
      << status.message();
  const bool never =
      absl::IsAborted(status) || absl::IsFailedPrecondition(status);
  if (!required_.empty() && never && shape.failures > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        required_, ", and a step cannot be captured: ", status.message()));
  }
  return absl::UnavailableError(status.message());
}

absl::StatusOr<std::shared_ptr<RecordedStep>> CapturedSteps::Record(
    const CapturedCall& call) {
  std::shared_ptr<RecordedStep> recorded =
      RecordedStep::Make(step_, leader_, call.group(), generators_);
  const absl::Time start = absl::Now();
  const int group = call.group()->index();
  Executor* executor = recorders_[group].get();
  if (call.padding() != nullptr && call.padding()->length > 0) {
    absl::MutexLock lock(&masked_mu_);
    executor = masked_[group].get();
  }
  const absl::Status status = recorded->Record(call, executor);
  call.group()->counters()->NoteNewRecording(
      absl::ToInt64Nanoseconds(absl::Now() - start),
      recorded->workspace_bytes());
  if (!status.ok()) return status;
  if (KernelSettings::Now() != call.settings()) {
    return absl::UnavailableError(
        "a setting of its kernels was changed while it was recorded");
  }
  return recorded;
}

int64_t CapturedSteps::NextTry(Shape& shape, int at_once) {
  const int failures = shape.failures++;
  if (failures < at_once) return shape.runs;
  return shape.runs +
         (int64_t{kRunsBeforeRetry} << std::min(failures - at_once, 20));
}

std::shared_ptr<RecordedStep> CapturedSteps::Dropped(Shape* shape, int at_once,
                                                     absl::string_view why) {
  bytes_ -= shape->recorded->bytes();
  shape->recorded->group()->counters()->NoteRecordings(
      -1, -shape->recorded->bytes());
  // Back off: a recording that was dropped before it paid off is not recorded
  // again at each use.
  const bool has_paid = shape->recorded->launches() >= kLaunchesThatPay;
  if (has_paid) shape->failures = 0;
  shape->next_try = NextTry(*shape, has_paid ? 1 : at_once);
  shape->failure = std::string(why);
  return std::exchange(shape->recorded, nullptr);
}

void CapturedSteps::GiveBack(StreamGroup* group) {
  std::vector<std::shared_ptr<RecordedStep>> dropped;  // ended without the lock
  {
    absl::MutexLock lock(&mu_);
    for (auto& [key, shape] : shapes_) {
      if (key.first != group->index() || shape.recorded == nullptr) continue;
      dropped.push_back(Dropped(&shape, /*at_once=*/0,
                                "its recording was dropped, as its stream "
                                "group ran out of memory"));
      // Even if the recording has paid off: memory may stay short for long.
      shape.next_try =
          std::max<int64_t>(shape.next_try, shape.runs + kRunsAfterGivingBack);
    }
  }
}

absl::Status CapturedSteps::Keep(const CapturedCall& call,
                                 std::shared_ptr<RecordedStep> recorded) {
  std::vector<std::shared_ptr<RecordedStep>> dropped;  // ended without the lock
  absl::MutexLock lock(&mu_);
  if (recorded->bytes() > most_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a recording takes ", recorded->bytes(), " bytes, and ",
                     kCaptureMegabytesVariable, " allows ", most_bytes_));
  }
  for (auto& [key, shape] : shapes_) {
    if (shape.recorded == nullptr || !shape.recorded->IsOrphaned()) continue;
    dropped.push_back(
        Dropped(&shape, /*at_once=*/0, "its variable is no more"));
  }
  while (bytes_ + recorded->bytes() > most_bytes_) {
    Shape* oldest = nullptr;
    for (auto& [key, shape] : shapes_) {
      if (shape.recorded == nullptr) continue;
      if (oldest == nullptr || shape.last_use < oldest->last_use) {
        oldest = &shape;
      }
    }
    dropped.push_back(Dropped(
        oldest, /*at_once=*/0,
        absl::StrCat("its recording was dropped for others, as ",
                     kCaptureMegabytesVariable, " is ", most_bytes_ >> 20)));
  }
  bytes_ += recorded->bytes();
  recorded->group()->counters()->NoteRecordings(1, recorded->bytes());
  shapes_[{call.group()->index(), call.shapes()}].recorded =
      std::move(recorded);
  return absl::OkStatus();
}

absl::Status CapturedSteps::Launch(const std::shared_ptr<CapturedCall>& call,
                                   std::shared_ptr<RecordedStep> recorded) {
  // What is padded to a length may have other last bits than the step.
  const bool is_masked =
      call->padding() != nullptr && call->padding()->length > 0;
  // What runs again draws other numbers.
  const bool verify =
      verify_every_ > 0 && !is_masked && step_.draw_shapes.empty() &&
      replays_.fetch_add(1, std::memory_order_relaxed) % verify_every_ == 0;
  std::function<void()> end;
  const absl::Status status = recorded->Launch(
      call,
      [this, call, verify, recorded](const absl::Status& completed,
                                     std::vector<Tensor> outputs,
                                     std::optional<int64_t> version) mutable {
        // The session and this object may be deleted as soon as the step ends.
        replayed_->fetch_add(1, std::memory_order_relaxed);
        recorded = nullptr;
        if (completed.ok() && !step_.AreChecked(outputs)) {
          // An Assert fails: without capture the step has its error.
          outputs.clear();
          return CapturedCall::RunAlways(call);
        }
        if (verify && version.has_value() && completed.ok()) {
          Verify(call, *version, std::move(outputs));
        } else {
          Finish(*call, std::move(outputs), completed);
        }
      },
      &end);
  if (absl::IsAborted(status)) Drop(*call, recorded, status);
  // `end` may end the step, after which the session and this object may be
  // deleted.
  recorded = nullptr;
  if (end != nullptr) end();
  return status;
}

void CapturedSteps::Drop(const CapturedCall& call,
                         const std::shared_ptr<RecordedStep>& recorded,
                         const absl::Status& why) {
  VLOG(1) << "A captured step could not be launched, and runs as always: "
          << why.message();
  absl::MutexLock lock(&mu_);
  Shape& shape = shapes_[{call.group()->index(), call.shapes()}];
  // The caller's reference defers the deletion until the lock is released.
  if (shape.recorded == recorded) Dropped(&shape, /*at_once=*/2, why.message());
}

void CapturedSteps::Finish(CapturedCall& call, std::vector<Tensor> outputs,
                           absl::Status status) {
  if (status.ok()) status = call.Give(outputs);
  outputs.clear();
  call.DropArguments();
  if (!step_.is_piece) {
    leader_->gpu_groups()->EndStep(call.group(), status.ok());
  }
  call.done()(status);
}

std::optional<int64_t> CapturedSteps::StateVersion(
    const CapturedCall& call) const {
  return leader_->gpu_groups()->StateVersion(call.state());
}

void CapturedSteps::Verify(const std::shared_ptr<CapturedCall>& call,
                           int64_t version, std::vector<Tensor> outputs) {
  Device* device = leader_->group_device(call->group()->index());
  absl::StatusOr<StepInputs> inputs =
      call->PaddedInputs(device->GetAllocator(AllocatorAttributes()),
                         device->GetAllocator(PinnedMemory()));
  // Without memory for the inputs there is no verification.
  if (!inputs.ok()) return Finish(*call, std::move(outputs), absl::OkStatus());
  if (!step_.is_piece) leader_->gpu_groups()->StartStepOn(call->group());
  CapturedCall::RunAndKeep(
      call, *std::move(inputs),
      [this, call, version, outputs = std::move(outputs)](
          const absl::Status& status, std::vector<StepOutput> kept) mutable {
        StreamGroup* group = call->group();
        if (status.ok() && (StateVersion(*call) != version ||
                            KernelSettings::Now() != call->settings())) {
          // The two runs have read different values, or used different kernels.
          kept.clear();
          return Finish(*call, std::move(outputs), absl::OkStatus());
        }
        Allocator* pinned =
            leader_->group_device(group->index())->GetAllocator(PinnedMemory());
        HostCopies replayed, expected;
        absl::Status copied = status;
        for (size_t i = 0; i < kept.size() && copied.ok(); ++i) {
          const bool on_host = kept[i].on_host;
          copied.Update(replayed.Add(group, pinned, outputs[i],
                                     on_host || i < step_.sends.size()));
          copied.Update(expected.Add(group, pinned, kept[i].tensor, on_host));
        }
        group->WhenCompleted(
            [this, call, outputs, copied, kept = std::move(kept),
             replayed = std::move(replayed),
             expected = std::move(expected)]() mutable {
              if (copied.ok() && TakeTestFault(TestFault::kSpoilReplay)) {
                // Spoil a deep copy, as the caller may share a result on the
                // host.
                Tensor& spoiled = replayed.copies[0];
                spoiled = tensor::DeepCopy(spoiled);
                *static_cast<char*>(spoiled.data()) ^= 1;
              }
              if (copied.ok()) call->group()->counters()->NoteVerified();
              absl::Status same = copied;
              if (copied.ok()) {
                same = Compare(*call, replayed.copies, expected.copies);
              } else if (absl::IsResourceExhausted(copied)) {
                same = absl::OkStatus();  // there is nothing to compare it with
              }
              kept.clear();
              Finish(*call,
                     same.ok() ? std::move(outputs) : std::vector<Tensor>(),
                     same);
            },
            /*host_waits=*/true);
      });
}

absl::Status CapturedSteps::Compare(const CapturedCall& call,
                                    const std::vector<Tensor>& replayed,
                                    const std::vector<Tensor>& expected) const {
  const Padding* padding = call.padding();
  for (size_t i = 0; i < expected.size(); ++i) {
    const TensorShape& shape =
        padding == nullptr ? replayed[i].shape() : padding->results[i].padded;
    if (expected[i].shape() == shape &&
        std::memcmp(replayed[i].data(), expected[i].data(),
                    replayed[i].TotalBytes()) == 0) {
      continue;
    }
    const size_t sends = step_.sends.size();
    const absl::Status wrong = absl::InternalError(
        absl::StrCat(kCaptureVerifyVariable,
                     ": a captured step gave another result than the step: ",
                     i < sends ? std::string(step_.sends[i].parsed.edge_name)
                               : absl::StrCat("of its call, number ",
                                              step_.results[i - sends].index)));
    LOG(ERROR) << wrong.message();
    return wrong;
  }
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
