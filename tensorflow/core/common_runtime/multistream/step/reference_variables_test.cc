// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A reference variable is not changed while an op that has its memory is being
// launched. That includes ops of called functions and, on an emulated GPU, ops
// on the leader, which run when they are launched.

#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/state_ops.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {
namespace {

// Long enough for a step that no lock keeps out.
constexpr absl::Duration kBriefly = absl::Milliseconds(200);

Session* session = nullptr;
bool on_leader = false;
std::thread* changing = nullptr;
absl::Notification* changed = nullptr;
bool was_changed = false;  // in the middle of the launch

absl::Status Change(float value) {
  Tensor x(DT_FLOAT, TensorShape({4}));
  x.flat<float>().setConstant(value);
  std::vector<Tensor> none;
  return session->Run({{"x:0", x}}, {}, {"change"}, &none);
}

REGISTER_OP("MultiStreamReferenceOp").Input("x: float").Output("y: float");

// In its first launch on the leader or another group, another step tries to
// change the variable.
class ReferenceOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    const StreamGroup* group = GroupOnThread::Get();
    if (group != nullptr && group->is_leader() == on_leader &&
        changing == nullptr) {
      changing = new std::thread([] {
        const absl::Status status = Change(2);
        EXPECT_TRUE(status.ok()) << status;
        changed->Notify();
      });
      was_changed = changed->WaitForNotificationWithTimeout(kBriefly);
    }
    context->set_output(0, context->input(0));
  }
};
REGISTER_KERNEL_BUILDER(Name("MultiStreamReferenceOp").Device(DEVICE_CPU),
                        ReferenceOp);

// change: v = x.  call: f(v), which is op(v).  op: op(v)
GraphDef ChangeAndCall() {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  Output v = ops::Variable(root.WithOpName("v"), {4}, DT_FLOAT);
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  ops::Assign(root.WithOpName("change"), v, x);
  ops::Identity(root.WithOpName("value"), v);
  GraphDef graph;
  EXPECT_TRUE(root.ToGraphDef(&graph).ok());
  FunctionDef function = FunctionDefHelper::Create(
      "f", {"x: float"}, {"y: float"}, {},
      {{{"op"}, "MultiStreamReferenceOp", {"x"}, {}}}, {{"y", "op:y:0"}});
  (*function.mutable_attr())["_noinline"].set_b(true);
  *graph.mutable_library()->add_function() = function;
  NameAttrList f;
  f.set_name("f");
  EXPECT_TRUE(
      NodeDefBuilder("call", "PartitionedCall")
          .Input(std::vector<NodeDefBuilder::NodeOut>({{"value", 0, DT_FLOAT}}))
          .Attr("Tout", DataTypeVector({DT_FLOAT}))
          .Attr("f", f)
          .Device("/device:GPU:0")
          .Finalize(graph.add_node())
          .ok());
  EXPECT_TRUE(NodeDefBuilder("op", "MultiStreamReferenceOp")
                  .Input("value", 0, DT_FLOAT)
                  .Device("/device:GPU:0")
                  .Finalize(graph.add_node())
                  .ok());
  return graph;
}

TEST(ReferenceVariablesTest, AreNotChangedWhileAnOpOrFunctionIsLaunched) {
  ASSERT_TRUE(MultiStreamIsEnabled()) << CheckEnvironment();
  session = NewSession(PlainOptions());
  ASSERT_TRUE(session->Create(ChangeAndCall()).ok());
  for (const std::string target : {"op", "call"}) {
    for (const bool leader : {false, true}) {
      SCOPED_TRACE(target);
      on_leader = leader;
      ASSERT_TRUE(Change(1).ok());
      changed = new absl::Notification;
      changing = nullptr;
      for (int i = 0; i < 8; ++i) {
        std::vector<Tensor> none;
        const absl::Status status = session->Run({}, {}, {target}, &none);
        ASSERT_TRUE(status.ok()) << status;
      }
      ASSERT_NE(changing, nullptr) << "no step ran there: " << leader;
      changing->join();
      EXPECT_FALSE(was_changed) << leader;
    }
  }
}

}  // namespace
}  // namespace tensorflow::multistream
