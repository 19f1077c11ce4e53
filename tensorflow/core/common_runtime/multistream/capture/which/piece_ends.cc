// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/which/piece_ends.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

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
