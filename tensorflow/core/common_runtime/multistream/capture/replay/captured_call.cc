// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_call.h"

#include <cstdint>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/base/device_context.h"
#include "tensorflow/core/common_runtime/multistream/base/rules.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/recorded_copies.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/drawn_numbers.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow::multistream {
namespace {

// The most numbers of an argument that decides sizes. They are part of a
// recording's key.
constexpr int kMostSizes = 64;

// Inverts a list: maps an index in the call frame to an index in `items`, or to
// -1.
template <class Item>
std::vector<int> ByIndex(const std::vector<Item>& items) {
  std::vector<int> at;
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t index = static_cast<size_t>(items[i].index);
    if (at.size() <= index) at.resize(index + 1, -1);
    at[index] = static_cast<int>(i);
  }
  return at;
}

// Which of `all` are in `some`?
std::vector<bool> AreIn(const std::vector<std::string>& some,
                        const std::vector<std::string>& all) {
  std::vector<bool> are_in;
  for (const std::string& it : all) {
    are_in.push_back(absl::c_linear_search(some, it));
  }
  return are_in;
}

std::vector<Tensor> EmptyStates(size_t draws) {
  std::vector<Tensor> states;
  for (size_t i = 0; i < draws; ++i) {
    for (const int64_t size : {1, 2}) {
      Tensor& state = states.emplace_back(DT_UINT64, TensorShape({size}));
      state.flat<uint64_t>().setZero();
    }
  }
  return states;
}

}  // namespace

StepInterface::StepInterface(const Capturable& graph)
    : receives(Parsed(graph.receives)),
      are_summands(AreIn(graph.summands, graph.receives)),
      passed(graph.passed),
      passed_keys(KeysOf(graph.passed)),
      messages(Parsed(graph.messages)),
      sends(Parsed(graph.sends)),
      checks(Parsed(graph.checks)),
      draw_states(Parsed(DrawStateKeys(graph.draws.size()))),
      draw_shapes(Parsed(DrawShapeKeys(graph.draws.size()))),
      empty_states(EmptyStates(graph.draws.size())),
      arguments(graph.arguments),
      variables(graph.variables),
      changes_variables(graph.changes_variables),
      is_piece(graph.is_piece),
      results(graph.results),
      argument_at(ByIndex(graph.arguments)),
      result_at(ByIndex(graph.results)) {}

bool StepInterface::AreChecked(const std::vector<Tensor>& made) const {
  for (size_t i = outputs(); i < made.size(); ++i) {
    if (made[i].dims() != 0 || !made[i].scalar<bool>()()) return false;
  }
  return true;
}

std::vector<StepInterface::Key> StepInterface::Parsed(
    const std::vector<std::string>& keys) {
  // A parsed key points into its own copy of the text, so it must be parsed in
  // place.
  std::vector<Key> parsed(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    parsed[i].text = keys[i];
    TF_CHECK_OK(Rendezvous::ParseKey(keys[i], &parsed[i].parsed));
  }
  return parsed;
}

std::vector<StepInterface::Key> StepInterface::KeysOf(
    const std::vector<Capturable::Passed>& passed) {
  std::vector<std::string> keys;
  for (const Capturable::Passed& it : passed) keys.push_back(it.key);
  return Parsed(keys);
}

std::optional<size_t> StepInterface::IndexOf(const Rendezvous::ParsedKey& key,
                                             const std::vector<Key>& keys) {
  for (size_t i = 0; i < keys.size(); ++i) {
    if (key.FullKey() == keys[i].text) return i;
  }
  return std::nullopt;
}

// Hands a step that runs without capture the values already received for it.
class CapturedCall::EarlierReceived : public RendezvousInterface {
 public:
  explicit EarlierReceived(std::shared_ptr<CapturedCall> call)
      : call_(std::move(call)) {}

  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value,
                    bool is_dead) override {
    if (call_->step_.IsPassed(key)) {
      return absl::OkStatus();  // it was sent before
    }
    return call_->args_.rendezvous->Send(key, args, value, is_dead);
  }
  void RecvAsync(const ParsedKey& key, const Args& args,
                 DoneCallback done) override {
    const StepInterface& step = call_->step_;
    if (const auto i = StepInterface::IndexOf(key, step.receives)) {
      const Received& it = call_->received_[*i];
      done(it.status, it.send_args, args, ValueOf(*i), it.is_dead);
    } else if (const auto k = StepInterface::IndexOf(key, step.messages)) {
      const Received& it = call_->received_[step.receives.size() + *k];
      done(it.status, it.send_args, args, it.message, it.is_dead);
    } else {
      call_->args_.rendezvous->RecvAsync(key, args, std::move(done));
    }
  }
  void StartAbort(const absl::Status& status) override {
    call_->args_.rendezvous->StartAbort(status);
  }

 protected:
  virtual const Tensor& ValueOf(size_t i) const {
    return call_->inputs_.received[i];
  }

  const std::shared_ptr<CapturedCall> call_;
};

// Hands a step the given inputs, and keeps the step's outputs.
class CapturedCall::Kept : public EarlierReceived, public CallFrameInterface {
 public:
  Kept(std::shared_ptr<CapturedCall> call, StepInputs inputs)
      : EarlierReceived(std::move(call)),
        outputs(call_->step_.outputs()),
        inputs_(std::move(inputs)) {}

  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value,
                    bool is_dead) override {
    const auto i = StepInterface::IndexOf(key, call_->step_.sends);
    // A copy between the GPU and the host, which the recorded graph lacks; or
    // an argument that is passed on.
    if (!i.has_value() &&
        (key.src_device == key.dst_device || call_->step_.IsPassed(key))) {
      return EarlierReceived::Send(key, args, value, is_dead);
    }
    if (!i.has_value()) {
      return absl::InternalError(
          absl::StrCat("a step sends ", std::string(key.FullKey())));
    }
    outputs[*i] = {value, args.alloc_attrs.on_host()};
    return absl::OkStatus();
  }

  size_t num_args() const override {
    return call_->args_.call_frame->num_args();
  }
  size_t num_retvals() const override {
    return call_->args_.call_frame->num_retvals();
  }
  absl::Status GetArg(int index, const Tensor** value) override {
    *value = &inputs_.arguments[call_->step_.argument_at[index]];
    return absl::OkStatus();
  }
  absl::Status SetRetval(int index, const Tensor& value) override {
    const int i = call_->step_.result_at[index];
    outputs[call_->step_.sends.size() + i] = {value,
                                              call_->step_.results[i].on_host};
    return absl::OkStatus();
  }

  std::vector<StepOutput> outputs;

 protected:
  const Tensor& ValueOf(size_t i) const override { return inputs_.received[i]; }

 private:
  const StepInputs inputs_;
};

CapturedCall::CapturedCall(const StepInterface& step,
                           const Executor::Args& args, StreamGroup* group,
                           RunAsAlways run_as_always,
                           Executor::DoneCallback done)
    : step_(step),
      args_(args),
      group_(group),
      run_as_always_(std::move(run_as_always)),
      done_(std::move(done)),
      received_(step.receives.size() + step.messages.size()) {
  inputs_.received.resize(step.receives.size());
}

absl::Status CapturedCall::SendArguments(Device* device) const {
  if (step_.passed.empty()) return absl::OkStatus();
  if (args_.call_frame == nullptr) {
    return absl::InternalError("a step's call has no arguments");
  }
  // As OpKernelContext::op_device_context gives it to TensorFlow's Send op: the
  // context that copies from the GPU after what its stream does.
  DeviceContext* const context = ContextOf(device);
  for (size_t i = 0; i < step_.passed.size(); ++i) {
    const Tensor* value = nullptr;
    TF_RETURN_IF_ERROR(args_.call_frame->GetArg(step_.passed[i].index, &value));
    Rendezvous::Args args;
    args.device_context = context;
    args.alloc_attrs.set_on_host(step_.passed[i].on_host);
    TF_RETURN_IF_ERROR(args_.rendezvous->Send(step_.passed_keys[i].parsed, args,
                                              *value, /*is_dead=*/false));
  }
  return absl::OkStatus();
}

void CapturedCall::Receive(const std::shared_ptr<CapturedCall>& call,
                           std::function<void()> then) {
  const StepInterface& step = call->step_;
  const size_t values = step.receives.size();
  call->pending_.store(static_cast<int>(call->received_.size()) + 1);
  Rendezvous::Args on_host;
  on_host.alloc_attrs = PinnedMemory();
  on_host.cancellation_manager = call->args_.cancellation_manager;
  for (size_t i = 0; i < call->received_.size(); ++i) {
    const bool is_message = i >= values;
    const StepInterface::Key& key =
        is_message ? step.messages[i - values] : step.receives[i];
    call->args_.rendezvous->RecvAsync(
        key.parsed, on_host,
        [call, i, is_message, then](
            const absl::Status& status, const Rendezvous::Args& send_args,
            const Rendezvous::Args&, const Tensor& value, bool is_dead) {
          Received& it = call->received_[i];
          it = {status, send_args, is_dead, Tensor()};
          (is_message ? it.message : call->inputs_.received[i]) = value;
          if (call->pending_.fetch_sub(1) == 1) then();
        });
  }
  if (call->pending_.fetch_sub(1) == 1) then();
}

bool CapturedCall::Collect(ResourceMgr* resources, const std::string& device) {
  for (const Received& it : received_) {
    if (!it.status.ok() || it.is_dead) return false;
  }
  settings_ = KernelSettings::Now();
  if (!CollectArguments() || !CollectVariables(resources, device)) return false;
  AddShapes();
  // The same for each call, so no part of its shapes.
  inputs_.received.insert(inputs_.received.end(), step_.empty_states.begin(),
                          step_.empty_states.end());
  return true;
}

StepShapes CapturedCall::ShapesOfInputs() const {
  StepShapes shapes;
  for (size_t i = 0; i < step_.receives.size(); ++i) {
    shapes.received.push_back(inputs_.received[i].shape());
  }
  for (const Tensor& it : inputs_.arguments) {
    shapes.arguments.push_back(it.shape());
  }
  for (const auto& variable : variables_) {
    tf_shared_lock lock(*variable->mu());
    shapes.variables.emplace_back(variable->tensor()->dtype(),
                                  variable->tensor()->shape());
  }
  return shapes;
}

absl::Status CapturedCall::Pad(std::shared_ptr<const Padding> padding,
                               Allocator* device) {
  if (padding->length > 0) {
    StepInputs padded = inputs_;
    const auto copy_on_device = [this](const void* from, void* to,
                                       size_t bytes) {
      return group_->CopyOnDevice(from, to, bytes);
    };
    for (size_t i = 0; i < step_.receives.size(); ++i) {
      if (!padding->have.received[i]) continue;
      TF_RETURN_IF_ERROR(PadEntries(padding->length, cpu_allocator(),
                                    CopyOnHost, &padded.received[i]));
    }
    auto on_host = padded.received.begin() + step_.receives.size();
    absl::Status status;
    for (size_t i = 0; i < padded.arguments.size(); ++i) {
      const Capturable::Argument& it = step_.arguments[i];
      const bool is_on_host = it.on_host && !it.decides;
      Tensor* tensor = is_on_host ? &*on_host++ : &padded.arguments[i];
      if (!padding->have.arguments[i] || !status.ok()) continue;
      if (it.decides) {
        return absl::UnavailableError("a size that it takes has entries");
      }
      status =
          is_on_host
              ? PadEntries(padding->length, cpu_allocator(), CopyOnHost, tensor)
              : PadEntries(padding->length, device, copy_on_device, tensor);
      if (is_on_host) padded.arguments[i] = *tensor;
    }
    group_->WhenCompleted([arguments = inputs_.arguments] {});
    TF_RETURN_IF_ERROR(status);
    padded.received.push_back(padding->mask);
    received_unpadded_ = std::exchange(inputs_, std::move(padded)).received;
  }
  padding_ = std::move(padding);
  AddShapes();
  return absl::OkStatus();
}

bool CapturedCall::IsMask(size_t received) const {
  return padding_ != nullptr && padding_->length > 0 &&
         received + 1 == inputs_.received.size();
}

absl::StatusOr<StepInputs> CapturedCall::PaddedInputs(Allocator* device,
                                                      Allocator* pinned) const {
  StepInputs inputs = inputs_;
  if (padding_ == nullptr) return inputs;
  for (size_t i = 0; i < inputs.received.size(); ++i) {
    if (IsMask(i)) continue;
    TF_RETURN_IF_ERROR(
        PadRows(padding_->rows, pinned, CopyOnHost, &inputs.received[i]));
  }
  const auto copy_on_device = [this](const void* from, void* to, size_t bytes) {
    return group_->CopyOnDevice(from, to, bytes);
  };
  absl::Status status;
  auto on_host = inputs.received.begin() + step_.receives.size();
  for (size_t i = 0; i < inputs.arguments.size(); ++i) {
    Tensor& it = inputs.arguments[i];
    if (it.dtype() == DT_RESOURCE || step_.arguments[i].decides) continue;
    if (step_.arguments[i].on_host) {
      it = *on_host++;
    } else {
      status.Update(PadRows(padding_->rows, device, copy_on_device, &it));
    }
  }
  group_->WhenCompleted([arguments = inputs_.arguments] {});
  if (!status.ok()) return status;
  return inputs;
}

void CapturedCall::AddShapes() {
  shapes_.clear();
  for (size_t i = 0; i < inputs_.received.size(); ++i) {
    if (!IsMask(i)) AddShape(inputs_.received[i]);
  }
  for (size_t i = 0; i < inputs_.arguments.size(); ++i) {
    const Tensor& it = inputs_.arguments[i];
    if (it.dtype() != DT_RESOURCE) AddShape(it);
    if (step_.arguments[i].decides) {
      shapes_.append(static_cast<const char*>(it.data()), it.TotalBytes());
    }
  }
  for (const auto& variable : variables_) {
    const Var* address = variable.get();
    shapes_.append(reinterpret_cast<const char*>(&address), sizeof(address));
  }
  absl::StrAppend(&shapes_, settings_.tensor_float_32, settings_.deterministic);
  // A step of that length is not masked.
  if (padding_ != nullptr && padding_->length > 0) shapes_ += "masked";
}

void CapturedCall::AddShape(const Tensor& tensor) {
  absl::StrAppend(&shapes_, static_cast<int>(tensor.dtype()), "[");
  const TensorShape& shape = tensor.shape();
  for (int64_t size :
       (padding_ == nullptr ? shape : padding_->WithRows(shape)).dim_sizes()) {
    absl::StrAppend(&shapes_, size, ",");
  }
  absl::StrAppend(&shapes_, "]");
}

bool CapturedCall::CollectArguments() {
  if (step_.arguments.empty()) return true;
  if (args_.call_frame == nullptr) return false;
  inputs_.arguments.reserve(step_.arguments.size());
  for (const Capturable::Argument& it : step_.arguments) {
    const Tensor* value = nullptr;
    if (!args_.call_frame->GetArg(it.index, &value).ok() ||
        !value->IsInitialized() ||
        (value->dtype() == DT_RESOURCE) != it.is_variable) {
      return false;
    }
    inputs_.arguments.push_back(*value);
    if (it.decides && value->NumElements() > kMostSizes) return false;
    if (it.on_host && !it.decides) inputs_.received.push_back(*value);
  }
  return true;
}

bool CapturedCall::CollectVariables(ResourceMgr* resources,
                                    const std::string& device) {
  for (const Capturable::Variable& it : step_.variables) {
    core::RefCountPtr<Var>& variable = variables_.emplace_back();
    if (it.argument < 0) {
      const std::string& container =
          it.container.empty() ? resources->default_container() : it.container;
      Var* found = nullptr;
      resources->Lookup(container, it.name, &found).IgnoreError();
      variable.reset(found);
      state_.push_back(StateKeyOf(resources, container, it.name));
    } else {
      const auto handles = HandlesOf(inputs_.arguments[it.argument]);
      if (handles.size() != 1) return false;
      variable = VariableOf(handles[0], resources, device);
      state_.push_back(StateKeyOf(handles[0], resources));
    }
    if (variable == nullptr) return false;
  }
  return true;
}

void CapturedCall::RunAlways(const std::shared_ptr<CapturedCall>& call) {
  // The step may take over its arguments' memory.
  call->DropArguments();
  if (!call->received_unpadded_.empty()) {
    call->inputs_.received = std::move(call->received_unpadded_);
  }
  call->inputs_.received.resize(call->step_.receives.size());
  call->variables_.clear();
  std::shared_ptr<RendezvousInterface> rendezvous;
  if (call->args_.rendezvous != nullptr) {
    rendezvous = std::make_shared<EarlierReceived>(call);
  }
  call->run_as_always_(std::move(rendezvous), call->args_.call_frame,
                       call->done_);
}

void CapturedCall::RunAndKeep(
    const std::shared_ptr<CapturedCall>& call, StepInputs inputs,
    std::function<void(absl::Status, std::vector<StepOutput>)> then) {
  auto kept = std::make_shared<Kept>(call, std::move(inputs));
  CallFrameInterface* frame =
      call->args_.call_frame == nullptr ? nullptr : kept.get();
  call->run_as_always_(kept, frame,
                       [kept, then = std::move(then)](const absl::Status& s) {
                         then(s, std::move(kept->outputs));
                       });
}

absl::Status CapturedCall::Give(const std::vector<Tensor>& outputs) const {
  Rendezvous::Args on_host;
  on_host.alloc_attrs = PinnedMemory();
  const size_t sends = step_.sends.size();
  for (size_t i = 0; i < sends; ++i) {
    TF_RETURN_IF_ERROR(args_.rendezvous->Send(step_.sends[i].parsed, on_host,
                                              outputs[i], /*is_dead=*/false));
  }
  for (size_t i = sends; i < step_.outputs(); ++i) {
    TF_RETURN_IF_ERROR(args_.call_frame->SetRetval(
        step_.results[i - sends].index, outputs[i]));
  }
  return absl::OkStatus();
}

UsesVariables::UsesVariables(GpuGroups* gpu, const CapturedCall& call,
                             bool changes)
    : gpu_(gpu),
      call_(call),
      changes_(changes && IsKept(Rule::kWhoChangesIsAMover)) {
  if (call_.state().empty()) return;
  if (changes_) {
    gpu_->BeginMove(call_.state());
  } else {
    gpu_->BeginRead(call_.group(), call_.state());
  }
}

UsesVariables::~UsesVariables() {
  if (call_.state().empty()) return;
  if (changes_) {
    gpu_->EndMove(call_.state());
  } else {
    gpu_->EndRead(call_.group(), call_.state());
  }
}

}  // namespace tensorflow::multistream
