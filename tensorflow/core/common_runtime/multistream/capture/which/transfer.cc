// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/transfer.h"

#include "tensorflow/core/framework/node_def_util.h"

namespace tensorflow::multistream {

Transfer TransferOf(const Node& node) {
  Transfer transfer;
  TryGetNodeAttr(node.attrs(), "tensor_name", &std::get<0>(transfer));
  TryGetNodeAttr(node.attrs(), "send_device", &std::get<1>(transfer));
  TryGetNodeAttr(node.attrs(), "recv_device", &std::get<2>(transfer));
  return transfer;
}

std::string TensorNameOf(const Node& node) {
  return std::get<0>(TransferOf(node));
}

bool IsCopyInPlace(const Node& node) {
  if (!node.IsSend() && !node.IsRecv()) return false;
  const auto [name, from, to] = TransferOf(node);
  return from == to;
}

}  // namespace tensorflow::multistream
