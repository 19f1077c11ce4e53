// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/piece_ends.h"

#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {

bool IsEndOfPiece(const Node& node) {
  return node.attrs().Find(kOnHostAttr) != nullptr;
}

bool EndIsOnHost(const Node& end) {
  bool on_host = false;
  if (TryGetNodeAttr(end.attrs(), kOnHostAttr, &on_host)) return on_host;
  return (end.IsArg() ? end.output_type(0) : end.input_type(0)) == DT_INT32;
}

bool DecidesSizes(const Node& node) {
  bool decides = false;
  return TryGetNodeAttr(node.attrs(), kDecidesAttr, &decides) && decides;
}

}  // namespace tensorflow::multistream
