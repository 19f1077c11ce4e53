// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/errors.h"

namespace tensorflow::multistream {
namespace {

constexpr char kLaunchDevice[] = "/job:launch/replica:0/task:0/device:CPU:0";

NodeDef EndOfPiece(absl::string_view kind, absl::string_view host_attr,
                   DataType type, int index, bool on_host) {
  NodeDef def;
  const bool on_device = type == DT_INT32 && !on_host;
  def.set_op(absl::StrCat(on_device ? "_Device" : "_", kind));
  AddNodeAttr("T", type, &def);
  AddNodeAttr("index", index, &def);
  if (type == DT_RESOURCE) return def;
  AddNodeAttr(kOnHostAttr, on_host, &def);
  if (on_host) AddNodeAttr(host_attr, std::vector<int>{0}, &def);
  return def;
}

}  // namespace

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

NodeBuilder& OfLaunch(const std::string& name, NodeBuilder& builder) {
  return builder.Attr("tensor_name", name)
      .Attr("send_device", kLaunchDevice)
      .Attr("send_device_incarnation", 0)
      .Attr("recv_device", kLaunchDevice)
      .Attr("client_terminated", true);
}

std::string KeyOfLaunch(const std::string& name) {
  return Rendezvous::CreateKey(kLaunchDevice, 0, kLaunchDevice, name,
                               FrameAndIter(0, 0));
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

bool IsEndOfPiece(const Node& node) {
  return node.attrs().Find(kOnHostAttr) != nullptr;
}

bool IsArgument(const Node& node) {
  return node.type_string() == "_Arg" || (node.IsArg() && IsEndOfPiece(node));
}

bool IsResult(const Node& node) {
  return node.type_string() == "_Retval" ||
         (node.IsRetval() && IsEndOfPiece(node));
}

bool EndIsOnHost(const Node& end) {
  bool on_host = false;
  if (TryGetNodeAttr(end.attrs(), kOnHostAttr, &on_host)) return on_host;
  return (end.IsArg() ? end.output_type(0) : end.input_type(0)) == DT_INT32;
}

bool HasNoPlace(DataType type) {
  return BaseType(type) == DT_RESOURCE || BaseType(type) == DT_STRING ||
         BaseType(type) == DT_VARIANT;
}

bool ComesFromHost(const Node& node) {
  return node.IsRecv() && !HasNoPlace(node.output_type(0)) &&
         (node.type_string() == "_HostRecv" || node.output_type(0) == DT_INT32);
}

bool IsHostArgument(const Node& node) {
  return node.type_string() == "_Arg" && !HasNoPlace(node.output_type(0)) &&
         EndIsOnHost(node);
}

bool DecidesSizes(const Node& node) {
  bool decides = false;
  return TryGetNodeAttr(node.attrs(), kDecidesAttr, &decides) && decides;
}

NodeDef ArgumentOfPiece(DataType type, int index, bool on_host) {
  return EndOfPiece("Arg", "_output_hostmem", type, index, on_host);
}

NodeDef ResultOfPiece(DataType type, int index, bool on_host) {
  return EndOfPiece("Retval", "_input_hostmem", type, index, on_host);
}

}  // namespace tensorflow::multistream
