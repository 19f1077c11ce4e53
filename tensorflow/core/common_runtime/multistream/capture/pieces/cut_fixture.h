// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Graphs to cut, for the tests of this room.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_CUT_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_CUT_FIXTURE_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/memory_types.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_fixture.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

using Texts = std::vector<std::string>;

// A GPU's part of a step, with the copies that TensorFlow adds. Unique, Where
// and Cholesky are not captured.
class Part : public PartGraph {
 public:
  explicit Part(const std::string& text) : PartGraph(kGpu, kHost) {
    Define("x", "_Arg T=float index=0");
    Define("ids", "_Arg T=int32 index=1");
    Define("places", "_Arg T=int64 index=2");
    Define("result", "_Retval index=0");
    Define("other", "_Retval index=1");
    Add(text);
    TF_CHECK_OK(EnsureMemoryTypes(DEVICE_GPU, kGpu, &graph));
  }
};

// The types of the ops, without constants and transfers.
inline std::string Ops(const Graph& graph) {
  std::vector<std::string> ops;
  for (const Node* node : graph.op_nodes()) {
    if (!node->IsConstant() && !node->IsSend() && !node->IsRecv()) {
      ops.push_back(node->type_string());
    }
  }
  std::sort(ops.begin(), ops.end());
  return absl::StrJoin(ops, " ");
}

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_CUT_FIXTURE_H_
