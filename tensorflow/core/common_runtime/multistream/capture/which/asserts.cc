// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/asserts.h"

#include "absl/algorithm/container.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/host_values.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow::multistream {
namespace {

constexpr char kCheck[] = "_multi_stream_check";

}  // namespace

bool IsAssert(const Node& node) { return node.type_string() == "Assert"; }

bool IsMessage(const Node& node) {
  return (node.IsConstant() || (node.IsRecv() && IsEarlyValue(node))) &&
         node.output_type(0) == DT_STRING &&
         absl::c_all_of(node.out_nodes(), [](const Node* user) {
           return !user->IsOp() || IsAssert(*user);
         });
}

NodeDef SendOfCondition(const Node& assertion, const std::string& name) {
  NodeDef def;
  DeviceNameUtils::ParsedName host;
  // A function's nodes have lost what they were assigned.
  const std::string& device = assertion.assigned_device_name().empty()
                                  ? assertion.requested_device()
                                  : assertion.assigned_device_name();
  if (!DeviceNameUtils::ParseFullName(device, &host) || !host.has_type) {
    return def;
  }
  host.type = DEVICE_CPU;
  host.id = 0;
  def.set_op("_Send");
  def.set_name(name);
  def.add_input(assertion.name());
  AddNodeAttr("T", DT_BOOL, &def);
  AddNodeAttr("tensor_name", assertion.name(), &def);
  AddNodeAttr("send_device", device, &def);
  AddNodeAttr("send_device_incarnation", 0, &def);
  AddNodeAttr("recv_device", DeviceNameUtils::ParsedNameToString(host), &def);
  AddNodeAttr("client_terminated", false, &def);
  AddNodeAttr(kCheck, true, &def);
  return def;
}

bool IsCheck(const Node& node) {
  bool marked = false;
  return TryGetNodeAttr(node.attrs(), kCheck, &marked) && marked;
}

}  // namespace tensorflow::multistream
