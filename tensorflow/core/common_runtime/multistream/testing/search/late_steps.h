// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// For searches of captured steps: functions of a few ops on variables, run op
// by op or captured, and their callers.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_STEPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_STEPS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_steps.h"
#include "tensorflow/core/common_runtime/multistream/ops/op_state.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/late_device.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream::search {

// A variable holds two equal numbers. A step's input is any count of equal
// numbers, its result two.
struct Op {
  enum Kind {
    kAdd,     // adds its input to a variable
    kAssign,  // assigns (input, input) to a variable
    kRead,    // returns the variable
    kSum,     // returns the variable plus its input
  };
  Kind kind;
  int variable = 0;
};

inline std::string VariableName(int i) { return absl::StrCat("v", i); }
inline const char* KeyOfInput() {
  return "/job:localhost/replica:0/task:0/device:CPU:0;0000000000000001;"
         "/job:localhost/replica:0/task:0/device:GPU:0;x;0:0";
}
inline const char* KeyOfResult() {
  return "/job:localhost/replica:0/task:0/device:GPU:0;0000000000000001;"
         "/job:localhost/replica:0/task:0/device:CPU:0;y;0:0";
}

inline Var* VariableOf(Device* device, int i) {
  Var* variable = nullptr;
  ResourceMgr* resources = device->resource_manager();
  TF_CHECK_OK(resources->Lookup(resources->default_container(), VariableName(i),
                                &variable));
  variable->Unref();  // the resource manager's reference outlives ours
  return variable;
}

inline GpuGroups::StateKey KeyOf(Device* device, int i) {
  ResourceMgr* resources = device->resource_manager();
  return StateKeyOf(resources, resources->default_container(), VariableName(i));
}

// Runs the ops in the caller's thread, before RunAsync returns.
class LateExecutor : public Executor {
 public:
  // `gpu`: orders the ops' uses of variables, as for a group; nullptr: for a
  // recorder, whose caller orders them.
  LateExecutor(LateDevice* device, GpuGroups* gpu, std::vector<Op> ops)
      : device_(device), gpu_(gpu), ops_(std::move(ops)) {}

  void RunAsyncInternal(const Args& args, DoneCallback done) override {
    Rendezvous::ParsedKey in, out;
    TF_CHECK_OK(Rendezvous::ParseKey(KeyOfInput(), &in));
    TF_CHECK_OK(Rendezvous::ParseKey(KeyOfResult(), &out));
    Tensor input;
    args.rendezvous->RecvAsync(
        in, Rendezvous::Args(),
        [&input](const absl::Status&, const Rendezvous::Args&,
                 const Rendezvous::Args&, const Tensor& value,
                 bool) { input = value; });
    if (gpu_ != nullptr) input = ToDevice(input);
    absl::Status status;
    for (const Op& op : ops_) {
      if (status.ok()) status = RunOp(op, input, out, args);
    }
    done(status);
  }

 private:
  Tensor ToDevice(const Tensor& input) {
    Tensor there(device_->GetAllocator(AllocatorAttributes()), input.dtype(),
                 input.shape());
    TF_CHECK_OK(device_->stream()->CopyToDevice(input.data(), there.data(),
                                                input.TotalBytes()));
    device_->stream()->WhenCompleted([input] {});
    return there;
  }

  absl::Status RunOp(const Op& op, const Tensor& input,
                     const Rendezvous::ParsedKey& out, const Args& args) {
    Var* variable = VariableOf(device_, op.variable);
    const GpuGroups::StateKey keys[] = {KeyOf(device_, op.variable)};
    const int64_t* x = static_cast<const int64_t*>(input.data());
    switch (op.kind) {
      case Op::kAdd:
        if (gpu_ != nullptr) gpu_->BeginWrite(keys);
        AddTo(variable, x);
        if (gpu_ != nullptr) gpu_->EndWrite(keys);
        return absl::OkStatus();
      case Op::kAssign:
        if (gpu_ != nullptr) gpu_->BeginWrite(keys);
        Assign(variable, x);
        if (gpu_ != nullptr) gpu_->EndWrite(keys);
        return absl::OkStatus();
      case Op::kRead:
      case Op::kSum:
        if (gpu_ != nullptr) gpu_->BeginRead(device_->stream(), keys);
        Tensor value;
        {
          tf_shared_lock lock(*variable->mu());
          value = *variable->tensor();
        }
        if (op.kind == Op::kSum) value = Sum(value, x);
        const absl::Status sent = Send(value, out, args);
        if (gpu_ != nullptr) gpu_->EndRead(device_->stream(), keys);
        return sent;
    }
  }

  // Like TensorFlow's: in place unless the value is shared.
  void AddTo(Var* variable, const int64_t* x) {
    mutex_lock lock(*variable->mu());
    Tensor* value = variable->tensor();
    if (!value->RefCountIsOne()) {
      Tensor copy(device_->GetAllocator(AllocatorAttributes()), value->dtype(),
                  value->shape());
      device_->Copy(value->data(), copy.data(), value->TotalBytes());
      *value = copy;
    }
    int64_t* to = static_cast<int64_t*>(value->data());
    device_->Enqueue("adds one half", [to, x] { to[0] += x[0]; });
    device_->Enqueue("adds the other half", [to, x] { to[1] += x[0]; });
  }
  void Assign(Var* variable, const int64_t* x) {
    mutex_lock lock(*variable->mu());
    Tensor* value = variable->tensor();
    Tensor made(device_->GetAllocator(AllocatorAttributes()), value->dtype(),
                value->shape());
    int64_t* to = static_cast<int64_t*>(made.data());
    device_->Enqueue("assigns one half", [to, x] { to[0] = x[0]; });
    device_->Enqueue("assigns the other half", [to, x] { to[1] = x[0]; });
    *value = made;
  }
  Tensor Sum(const Tensor& value, const int64_t* x) {
    Tensor sum(device_->GetAllocator(AllocatorAttributes()), value.dtype(),
               value.shape());
    const auto* from = static_cast<const int64_t*>(value.data());
    auto* to = static_cast<int64_t*>(sum.data());
    device_->Enqueue("sums one half", [=] { to[0] = from[0] + x[0]; });
    device_->Enqueue("sums the other half", [=] { to[1] = from[1] + x[0]; });
    return sum;
  }
  absl::Status Send(const Tensor& value, const Rendezvous::ParsedKey& out,
                    const Args& args) {
    if (gpu_ == nullptr) {
      return args.rendezvous->Send(out, Rendezvous::Args(), value, false);
    }
    AllocatorAttributes on_host;
    on_host.set_on_host(true);
    Tensor host(device_->GetAllocator(on_host), value.dtype(), value.shape());
    TF_RETURN_IF_ERROR(device_->stream()->CopyToHost(value.data(), host.data(),
                                                     value.TotalBytes()));
    auto sent = std::make_shared<absl::Notification>();
    device_->stream()->WhenCompleted([value, sent] { sent->Notify(); });
    sent->WaitForNotification();
    return args.rendezvous->Send(out, Rendezvous::Args(), host, false);
  }

  LateDevice* const device_;
  GpuGroups* const gpu_;
  const std::vector<Op> ops_;
};

// Passes the input and the result between a step and its caller.
class LateRendezvous : public RendezvousInterface {
 public:
  explicit LateRendezvous(Tensor input) : input_(std::move(input)) {}

  absl::Status Send(const ParsedKey&, const Args&, const Tensor& value,
                    bool) override {
    result_ = value;
    return absl::OkStatus();
  }
  void RecvAsync(const ParsedKey&, const Args& args,
                 DoneCallback done) override {
    done(absl::OkStatus(), Args(), args, input_, false);
  }
  void StartAbort(const absl::Status&) override {}
  const Tensor& result() const { return result_; }

 private:
  const Tensor input_;
  Tensor result_;
};

// A captured function on one group. It uses the variables that its ops name.
class LateFunction {
 public:
  LateFunction(LateLeader* leader, const Options& options, std::string name,
               std::vector<Op> ops)
      : leader_(leader),
        ops_(ops),
        steps_(std::make_unique<CapturedSteps>(
            leader, options, /*required=*/"", std::move(name), GraphOf(ops),
            /*paddings=*/nullptr, Recorders(leader, ops))) {}

  struct Result {
    absl::Status status;
    int64_t value = -1;
  };
  // Calls the function, and waits for its end.
  Result Call(int group, int numbers, int64_t x) {
    AllocatorAttributes on_host;
    on_host.set_on_host(true);
    LateDevice* device = leader_->device(group);
    Tensor input(device->GetAllocator(on_host), DT_INT64,
                 TensorShape({numbers}));
    for (int i = 0; i < numbers; ++i) input.flat<int64_t>()(i) = x;
    LateRendezvous rendezvous(input);
    Executor::Args args;
    args.rendezvous = &rendezvous;
    GpuGroups* gpu = leader_->gpu_groups();
    StreamGroup* stream = gpu->group(group);
    gpu->StartStepOn(stream);
    struct Ended {
      absl::Notification here;
      absl::Status status;
    };
    auto ended = std::make_shared<Ended>();
    steps_->Run(
        args, stream,
        [this, gpu, device, stream, args](
            std::shared_ptr<RendezvousInterface> given, CallFrameInterface*,
            Executor::DoneCallback done) {
          Executor::Args again = args;
          again.rendezvous = given.get();
          LateExecutor(device, gpu, ops_)
              .RunAsync(again, [&](const absl::Status& status) {
                gpu->EndStep(stream, status.ok());
                done(status);
              });
        },
        [ended](const absl::Status& status) {
          ended->status = status;
          ended->here.Notify();
        });
    ended->here.WaitForNotification();
    Result result = {ended->status};
    if (rendezvous.result().NumElements() > 0) {
      const auto halves = rendezvous.result().flat<int64_t>();
      Expect(halves(0) == halves(1), "a value is read half changed");
      result.value = halves(0);
    }
    return result;
  }

 private:
  static Capturable GraphOf(const std::vector<Op>& ops) {
    Capturable graph;
    graph.receives.push_back(KeyOfInput());
    for (const Op& op : ops) {
      const bool changed = op.kind == Op::kAdd || op.kind == Op::kAssign;
      if (!changed) graph.sends.push_back(KeyOfResult());
      graph.changes_variables |= changed;
      graph.variables.push_back(
          {-1, "", VariableName(op.variable), false, changed});
    }
    return graph;
  }
  static std::vector<std::unique_ptr<Executor>> Recorders(
      LateLeader* leader, const std::vector<Op>& ops) {
    std::vector<std::unique_ptr<Executor>> recorders;
    for (int i = 0; i < leader->gpu_groups()->size(); ++i) {
      recorders.push_back(std::make_unique<LateExecutor>(
          leader->recorder_device(i), nullptr, ops));
    }
    return recorders;
  }

  LateLeader* const leader_;
  const std::vector<Op> ops_;
  const std::unique_ptr<CapturedSteps> steps_;
};

}  // namespace tensorflow::multistream::search

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_LATE_STEPS_H_
