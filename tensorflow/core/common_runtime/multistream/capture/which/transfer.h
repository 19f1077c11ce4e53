// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which sends and receives belong together? Those that tell the same transfer.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_TRANSFER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_TRANSFER_H_

#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// The tensor's name, the sending and the receiving device.
using Transfer = std::tuple<std::string, std::string, std::string>;

// The transfer of a send or receive.
Transfer TransferOf(const Node& node);
std::string TensorNameOf(const Node& node);
// The rendezvous key of a send or receive outside loops.
absl::Status KeyOf(const Node& node, std::string* key);

// Whether the node sends or receives within one device, as between the GPU and
// the host for ops of the GPU.
bool IsCopyInPlace(const Node& node);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_TRANSFER_H_
