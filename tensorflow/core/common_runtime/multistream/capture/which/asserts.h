// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is a graph with an Assert captured? An Assert reads its condition on the
// host. The recorded graph sends the condition to the host in the Assert's
// place, and if the condition does not hold, the step runs without capture and
// fails as it always does.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_ASSERTS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_ASSERTS_H_

#include <string>

#include "tensorflow/core/framework/node_def.pb.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

bool IsAssert(const Node& node);

// Whether the node is a text that only Asserts use: a constant, or what the
// step receives early, as on a GPU, which has no such constants.
bool IsMessage(const Node& node);

// A _Send, called `name`, of the condition of `assertion` to the host of its
// device. An empty NodeDef if that device is unknown.
NodeDef SendOfCondition(const Node& assertion, const std::string& name);

// Whether a _Send stands for an Assert: it sends the condition.
bool IsCheck(const Node& node);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_ASSERTS_H_
