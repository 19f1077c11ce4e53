/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/core/common_runtime/multistream/executor/captured_steps.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tensorflow/core/common_runtime/multistream/util/test_faults.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {

namespace {

// Of memory that the GPU copies from and to.
AllocatorAttributes Pinned() {
  AllocatorAttributes pinned;
  pinned.set_on_host(true);
  pinned.set_gpu_compatible(true);
  return pinned;
}

}  // namespace

// A step.
struct CapturedSteps::Call {
  // A value that it has received from the host.
  struct Received {
    absl::Status status;
    Rendezvous::Args send_args;
    Tensor value;
    bool is_dead = false;
  };

  Executor::Args args;
  StreamGroup* group;
  RunAsAlways run_as_always;
  Executor::DoneCallback done;
  std::vector<Received> received;
  std::string shapes;  // of the received values
  std::atomic<int> pending{0};
};

struct CapturedSteps::Recorded {
  ~Recorded() {
    // Before the memory that their tensors have.
    inputs.clear();
    outputs.clear();
  }

  std::unique_ptr<Recording> recording;
  std::vector<Tensor> inputs;
  std::vector<Output> outputs;
  std::vector<Tensor> sent;  // by a launch that runs the ops again
  std::unique_ptr<FixedRendezvous> rendezvous;
  StreamGroup* group = nullptr;
  int64_t bytes = 0;
  bool complete = false;  // nothing changes any more
};

// Gives a step what was received for it before.
class CapturedSteps::EarlierReceived : public RendezvousInterface {
 public:
  EarlierReceived(std::shared_ptr<Call> call, const std::vector<Key>& keys)
      : call_(std::move(call)), keys_(keys) {}

  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value,
                    bool is_dead) override {
    return call_->args.rendezvous->Send(key, args, value, is_dead);
  }
  void RecvAsync(const ParsedKey& key, const Args& args,
                 DoneCallback done) override {
    const std::optional<size_t> i = IndexOf(key, keys_);
    if (!i.has_value()) {
      call_->args.rendezvous->RecvAsync(key, args, std::move(done));
      return;
    }
    const Call::Received& it = call_->received[*i];
    done(it.status, it.send_args, args, it.value, it.is_dead);
  }
  void StartAbort(const absl::Status& status) override {
    call_->args.rendezvous->StartAbort(status);
  }

 private:
  const std::shared_ptr<Call> call_;
  const std::vector<Key>& keys_;
};

// The same, and keeps what the step sends.
class CapturedSteps::KeptResults : public EarlierReceived {
 public:
  KeptResults(std::shared_ptr<Call> call, const std::vector<Key>& receives,
              const std::vector<Key>& sends)
      : EarlierReceived(std::move(call), receives),
        outputs(sends.size()),
        sends_(sends) {}

  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value,
                    bool is_dead) override {
    const std::optional<size_t> i = IndexOf(key, sends_);
    if (!i.has_value()) {
      return absl::InternalError(
          absl::StrCat("a step sends ", std::string(key.FullKey())));
    }
    outputs[*i] = {value, args.alloc_attrs.on_host()};
    return absl::OkStatus();
  }

  std::vector<Output> outputs;

 private:
  const std::vector<Key>& sends_;
};

// Gives a step that is recorded its inputs at once, and keeps its results.
class CapturedSteps::FixedRendezvous : public RendezvousInterface {
 public:
  FixedRendezvous(Recorded* recorded, const std::vector<Key>& receives,
                  const std::vector<Key>& sends)
      : recorded_(recorded), receives_(receives), sends_(sends) {}

  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value,
                    bool is_dead) override {
    const std::optional<size_t> i = IndexOf(key, sends_);
    if (!i.has_value()) {
      return absl::InternalError(
          absl::StrCat("a recorded step sends ", std::string(key.FullKey())));
    }
    Output& output = recorded_->outputs[*i];
    if (!recorded_->complete) {
      output = {value, args.alloc_attrs.on_host()};
    } else if (value.data() != output.tensor.data() &&
               recorded_->recording->Has(output.tensor.data(), 1)) {
      return absl::InternalError("a recorded step's result has moved");
    } else {
      // As when it was recorded, later ops must not write over it.
      recorded_->sent.push_back(value);
    }
    return absl::OkStatus();
  }
  void RecvAsync(const ParsedKey& key, const Args& args,
                 DoneCallback done) override {
    const std::optional<size_t> i = IndexOf(key, receives_);
    if (i.has_value()) {
      done(absl::OkStatus(), Args(), args, recorded_->inputs[*i],
           /*is_dead=*/false);
      return;
    }
    done(absl::InternalError(absl::StrCat("a recorded step receives ",
                                          std::string(key.FullKey()))),
         Args(), args, Tensor(), /*is_dead=*/false);
  }
  void StartAbort(const absl::Status&) override {}

 private:
  Recorded* const recorded_;
  const std::vector<Key>& receives_;
  const std::vector<Key>& sends_;
};

CapturedSteps::CapturedSteps(GroupMember* leader, const Options& options,
                             const Capturable& graph,
                             std::vector<std::unique_ptr<Executor>> recorders)
    : leader_(leader),
      required_(options.capture == CaptureMode::kRequire),
      most_bytes_(int64_t{options.capture_mb} << 20),
      verify_every_(options.capture_verify),
      receives_(Parsed(graph.receives)),
      sends_(Parsed(graph.sends)),
      recorders_(std::move(recorders)),
      records_(recorders_.size()) {}

CapturedSteps::~CapturedSteps() {
  absl::MutexLock lock(&mu_);
  for (auto& [key, shape] : shapes_) {
    if (shape.recorded == nullptr) continue;
    shape.recorded->group->NoteRecordings(-1, -shape.recorded->bytes);
  }
}

std::vector<CapturedSteps::Key> CapturedSteps::Parsed(
    const std::vector<std::string>& keys) {
  // A parsed key refers to the text that it was parsed from, in a copy of its.
  std::vector<Key> parsed(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    parsed[i].text = keys[i];
    TF_CHECK_OK(Rendezvous::ParseKey(keys[i], &parsed[i].parsed));
  }
  return parsed;
}

std::optional<size_t> CapturedSteps::IndexOf(const Rendezvous::ParsedKey& key,
                                             const std::vector<Key>& keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (key.FullKey() == keys[i].text) return i;
  }
  return std::nullopt;
}

void CapturedSteps::Run(const Executor::Args& args, StreamGroup* group,
                        RunAsAlways run_as_always,
                        Executor::DoneCallback done) {
  auto call = std::make_shared<Call>();
  call->args = args;
  call->group = group;
  call->run_as_always = std::move(run_as_always);
  call->done = std::move(done);
  call->received.resize(receives_.size());
  call->pending.store(static_cast<int>(receives_.size()) + 1);
  Rendezvous::Args on_host;
  on_host.alloc_attrs = Pinned();
  on_host.cancellation_manager = args.cancellation_manager;
  for (size_t i = 0; i < receives_.size(); ++i) {
    args.rendezvous->RecvAsync(
        receives_[i].parsed, on_host,
        [this, call, i](
            const absl::Status& status, const Rendezvous::Args& send_args,
            const Rendezvous::Args&, const Tensor& value, bool is_dead) {
          call->received[i] = {status, send_args, value, is_dead};
          if (call->pending.fetch_sub(1) == 1) Received(call);
        });
  }
  if (call->pending.fetch_sub(1) == 1) Received(call);
}

void CapturedSteps::Received(const std::shared_ptr<Call>& call) {
  // Who profiles a step wants to see its ops.
  bool complete = call->args.stats_collector == nullptr;
  for (const Call::Received& it : call->received) {
    complete = complete && it.status.ok() && !it.is_dead;
    if (!complete) break;
    absl::StrAppend(&call->shapes, static_cast<int>(it.value.dtype()), "[");
    for (int64_t size : it.value.shape().dim_sizes()) {
      absl::StrAppend(&call->shapes, size, ",");
    }
    absl::StrAppend(&call->shapes, "]");
  }
  if (complete) {
    absl::StatusOr<std::shared_ptr<Recorded>> recorded = Find(*call);
    if (!recorded.ok()) return Finish(*call, {}, recorded.status());
    if (*recorded != nullptr && Launch(call, *std::move(recorded))) return;
  }
  call->run_as_always(std::make_shared<EarlierReceived>(call, receives_),
                      call->done);
}

absl::StatusOr<std::shared_ptr<CapturedSteps::Recorded>> CapturedSteps::Find(
    const Call& call) {
  const int group = call.group->index();
  {
    absl::MutexLock lock(&mu_);
    if (shapes_.size() >= kMostShapes &&
        !shapes_.contains({group, call.shapes})) {
      absl::erase_if(shapes_, [](const auto& entry) {
        return entry.second.recorded == nullptr;
      });
    }
    Shape& shape = shapes_[{group, call.shapes}];
    shape.last_use = ++uses_;
    if (shape.recorded != nullptr) return shape.recorded;
    // One recording at a time on a group; others do not wait for it.
    if (++shape.runs <= shape.next_try || records_[group]) return nullptr;
    records_[group] = true;
  }
  absl::StatusOr<std::shared_ptr<Recorded>> recorded = Record(call);
  const absl::Status status =
      recorded.ok() ? Keep(call, *recorded) : recorded.status();
  absl::MutexLock lock(&mu_);
  records_[group] = false;
  if (status.ok()) return recorded;
  Shape& shape = shapes_[{group, call.shapes}];
  // Once more at once: kernels may have been chosen just then.
  shape.next_try = NextTry(shape, /*at_once=*/1);
  LOG_FIRST_N(WARNING, 10)
      << "Multi-stream: a step was not captured and runs as always: "
      << status.message();
  const bool never =
      absl::IsAborted(status) || absl::IsFailedPrecondition(status);
  if (required_ && never && shape.failures > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        kCaptureVariable,
        "=require, and a step cannot be captured: ", status.message()));
  }
  return nullptr;
}

absl::StatusOr<std::shared_ptr<CapturedSteps::Recorded>> CapturedSteps::Record(
    const Call& call) {
  StreamGroup* group = call.group;
  absl::MutexLock one_at_a_time(group->record_mu());
  auto recorded = std::make_shared<Recorded>();
  recorded->group = group;
  recorded->recording = leader_->recorder(group->index())->NewRecording();
  recorded->outputs.resize(sends_.size());
  recorded->rendezvous =
      std::make_unique<FixedRendezvous>(recorded.get(), receives_, sends_);
  // The step runs on these inputs, so they must be true ones.
  std::vector<Tensor> staged;
  bool has_memory = Stage(call, &staged);
  for (const Call::Received& it : call.received) {
    recorded->inputs.emplace_back(recorded->recording->memory(),
                                  it.value.dtype(), it.value.shape());
    has_memory = has_memory && recorded->inputs.back().IsInitialized();
  }
  if (!has_memory) {
    return absl::ResourceExhaustedError("there is no memory for its inputs");
  }
  absl::Status status;
  {
    absl::MutexLock lock(group->launch_mu());
    status = CopyIn(group, staged, recorded->inputs);
  }
  // Here and below, what the stream may still use lives until it has not.
  group->WhenCompleted([staged = std::move(staged)] {});
  // An emulated GPU's recording keeps this function, so it refers to what the
  // recording belongs to.
  Recorded* const it = recorded.get();
  Executor* const executor = recorders_[group->index()].get();
  if (status.ok()) {
    status = it->recording->Record([it, executor] {
      if (!it->complete) it->outputs.assign(it->outputs.size(), {});
      CancellationManager never;
      Executor::Args args;
      args.rendezvous = it->rendezvous.get();
      args.cancellation_manager = &never;
      args.runner = [](const std::function<void()>& closure) { closure(); };
      args.run_all_kernels_inline = true;
      absl::Notification ended;
      absl::Status result;
      executor->RunAsync(args, [&](const absl::Status& s) {
        result = s;
        ended.Notify();
      });
      ended.WaitForNotification();
      it->sent.clear();
      return result;
    });
  }
  if (!status.ok()) {
    EndLater(std::move(recorded));
    return status;
  }
  it->bytes = it->recording->bytes();
  it->complete = true;
  return recorded;
}

int64_t CapturedSteps::NextTry(Shape& shape, int at_once) {
  const int failures = shape.failures++;
  if (failures < at_once) return shape.runs;
  return shape.runs +
         (int64_t{kRunsBeforeRetry} << std::min(failures - at_once, 20));
}

std::shared_ptr<CapturedSteps::Recorded> CapturedSteps::Dropped(Shape* shape) {
  bytes_ -= shape->recorded->bytes;
  shape->recorded->group->NoteRecordings(-1, -shape->recorded->bytes);
  // What is dropped for another one is not to come back for each use.
  shape->next_try = NextTry(*shape, /*at_once=*/0);
  return std::exchange(shape->recorded, nullptr);
}

void CapturedSteps::EndLater(std::shared_ptr<Recorded> recorded) {
  StreamGroup* group = recorded->group;
  group->WhenCompleted(
      [recorded = std::move(recorded)]() mutable { recorded = nullptr; });
}

absl::Status CapturedSteps::Keep(const Call& call,
                                 std::shared_ptr<Recorded> recorded) {
  std::vector<std::shared_ptr<Recorded>> dropped;  // ended without the lock
  absl::MutexLock lock(&mu_);
  if (recorded->bytes > most_bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a recording takes ", recorded->bytes, " bytes, and ",
                     kCaptureMegabytesVariable, " allows ", most_bytes_));
  }
  while (bytes_ + recorded->bytes > most_bytes_) {
    Shape* oldest = nullptr;
    for (auto& [key, shape] : shapes_) {
      if (shape.recorded == nullptr) continue;
      if (oldest == nullptr || shape.last_use < oldest->last_use) {
        oldest = &shape;
      }
    }
    dropped.push_back(Dropped(oldest));
  }
  bytes_ += recorded->bytes;
  recorded->group->NoteRecordings(1, recorded->bytes);
  shapes_[{call.group->index(), call.shapes}].recorded = std::move(recorded);
  for (auto& old : dropped) EndLater(std::move(old));
  return absl::OkStatus();
}

Tensor CapturedSteps::NewPinned(StreamGroup* group, const Tensor& like) {
  return Tensor(leader_->group_device(group->index())->GetAllocator(Pinned()),
                like.dtype(), like.shape());
}

bool CapturedSteps::Stage(const Call& call, std::vector<Tensor>* staged) {
  for (const Call::Received& it : call.received) {
    staged->push_back(NewPinned(call.group, it.value));
    if (!staged->back().IsInitialized()) return false;
    std::memcpy(staged->back().data(), it.value.data(), it.value.TotalBytes());
  }
  return true;
}

absl::Status CapturedSteps::CopyIn(StreamGroup* group,
                                   const std::vector<Tensor>& staged,
                                   const std::vector<Tensor>& inputs) {
  for (size_t i = 0; i < staged.size(); ++i) {
    TF_RETURN_IF_ERROR(group->CopyToDevice(staged[i].data(), inputs[i].data(),
                                           staged[i].TotalBytes()));
  }
  return absl::OkStatus();
}

bool CapturedSteps::NewResults(StreamGroup* group,
                               const std::vector<Output>& outputs,
                               std::vector<Tensor>* results) {
  for (const Output& output : outputs) {
    results->push_back(NewPinned(group, output.tensor));
    if (!results->back().IsInitialized()) return false;
    // What a recording has on the host is the same each time.
    if (output.on_host) {
      std::memcpy(results->back().data(), output.tensor.data(),
                  output.tensor.TotalBytes());
    }
  }
  return true;
}

absl::Status CapturedSteps::CopyOut(StreamGroup* group,
                                    const std::vector<Output>& outputs,
                                    std::vector<Tensor>* results) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].on_host) continue;
    TF_RETURN_IF_ERROR(group->CopyToHost(outputs[i].tensor.data(),
                                         (*results)[i].data(),
                                         outputs[i].tensor.TotalBytes()));
  }
  return absl::OkStatus();
}

bool CapturedSteps::Launch(const std::shared_ptr<Call>& call,
                           std::shared_ptr<Recorded> recorded) {
  StreamGroup* group = call->group;
  std::vector<Tensor> staged, results;
  if (!Stage(*call, &staged) ||
      !NewResults(group, recorded->outputs, &results)) {
    return false;
  }
  const bool verify =
      verify_every_ > 0 &&
      replays_.fetch_add(1, std::memory_order_relaxed) % verify_every_ == 0;
  absl::MutexLock lock(group->launch_mu());
  absl::Status status = CopyIn(group, staged, recorded->inputs);
  if (status.ok()) status = recorded->recording->Launch();
  if (!status.ok()) {
    // Nothing has been changed but the recording's own memory.
    group->WhenCompleted([staged = std::move(staged)] {});
    Drop(*call, std::move(recorded), status);
    return false;
  }
  status = CopyOut(group, recorded->outputs, &results);
  group->NoteReplay();
  // Before the next launch, for which this step need not wait.
  group->WhenCompleted(
      [this, call, status, verify, recorded = std::move(recorded),
       staged = std::move(staged), results = std::move(results)]() mutable {
        // The session, and with it this, may end as soon as the step does.
        recorded = nullptr;
        staged.clear();
        if (TakeTestFault(TestFault::kSpoilReplay)) {
          *static_cast<char*>(results[0].data()) ^= 1;
        }
        if (verify && status.ok()) {
          Verify(call, std::move(results));
        } else {
          Finish(*call, std::move(results), status);
        }
      },
      /*host_waits=*/true);
  return true;
}

void CapturedSteps::Drop(const Call& call, std::shared_ptr<Recorded> recorded,
                         const absl::Status& why) {
  LOG_FIRST_N(WARNING, 10) << "Multi-stream: a captured step could not be "
                              "launched, and runs as always: "
                           << why.message();
  absl::MutexLock lock(&mu_);
  Shape& shape = shapes_[{call.group->index(), call.shapes}];
  if (shape.recorded == recorded) Dropped(&shape);
  EndLater(std::move(recorded));
}

void CapturedSteps::Finish(const Call& call, std::vector<Tensor> results,
                           absl::Status status) {
  Rendezvous::Args on_host;
  on_host.alloc_attrs = Pinned();
  for (size_t i = 0; i < results.size() && status.ok(); ++i) {
    status = call.args.rendezvous->Send(sends_[i].parsed, on_host, results[i],
                                        /*is_dead=*/false);
  }
  results.clear();
  leader_->gpu_groups()->EndStep(call.group, status.ok());
  call.done(status);
}

void CapturedSteps::Verify(const std::shared_ptr<Call>& call,
                           std::vector<Tensor> results) {
  auto kept = std::make_shared<KeptResults>(call, receives_, sends_);
  leader_->gpu_groups()->StartStepOn(call->group);
  call->run_as_always(kept, [this, call, kept, replayed = std::move(results)](
                                const absl::Status& status) {
    std::vector<Tensor> copies;
    if (!status.ok() || !NewResults(call->group, kept->outputs, &copies)) {
      const bool memory = status.ok();
      return Finish(*call, {},
                    memory ? absl::ResourceExhaustedError(
                                 "no pinned memory to verify a replay with")
                           : status);
    }
    const absl::Status copied = CopyOut(call->group, kept->outputs, &copies);
    call->group->WhenCompleted(
        [this, call, kept, replayed, copies = std::move(copies),
         copied]() mutable {
          const absl::Status same =
              copied.ok() ? Compare(replayed, copies) : copied;
          kept = nullptr;
          copies.clear();
          Finish(*call, same.ok() ? std::move(replayed) : std::vector<Tensor>(),
                 same);
        },
        /*host_waits=*/true);
  });
}

absl::Status CapturedSteps::Compare(const std::vector<Tensor>& replayed,
                                    const std::vector<Tensor>& results) const {
  for (size_t i = 0; i < results.size(); ++i) {
    if (replayed[i].shape() == results[i].shape() &&
        std::memcmp(replayed[i].data(), results[i].data(),
                    results[i].TotalBytes()) == 0) {
      continue;
    }
    const absl::Status wrong = absl::InternalError(
        absl::StrCat(kCaptureVerifyVariable,
                     ": a captured step gave another result than the step: ",
                     std::string(sends_[i].parsed.edge_name)));
    LOG(ERROR) << wrong.message();
    return wrong;
  }
  return absl::OkStatus();
}

}  // namespace multistream
}  // namespace tensorflow
