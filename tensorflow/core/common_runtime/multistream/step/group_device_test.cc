// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/memory/memory_owner.h"
#include "tensorflow/core/common_runtime/multistream/ops/holds.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device_fixture.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/variant.h"
#include "tensorflow/core/platform/mutex.h"

namespace tensorflow::multistream {
namespace {

using Calls = std::vector<std::string>;

REGISTER_OP("MultiStreamTestOp")
    .Input("x: T")
    .Output("y: variant")
    .Attr("T: type");
REGISTER_OP("MultiStreamTestRefOp").Input("x: Ref(T)").Attr("T: type");

// Set by the test: what the next synchronous op does.
std::function<void(OpKernelContext*)>* OnCompute() {
  static auto* on_compute = new std::function<void(OpKernelContext*)>;
  return on_compute;
}

class NowKernel : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const auto once = std::exchange(*OnCompute(), nullptr);
    if (once) once(context);
  }
};

class LaterKernel : public AsyncOpKernel {
 public:
  using AsyncOpKernel::AsyncOpKernel;
  void ComputeAsync(OpKernelContext*, DoneCallback done) override {
    finish = std::move(done);
  }
  DoneCallback finish;
};

#define REGISTER_TEST_KERNELS(op)                                     \
  REGISTER_KERNEL_BUILDER(Name(op).Device(DEVICE_CPU), NowKernel);    \
  REGISTER_KERNEL_BUILDER(Name(op).Device(DEVICE_CPU).Label("Later"), \
                          LaterKernel)
REGISTER_TEST_KERNELS("MultiStreamTestOp");
REGISTER_TEST_KERNELS("MultiStreamTestRefOp");
// TensorFlow's own kernel has no label.
REGISTER_KERNEL_BUILDER(
    Name("_XlaCompile").Device(DEVICE_CPU).Label("MultiStreamTest"), NowKernel);

void Finish(Op* op) {
  static_cast<LaterKernel*>(op->kernel())->finish();
  EXPECT_TRUE(op->is_done());
}

// TensorFlow syncs the visible device before it copies a result to the host. It
// must not wait for other clients' steps on other groups.
TEST_F(GroupDeviceTest, OnlyAnOpWaitsForOtherGroups) {
  ASSERT_TRUE(Device(0)->Sync().ok());
  EXPECT_EQ(Device(0)->syncs(), 1);
  EXPECT_EQ(Device(1)->syncs(), 0);
  {
    const GroupOnThread launching(groups_->group(0));
    ASSERT_TRUE(Device(0)->Sync().ok());
  }
  EXPECT_EQ(Device(0)->syncs(), 2);
  EXPECT_EQ(Device(1)->syncs(), 1);
  ASSERT_TRUE(Device(1)->Sync().ok());
  EXPECT_EQ(Device(0)->syncs(), 2);
}

// Holds of the leader's memory by ops on group 1.
class ForeignMemoryTest : public GroupDeviceTest {
 protected:
  ForeignMemoryTest() {
    MemoryOwner::Get()->Add(data_, x_.TotalBytes(), groups_->group(0));
  }
  ~ForeignMemoryTest() override {
    // Of no group, as far as later tests may know.
    MemoryOwner::Get()->Add(data_, sizeof(float), nullptr);
  }

  ManualStreamGroup* stream() { return streams_[1]; }
  // Another thread of the step passes the byte limit.
  void LaunchMany() {
    Holds holds(step_->group(), step_.get());
    holds.Add(Tensor(DT_UINT8, TensorShape({StepHolds::kMostBytes + 1})));
  }
  // The leader assigns another value; the stream then uses the old one.
  void AssignAndUse(Var* var) {
    x_ = Tensor();
    *var->tensor() = Tensor(DT_FLOAT, TensorShape({1}));
    stream()->Use(&watched_, data_);
  }
  void EndStep() {
    step_->Finish();
    step_->holds().ReleaseWhenCompleted(step_->group());
    stream()->Complete();
    EXPECT_EQ(stream()->used_too_late(), 0);
    EXPECT_FALSE(watched_.IsInUse(data_));
  }

  WatchedMemory watched_;
  Tensor x_{&watched_, DT_FLOAT, TensorShape({1})};
  const void* const data_ = x_.data();
};

TEST_F(ForeignMemoryTest, AnOpsInputIsHeldFromBeforeItsLaunchUntilAfter) {
  *OnCompute() = [&](OpKernelContext* context) {
    // Otherwise the op might reuse the buffer for its output.
    EXPECT_FALSE(context->input(0).RefCountIsOne());
    LaunchMany();
    stream()->Use(&watched_, data_);
  };
  ASSERT_TRUE(NewOp(1, TensorValue(&x_)).Compute().ok());
  x_ = Tensor();  // as the executor does when the op is done
  EXPECT_EQ(stream()->callbacks(), 1);
  stream()->Complete();
  EndStep();
}

TEST_F(ForeignMemoryTest, AnAsynchronousOpsInputIsHeldUntilTheOpIsDone) {
  Op op = NewOp(1, TensorValue(&x_), "Later");
  op.Begin();
  EXPECT_FALSE(x_.RefCountIsOne());
  LaunchMany();
  EXPECT_EQ(stream()->callbacks(), 1);
  stream()->Use(&watched_, data_);
  Finish(&op);
  x_ = Tensor();
  stream()->Complete();
  EndStep();
}

TEST_F(ForeignMemoryTest, WhatIsCopiedIsHeldUntilTheStreamHasCopiedIt) {
  Device(1)->on_copy = [&](const void* from) {
    EXPECT_EQ(from, data_);
    EXPECT_EQ(stream()->callbacks(), 0);
    stream()->Use(&watched_, from);
  };
  Tensor copy(DT_FLOAT, TensorShape({1}));
  absl::Status copied = absl::UnknownError("not copied");
  Device(1)->CopyTensorInSameDevice(&x_, &copy, &contexts_[1],
                                    [&](const absl::Status& status) {
                                      copied = status;
                                      x_ = Tensor();
                                    });
  EXPECT_TRUE(copied.ok()) << copied;
  EXPECT_TRUE(watched_.IsInUse(data_));
  EndStep();
}

// _XlaRun uses the variable without having it as an input.
TEST_F(ForeignMemoryTest, AVariableThatACompiledClusterReadsIsHeldToTheEnd) {
  Var* var = NewVariable("var", x_);
  Tensor handle = Handle("var");
  NameAttrList cluster;
  cluster.set_name("cluster");
  using Inputs = std::vector<NodeDefBuilder::NodeOut>;
  Op op(Device(1),
        NodeDefBuilder("op", "_XlaCompile")
            .Input(Inputs())
            .Input(Inputs())
            .Input(Inputs({{"var", 0, DT_RESOURCE}}))
            .Attr("must_compile", false)
            .Attr("function", cluster)
            .Attr("_kernel", "MultiStreamTest"),
        {TensorValue(&handle)}, step_, /*is_reader=*/true);
  ASSERT_TRUE(op.Compute().ok());
  AssignAndUse(var);
  EndStep();
}

// Ops that use the list's elements do not have them as inputs.
TEST_F(ForeignMemoryTest, AListThatIsReadFromAVariableIsHeldToTheEnd) {
  Var* var = NewVariable("var", x_);
  Tensor handle = Handle("var");
  *OnCompute() = [this](OpKernelContext* context) {
    Tensor list(DT_VARIANT, TensorShape({1}));
    list.flat<Variant>()(0) = x_;
    context->set_output(0, list);
  };
  ASSERT_TRUE(
      NewOp(1, TensorValue(&handle), "", /*is_reader=*/true).Compute().ok());
  AssignAndUse(var);
  EndStep();
}

// The copy's callback may let another group use the copy at once.
TEST_F(ForeignMemoryTest, OtherGroupsWaitForACopyOfTheLeaders) {
  Tensor copy(DT_FLOAT, TensorShape({1}));
  record_.Take();
  leader_->CopyTensorInSameDevice(
      &x_, &copy, &contexts_[0], [&](const absl::Status&) {
        groups_->OrderAfterLeader(groups_->group(1));
      });
  EXPECT_EQ(record_.Take(), (Calls{"0 records", "1 waits for event of 0"}));
}

// Ops that change a variable are kept out while ops that read or change it are
// launched, and no longer than that.
class OpStateTest : public GroupDeviceTest {
 protected:
  OpStateTest() { NewVariable("var", reference_); }

  Op Writer(const std::string& label = "") {
    return NewOp(0, TensorValue(&handle_), label);
  }
  Op Reader(const std::string& label = "") {
    return NewOp(1, TensorValue(&handle_), label, /*is_reader=*/true);
  }
  // Whether `op` is kept out until `let_in` has been called.
  bool WaitsFor(Op* op, const std::function<void()>& let_in) {
    absl::Notification computed;
    std::thread thread([&] {
      EXPECT_TRUE(op->Compute().ok());
      computed.Notify();
    });
    // Long enough for a thread that no lock keeps out.
    const bool waits =
        !computed.WaitForNotificationWithTimeout(absl::Milliseconds(100));
    let_in();
    thread.join();
    return waits;
  }
  // `op` waits until `other` is done, and then in this way for its group.
  void ExpectWaits(Op op, Op other, const Calls& waits) {
    other.Begin();
    record_.Take();
    EXPECT_TRUE(WaitsFor(&op, [&] {
      EXPECT_EQ(record_.Take(), Calls());
      Finish(&other);
    }));
    EXPECT_EQ(record_.Take(), waits);
  }

  Tensor handle_ = Handle("var");
  mutex mu_;
  Tensor reference_{DT_FLOAT, TensorShape({1})};
  Tensor alias_ = reference_;
};

// An asynchronous op may enqueue work until it is done.
TEST_F(OpStateTest, AChangeAndAnAsynchronousReadWaitForEachOther) {
  ExpectWaits(Writer(), Reader("Later"), {"0 waits for 1"});
  ExpectWaits(Reader(), Writer("Later"),
              {"0 records", "1 waits for event of 0"});
}

// A dequeue op waits for an enqueue op, whose inputs the reader may have to
// make first.
TEST_F(OpStateTest, WhatTakesFromAQueueKeepsNobodyOut) {
  Tensor name(DT_STRING, TensorShape({2}));
  Op take = NewOp(0, TensorValue(&mu_, &name), "Later");
  Op reader = NewOp(1, TensorValue(&alias_));
  step_->NoteReferences();
  take.Begin();
  EXPECT_FALSE(WaitsFor(&reader, [&] { Finish(&take); }));
}

// Any input may be an alias of the reference, whatever the op's graph shows.
TEST_F(OpStateTest, EveryOpOfAStepWithReferencesWaitsForTheirChanges) {
  Op reader = NewOp(1, TensorValue(&alias_), "Later");
  Op writer = NewOp(0, TensorValue(&mu_, &reference_));
  step_->NoteReferences();
  reader.Begin();
  EXPECT_TRUE(WaitsFor(&writer, [&] { Finish(&reader); }));
}

TEST_F(OpStateTest, StepsWithoutReferencesDoNotWaitForTheirChanges) {
  Op reader = Reader(), writer = NewOp(0, TensorValue(&mu_, &reference_));
  bool ran = false;
  *OnCompute() = [&](OpKernelContext*) {  // of the writer
    std::thread([&] { ran = reader.Compute().ok(); }).join();
  };
  EXPECT_TRUE(writer.Compute().ok());
  EXPECT_TRUE(ran);
}

// Otherwise most injected faults would hit handles, and change nothing.
TEST_F(OpStateTest, AFaultThatDropsAHoldIsNotSpentOnAHandle) {
  test_faults_allowed = true;
  ASSERT_TRUE(InjectTestFault(TestFault::kDropHold, 1));
  EXPECT_TRUE(Reader().Compute().ok());
  EXPECT_TRUE(TakeTestFault(TestFault::kDropHold));
  test_faults_allowed = false;
}

// An op that waits for memory does not block ops that would release memory,
// except those that a mutex in its kernel blocks in stock TensorFlow, too.
class MemoryWaitTest : public GroupDeviceTest {
 protected:
  static Tensor Floats(int64_t count, float value) {
    Tensor tensor(DT_FLOAT, TensorShape({count}));
    tensor.flat<float>().setConstant(value);
    return tensor;
  }
  // Runs `op` on `group`, with a variable and another input. On group 1 the op
  // is a step of its own.
  absl::Status Run(int group, const std::string& op, const std::string& name,
                   Tensor input = Tensor()) {
    NodeDefBuilder builder("op", op);
    builder.Input("var", 0, DT_RESOURCE).Attr("dtype", DT_FLOAT);
    Tensor handle = Handle(name);
    std::vector<TensorValue> inputs = {TensorValue(&handle)};
    if (input.NumElements() > 0) {
      builder.Input("x", 0, input.dtype());
      inputs.emplace_back(&input);
    }
    return Op(Device(group), builder, inputs, group == 0 ? nullptr : NewStep(),
              /*is_reader=*/true)
        .Compute();
  }
  // Runs `one` until it waits for memory, then `other`, which releases memory
  // when it ends.
  void RunBoth(const std::function<absl::Status()>& one,
               const std::function<absl::Status()>& other) {
    memory_.SetFull(true);
    absl::Status first;
    std::thread thread([&] { first = one(); });
    memory_.UntilSomebodyWaits();
    const absl::Status second = other();
    memory_.SetFull(false);
    thread.join();
    EXPECT_TRUE(first.ok()) << first;
    EXPECT_TRUE(second.ok()) << second;
  }

  Var* const v_ = NewVariable("v", Floats(2, 3));
  Var* const w_ = NewVariable("w", Floats(2, 3));
};

TEST_F(MemoryWaitTest, AChangeOfAVariableForWhatAReadOfAnotherGivesBack) {
  // `value` shares the buffer, so the change needs memory for a new value.
  const Tensor value = *v_->tensor();
  RunBoth([&] { return Run(0, "AssignAddVariableOp", "v", Floats(2, 3)); },
          [&] { return Run(1, "ReadVariableOp", "w"); });
  EXPECT_EQ(v_->tensor()->flat<float>()(0), 6);
  EXPECT_EQ(value.flat<float>()(0), 3);
}

TEST_F(MemoryWaitTest, AReadOfAVariableForWhatAChangeOfAnotherGivesBack) {
  RunBoth([&] { return Run(1, "ResourceGather", "v", Tensor(0)); },
          [&] { return Run(0, "AssignAddVariableOp", "w", Floats(2, 3)); });
  EXPECT_EQ(w_->tensor()->flat<float>()(0), 6);
}

// A buffer of another group is copied before it becomes a variable's value.
TEST_F(MemoryWaitTest, AnAssignmentForWhatAReadOfTheSameVariableGivesBack) {
  const Tensor value = Floats(256, 5);
  MemoryOwner::Get()->Add(value.data(), value.TotalBytes(), groups_->group(1));
  RunBoth([&] { return Run(0, "AssignVariableOp", "v", value); },
          [&] { return Run(1, "ReadVariableOp", "v"); });
  MemoryOwner::Get()->Add(value.data(), value.TotalBytes(), nullptr);
  EXPECT_NE(v_->tensor()->data(), value.data());
  EXPECT_EQ(v_->tensor()->flat<float>()(0), 5);
}

// The first gather puts the variable in copy-on-read mode, and copies its
// shared buffer for that, on the leader's stream.
TEST_F(MemoryWaitTest, AGatherForWhatAReadOfTheSameVariableGivesBack) {
  const Tensor value = *v_->tensor();
  RunBoth([&] { return Run(1, "ResourceGather", "v", Tensor(0)); },
          [&] { return Run(1, "ReadVariableOp", "v"); });
  EXPECT_TRUE(Run(1, "ResourceGather", "v", Tensor(0)).ok());
  EXPECT_TRUE(v_->copy_on_read_mode.load());
  EXPECT_NE(v_->tensor()->data(), value.data());
  EXPECT_EQ(v_->tensor()->flat<float>()(1), 3);
  EXPECT_EQ(Device(0)->contexts(),
            std::vector<const DeviceContext*>{&contexts_[0]});
  EXPECT_TRUE(Device(1)->contexts().empty());
}

// While the gather waits for memory, a value of another shape is assigned.
TEST_F(MemoryWaitTest, AGatherMovesTheValueThatTheVariableHasByThen) {
  const Tensor value = *v_->tensor();
  const Tensor other = Floats(3, 7);
  RunBoth([&] { return Run(1, "ResourceGather", "v", Tensor(2)); },
          [&] { return Run(0, "AssignVariableOp", "v", other); });
  EXPECT_TRUE(v_->copy_on_read_mode.load());
  EXPECT_NE(v_->tensor()->data(), other.data());
  EXPECT_EQ(v_->tensor()->NumElements(), 3);
  EXPECT_EQ(v_->tensor()->flat<float>()(2), 7);
}

}  // namespace
}  // namespace tensorflow::multistream
