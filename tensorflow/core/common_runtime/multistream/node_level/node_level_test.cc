// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Node level on emulated GPUs: memory, variables, and the faults that the
// sanitizer finds. The results of programs are compared in
// tensorflow/python/multistream/node_level.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/cc/ops/no_op.h"
#include "tensorflow/cc/ops/resource_variable_ops.h"
#include "tensorflow/cc/ops/training_ops.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_stream_group.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/common_runtime/multistream/testing/variables.h"
#include "tensorflow/core/framework/resource_var.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {
namespace {

constexpr int kGroups = 4;  // TF_GPU_STREAM_GROUP_COUNT of this target

Scope GpuScope() { return Scope::NewRootScope().WithDevice("/device:GPU:0"); }

// A session of the scope's graph, in which the nodes whose name begins with
// "gN" are in group N.
std::unique_ptr<Session> GroupedSession(const Scope& scope) {
  GraphDef graph;
  EXPECT_TRUE(scope.ToGraphDef(&graph).ok());
  for (NodeDef& node : *graph.mutable_node()) {
    const std::string& name = node.name();
    if (name.size() > 1 && name[0] == 'g' && name[1] >= '0' && name[1] <= '9') {
      (*node.mutable_attr())[kStreamGroupAttr].set_i(name[1] - '0');
    }
  }
  Session* session = nullptr;
  EXPECT_TRUE(NewSession(PlainOptions(), &session).ok());
  EXPECT_TRUE(session->Create(graph).ok());
  return std::unique_ptr<Session>(session);
}

Tensor RunOnce(Session* session, const Tensor& x, const std::string& output,
               const std::vector<std::string>& targets = {}) {
  std::vector<Tensor> outputs;
  const absl::Status status =
      session->Run({{"x:0", x}}, {output}, targets, &outputs);
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? outputs[0] : Tensor();
}

Tensor Square(int size, int seed) {
  Tensor x(DT_FLOAT, TensorShape({size, size}));
  auto flat = x.flat<float>();
  for (int i = 0; i < flat.size(); ++i) {
    flat(i) = std::cos(static_cast<float>(seed * 1000 + i)) / 4;
  }
  return x;
}

class NodeLevelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MultiStreamIsEnabled()) << CheckEnvironment();
    reports_ = SanitizerReports();
  }
  void TearDown() override {
    for (int i = 0; i < kTestFaults; ++i) {
      InjectTestFault(static_cast<TestFault>(i), 0);
    }
  }
  int64_t NewReports() const { return SanitizerReports() - reports_; }
  void ExpectNoFaults() const { EXPECT_EQ(NewReports(), 0); }

  int64_t reports_ = 0;
};

TEST_F(NodeLevelTest, MemoryComesFromTheGroupOfTheNode) {
  Scope root = GpuScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  std::vector<Output> ends;
  for (int group = 0; group < kGroups; ++group) {
    const std::string name = "g" + std::to_string(group);
    Output y = x;
    for (int i = 0; i < 4; ++i) {
      y = ops::Tanh(root.WithOpName(name),
                    ops::MatMul(root.WithOpName(name), y, y));
    }
    ends.push_back(y);
  }
  ops::AddN(root.WithOpName("sum"), ends);
  auto session = GroupedSession(root);
  for (int i = 0; i < 10; ++i) RunOnce(session.get(), Square(32, i), "sum:0");
  ExpectNoFaults();
  for (int group = 1; group < kGroups; ++group) {
    EXPECT_GT(StreamStats()[group].peak_bytes_in_use, 0) << group;
  }
  EXPECT_TRUE(Eventually(
      [] { return BytesInUse(1) + BytesInUse(2) + BytesInUse(3) == 0; }));
}

// The slice shares its tensor's memory and is the last reference to it.
TEST_F(NodeLevelTest, AnOpThatWritesIntoAPartOfATensor) {
  Scope scope = GpuScope();
  auto x = ops::Placeholder(scope.WithOpName("x"), DT_FLOAT);
  auto parts = ops::Split(scope.WithOpName("g1_parts"), 0,
                          ops::Exp(scope.WithOpName("g1_exp"), x), 4);
  auto row = ops::Reshape(scope.WithOpName("g1_row"), parts[1], {-1});
  ops::Neg(scope.WithOpName("g1_neg"), row);
  const std::unique_ptr<Session> session = GroupedSession(scope);
  Tensor fed(DT_FLOAT, {8, 64});
  fed.flat<float>().setZero();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(RunOnce(session.get(), fed, "g1_neg").flat<float>()(127), -1);
  }
  ExpectNoFaults();
}

// A training step of four branches that meet in a loss, each with an optimizer
// of its own. Their groups read the variables, and make the gradients.
//
//   group 1  read w1, x * w1, tanh --        -- gradient --
//   group 2  read w2, x * w2, tanh --- loss --- gradient --- updates
//   ...
//
// So all reads are before all updates, and no update needs to make a copy.
Scope Training() {
  Scope root = GpuScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  auto variable = [&](const std::string& name, int seed) {
    Output handle = ops::VarHandleOp(root, DT_FLOAT, TensorShape({32, 32}),
                                     ops::VarHandleOp::SharedName(name));
    ops::AssignVariableOp(root.WithOpName("init_" + name), handle,
                          ops::Const(root, Square(32, seed)));
    return handle;
  };
  auto at = [&](int group, const std::string& name) {
    return root.WithOpName("g" + std::to_string(group) + "_" + name);
  };
  std::vector<Output> weights, ends;
  for (int branch = 0; branch < kGroups; ++branch) {
    weights.push_back(variable("w" + std::to_string(branch), 50 + branch));
    Output read =
        ops::ReadVariableOp(at(branch, "read"), weights.back(), DT_FLOAT);
    ends.push_back(ops::Tanh(at(branch, "tanh"),
                             ops::MatMul(at(branch, "product"), x, read)));
  }
  Output loss = ops::AddN(root.WithOpName("loss"), ends);
  Output rate = ops::Const(root, 0.01f);
  std::vector<Operation> updates;
  for (int branch = 0; branch < kGroups; ++branch) {
    Output back = ops::Mul(at(branch, "back"), loss, ends[branch]);
    Output gradient = ops::MatMul(at(branch, "gradient"), x, back,
                                  ops::MatMul::TransposeA(true));
    const Scope update = root.WithOpName("update" + std::to_string(branch));
    const Output& w = weights[branch];
    if (branch == 2) {
      updates.push_back(
          ops::ResourceApplyMomentum(update, w, variable("momentum", 60), rate,
                                     gradient, ops::Const(root, 0.9f))
              .operation);
    } else if (branch == 3) {
      Output small = ops::Mul(at(branch, "small"), rate, gradient);
      updates.push_back(ops::AssignSubVariableOp(update, w, small).operation);
    } else {
      updates.push_back(
          ops::ResourceApplyGradientDescent(update, w, rate, gradient)
              .operation);
    }
  }
  ops::NoOp(root.WithOpName("train").WithControlDependencies(updates));
  return root;
}

// The variable's value, in its buffer.
Tensor ValueOf(Session* session, const std::string& variable) {
  const core::RefCountPtr<Var> found = FindVariable(session, variable);
  if (found == nullptr) return Tensor();
  mutex_lock lock(*found->mu());
  return *found->tensor();
}

// Other groups' holds of a variable, which last until the step ends, are
// released before the change, so variables change in place.
TEST_F(NodeLevelTest, TrainingChangesVariablesInPlace) {
  const std::vector<std::string> variables = {"w0", "w1", "w2", "w3",
                                              "momentum"};
  auto session = GroupedSession(Training());
  for (const std::string& name : variables) {
    ASSERT_TRUE(session->Run({}, {}, {"init_" + name}, nullptr).ok());
  }
  std::map<std::string, const void*> buffers;
  for (int i = 0; i <= 10; ++i) {
    RunOnce(session.get(), Square(32, 7 + i), "loss:0", {"train"});
    for (const std::string& name : variables) {
      const void* buffer = ValueOf(session.get(), name).data();
      // Before the first step, variables may share buffers with constants.
      if (i == 0) buffers[name] = buffer;
      EXPECT_EQ(buffer, buffers[name]) << name << " after step " << i;
    }
  }
  ExpectNoFaults();
}

// Shows that the sanitizer finds a fault, in the run in which it found none.
//
//   group 1  --- g1_a -----------          g1_a's memory is released when
//                     \                    g2_b has been launched; nothing
//   group 2  ---------- w --- g2_b ---     orders group 1 after g2_b.
// Names end with `suffix`: a pair of ops is reported once.
Scope HandOver(const std::string& suffix) {
  Scope root = GpuScope();
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  Output a = ops::Tanh(root.WithOpName("g1_a" + suffix), x);
  Output b = ops::MatMul(root.WithOpName("g2_b" + suffix), a, a);
  ops::Neg(root.WithOpName("g2_c" + suffix), b);
  return root;
}

class FaultTest : public NodeLevelTest {
 protected:
  static EmulatedStreamGroup* Group(int i) {
    return static_cast<EmulatedStreamGroup*>(FindGpuGroups(0)->group(i));
  }

  // The sanitizer reports the fault, in the graph of HandOver, in these words.
  void ExpectReport(TestFault fault, int times,
                    const std::vector<std::string>& words) {
    const std::string suffix = std::to_string(static_cast<int>(fault));
    auto session = GroupedSession(HandOver(suffix));
    const Tensor x = Square(32, 1);
    auto run = [&] { RunOnce(session.get(), x, "g2_c" + suffix + ":0"); };
    run();
    EXPECT_EQ(NewReports(), 0);
    ::testing::internal::CaptureStderr();
    EXPECT_TRUE(InjectTestFault(fault, times));
    // Make the ops take long: memory is not in use once ops have completed.
    for (int i = 0; i < kGroups; ++i) Group(i)->Pause();
    std::atomic<bool> ended{false};
    std::thread step([&] {
      run();
      ended = true;
    });
    EXPECT_TRUE(
        Eventually([&] { return ended || Group(0)->threads_that_wait() > 0; }));
    for (int i = 0; i < kGroups; ++i) Group(i)->Resume();
    step.join();
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_GT(NewReports(), 0) << said;
    for (const std::string& word : words) {
      EXPECT_NE(said.find(word), std::string::npos) << word << "\n" << said;
    }
  }
};

TEST_F(FaultTest, AWaitThatIsDroppedIsReportedByName) {
  // The first wait is for x, the second for g1_a.
  ExpectReport(TestFault::kDropWait, 2,
               {"g2_b", "g1_a", "group 2 must wait for group 1"});
}

TEST_F(FaultTest, AHoldThatIsDroppedIsReportedByName) {
  ExpectReport(TestFault::kDropHold, 100, {"g2_b", "freed"});
}

TEST_F(FaultTest, MemoryGivenBackTooEarlyIsReportedByName) {
  ExpectReport(TestFault::kReleaseTooEarly, 100, {"g2_b", "freed"});
}

// TensorFlow copies an eager tensor from the host to memory that no op asked
// for, and waits for the copy, which comes after all work of the leader's
// stream.
TEST_F(FaultTest, MemoryForACopyFromTheHostIsUsedAtOnce) {
  auto session = GroupedSession(HandOver("_copy"));
  StreamGroup* leader = FindGpuGroups(0)->leader();
  Sanitizer* sanitizer = leader->sanitizer();
  constexpr size_t kSize = 4096;
  auto use_again = [&](const std::string& op) {
    void* first = leader->allocator()->AllocateRaw(64, kSize);
    sanitizer->Launch(0, op + "_before", {{first, kSize, true, "m"}});
    leader->allocator()->DeallocateRaw(first);
    void* again = leader->allocator()->AllocateRaw(64, kSize);
    EXPECT_EQ(again, first);
    sanitizer->Launch(1, op, {{again, kSize, false, "m"}});
    sanitizer->WaitForTail(0, 1);
    leader->allocator()->DeallocateRaw(again);
  };
  use_again("copied");
  EXPECT_EQ(NewReports(), 0);
  // Other groups may use memory that an op asked for only after that op.
  {
    GroupOnThread on(leader);
    use_again("computed");
  }
  EXPECT_EQ(NewReports(), 1);
}

}  // namespace
}  // namespace tensorflow::multistream
