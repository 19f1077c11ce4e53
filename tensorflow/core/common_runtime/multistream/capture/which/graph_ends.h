// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do tensors enter and leave a device's part of a graph, or a piece of it
// (capture/pieces/)? By sends and receives, of which those belong together that
// tell the same transfer; and by _Args and _Retvals, which say where the
// tensors of a piece are.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_GRAPH_ENDS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_GRAPH_ENDS_H_

#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/node_builder.h"

namespace tensorflow::multistream {

// The tensor's name, the sending and the receiving device.
using Transfer = std::tuple<std::string, std::string, std::string>;

// The transfer of a send or receive.
Transfer TransferOf(const Node& node);
std::string TensorNameOf(const Node& node);
// The rendezvous key of a send or receive outside loops.
absl::Status KeyOf(const Node& node, std::string* key);

// What no device sends: a recording's launch gives its ops the tensor `name`,
// or takes it. Attributes of the builder of such a transfer, and the rendezvous
// key.
NodeBuilder& OfLaunch(const std::string& name, NodeBuilder& builder);
std::string KeyOfLaunch(const std::string& name);

// Whether the node sends or receives within one device, as between the GPU and
// the host for ops of the GPU.
bool IsCopyInPlace(const Node& node);

// Whether the tensor is on the host.
inline constexpr char kOnHostAttr[] = "_multi_stream_on_host";
// The argument is on the host and decides sizes.
inline constexpr char kDecidesAttr[] = "_multi_stream_decides";

// Whether the node has kOnHostAttr.
bool IsEndOfPiece(const Node& node);

// Whether the node is an argument, or a result, of a step or a piece. A
// _DeviceArg or _DeviceRetval, for int32 on the GPU, is one of a piece only.
bool IsArgument(const Node& node);
bool IsResult(const Node& node);

// Whether the tensor of an _Arg or _Retval is on the host: as it says, or, if
// it is no piece's, for int32.
bool EndIsOnHost(const Node& end);

// Whether the step or piece takes a value from the host by this node: by a
// receive, or an _Arg, not a _DeviceArg.
bool ComesFromHost(const Node& node);
bool IsHostArgument(const Node& node);
// Whether a tensor of this type is neither a number on the host nor one on the
// device.
bool HasNoPlace(DataType type);

bool DecidesSizes(const Node& node);

// Without names and inputs. The kernels take the tensor to be where the tensor
// is: ops that copy a tensor ask the kernel that gave it. (TensorFlow's _Arg
// has int32 on the host, and other types on the GPU.)
NodeDef ArgumentOfPiece(DataType type, int index, bool on_host);
NodeDef ResultOfPiece(DataType type, int index, bool on_host);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_GRAPH_ENDS_H_
