// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Does a session's step at node level end when all its groups are done, and no
// earlier? TensorFlow's sessions promise it, without TF_SYNC_ON_FINISH=false.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_stream_group.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {
namespace {

constexpr int kGroups = 4;  // TF_GPU_STREAM_GROUP_COUNT of this target

EmulatedStreamGroup* Group(int i) {
  return static_cast<EmulatedStreamGroup*>(FindGpuGroups(0)->group(i));
}

// Node "gN" is in group N.
std::unique_ptr<Session> OneNodeAGroup() {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  Output x = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  for (int i = 0; i < kGroups; ++i) {
    ops::Tanh(root.WithOpName("g" + std::to_string(i)), x);
  }
  GraphDef graph;
  EXPECT_TRUE(root.ToGraphDef(&graph).ok());
  for (NodeDef& node : *graph.mutable_node()) {
    if (node.name()[0] == 'g') {
      (*node.mutable_attr())[kStreamGroupAttr].set_i(node.name()[1] - '0');
    }
  }
  Session* session = nullptr;
  EXPECT_TRUE(NewSession(PlainOptions(), &session).ok());
  EXPECT_TRUE(session->Create(graph).ok());
  return std::unique_ptr<Session>(session);
}

TEST(SyncedStepsTest, AStepEndsWhenAllItsGroupsAreDone) {
  ASSERT_TRUE(MultiStreamIsEnabled()) << CheckEnvironment();
  const std::unique_ptr<Session> session = OneNodeAGroup();
  const auto run = [&session](const std::string& target) {
    EXPECT_TRUE(
        session->Run({{"x", Tensor(1.0f)}}, {}, {target}, nullptr).ok());
  };
  for (int i = 0; i < kGroups; ++i) run("g" + std::to_string(i));
  for (int i = 0; i < kGroups; ++i) {
    const std::string target = "g" + std::to_string(i);
    Group(i)->Pause();
    std::atomic<bool> ended{false};
    std::thread step([&] {
      run(target);
      ended = true;
    });
    // It syncs the leader's stream, which waits for the paused one.
    EXPECT_TRUE(
        Eventually([&] { return ended || Group(0)->threads_that_wait() > 0; }));
    EXPECT_FALSE(ended) << target;
    Group(i)->Resume();
    step.join();
  }
}

}  // namespace
}  // namespace tensorflow::multistream
