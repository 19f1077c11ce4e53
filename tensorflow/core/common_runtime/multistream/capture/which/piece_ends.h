// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where are the tensors that a piece of a graph (capture/pieces/) takes and
// gives? Its _Args and _Retvals say so.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_PIECE_ENDS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_PIECE_ENDS_H_

#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/framework/types.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

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

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_PIECE_ENDS_H_
