// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// For tests of the whole runtime: sessions on emulated GPUs.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_EMULATED_SESSION_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_EMULATED_SESSION_H_

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "tensorflow/core/protobuf/rewriter_config.pb.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow::multistream {

// Nodes run as written: no constant folding, fusion or common subexpression
// elimination.
inline SessionOptions PlainOptions() {
  SessionOptions options;
  options.config.set_allow_soft_placement(true);
  GraphOptions* graph = options.config.mutable_graph_options();
  graph->mutable_optimizer_options()->set_opt_level(OptimizerOptions::L0);
  graph->mutable_rewrite_options()->set_disable_meta_optimizer(true);
  return options;
}

inline std::unique_ptr<Session> SessionOf(const Scope& scope,
                                          const SessionOptions& options) {
  GraphDef graph;
  absl::Status status = scope.ToGraphDef(&graph);
  EXPECT_TRUE(status.ok()) << status;
  Session* session = nullptr;
  status = NewSession(options, &session);
  EXPECT_TRUE(status.ok()) << status;
  if (!status.ok()) return nullptr;
  status = session->Create(graph);
  EXPECT_TRUE(status.ok()) << status;
  return std::unique_ptr<Session>(session);
}

inline std::unique_ptr<Session> SessionOf(const Scope& scope) {
  return SessionOf(scope, PlainOptions());
}

// Streams complete their work on threads of their own: waits until they have.
inline bool Eventually(const std::function<bool()>& condition) {
  for (int i = 0; i < 1000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

inline int64_t BytesInUse(int group) {
  return StreamStats().at(group).bytes_in_use;
}

// The sum of a counter over all groups.
inline int64_t Total(int64_t StreamGroupStats::*counter) {
  int64_t total = 0;
  for (const StreamGroupStats& group : StreamStats()) total += group.*counter;
  return total;
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_EMULATED_SESSION_H_
