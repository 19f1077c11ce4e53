// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Graphs whose nodes have groups, on emulated GPUs, for tests of node level.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_LEVEL_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_LEVEL_FIXTURE_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/emulated/memory_in_use.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/node_level/function_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow {
namespace multistream {

inline constexpr int kGroups = 4;  // TF_GPU_STREAM_GROUP_COUNT of this target

inline Scope GpuScope() {
  return Scope::NewRootScope().WithDevice("/device:GPU:0");
}

// A session of the scope's graph, in which the nodes whose name, without its
// scopes, begins with "gN" are in group N.
inline std::unique_ptr<Session> GroupedSession(const Scope& scope) {
  GraphDef graph;
  EXPECT_TRUE(scope.ToGraphDef(&graph).ok());
  for (NodeDef& node : *graph.mutable_node()) {
    const std::string name = node.name().substr(node.name().rfind('/') + 1);
    if (name.size() > 1 && name[0] == 'g' && name[1] >= '0' && name[1] <= '9') {
      (*node.mutable_attr())[kStreamGroupAttr].set_i(name[1] - '0');
    }
  }
  Session* session = nullptr;
  EXPECT_TRUE(NewSession(PlainOptions(), &session).ok());
  EXPECT_TRUE(session->Create(graph).ok());
  return std::unique_ptr<Session>(session);
}

inline Tensor RunOnce(Session* session, const Tensor& x,
                      const std::string& output,
                      const std::vector<std::string>& targets = {}) {
  std::vector<Tensor> outputs;
  const absl::Status status =
      session->Run({{"x:0", x}}, {output}, targets, &outputs);
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? outputs[0] : Tensor();
}

inline Tensor Square(int size, int seed) {
  Tensor x(DT_FLOAT, TensorShape({size, size}));
  auto flat = x.flat<float>();
  for (int i = 0; i < flat.size(); ++i) {
    flat(i) = std::cos(static_cast<float>(seed * 1000 + i)) / 4;
  }
  return x;
}

inline bool SameBits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), a.TotalBytes()) == 0;
}

class NodeLevelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MultiStreamIsEnabled()) << CheckEnvironment();
    reports_ = SanitizerReports();
    violations_ = MemoryInUse::Get()->violations();
  }
  void TearDown() override {
    for (int i = 0; i < kTestFaults; ++i) {
      InjectTestFault(static_cast<TestFault>(i), 0);
    }
  }
  int64_t NewReports() const { return SanitizerReports() - reports_; }
  void ExpectNoFaults() const {
    EXPECT_EQ(NewReports(), 0);
    EXPECT_EQ(MemoryInUse::Get()->violations(), violations_);
  }

  int64_t reports_ = 0;
  int64_t violations_ = 0;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_NODE_LEVEL_NODE_LEVEL_FIXTURE_H_
