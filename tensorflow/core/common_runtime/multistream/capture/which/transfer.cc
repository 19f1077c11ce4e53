// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/transfer.h"

#include <cstdint>

#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

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

absl::Status KeyOf(const Node& node, std::string* key) {
  std::string name, from, to;
  int64_t incarnation;
  TF_RETURN_IF_ERROR(GetNodeAttr(node.attrs(), "tensor_name", &name));
  TF_RETURN_IF_ERROR(GetNodeAttr(node.attrs(), "send_device", &from));
  TF_RETURN_IF_ERROR(GetNodeAttr(node.attrs(), "recv_device", &to));
  TF_RETURN_IF_ERROR(
      GetNodeAttr(node.attrs(), "send_device_incarnation", &incarnation));
  if (from == to) {
    return absl::InvalidArgumentError(
        "copies between the GPU and the host in the middle of the step");
  }
  if (!IsOfType(node.IsRecv() ? from : to, DEVICE_CPU)) {
    return absl::InvalidArgumentError("has another device at its other end");
  }
  *key = Rendezvous::CreateKey(from, static_cast<uint64_t>(incarnation), to,
                               name, FrameAndIter(0, 0));
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
