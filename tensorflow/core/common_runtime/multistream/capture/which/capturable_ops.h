// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which ops launch the same kernels in each step with the same types and
// shapes? An op is listed if its GPU kernel's launches depend only on types,
// shapes, and host values that other listed ops compute from types, shapes and
// constants: so neither a value on the device nor an input decides how often a
// loop runs. A listed op's kernel neither waits for the GPU nor copies from
// memory of the host that is gone when a recording is replayed, as Roll's does.
// Other ops are not recorded.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURABLE_OPS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURABLE_OPS_H_

#include "absl/strings/string_view.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Whether an op is listed. Some of its types may be refused: ObstacleAtOp.
bool IsListed(absl::string_view op);

// Why `node`, which changes no variable, must not be recorded; "" if it may.
const char* ObstacleAtOp(const Node& node);

// Whether the op copies this input from the host to the device. If shapes
// decide the value, and the recording keeps it for replays, the op may be
// recorded.
bool CopiesHostInput(const Node& node, int input);
bool CopiesHostInput(const Node& node);  // any input

// Why a node that scatters does so on the host, for which TensorFlow waits for
// the GPU; "" if it does not, or if the node is another op.
const char* ObstacleAtScatter(const Node& node);

// Whether the op makes, changes or passes on a list of tensors that the host
// does not read: a DT_VARIANT. The list itself is on the host; while a step is
// recorded, its elements are memory of the recording, or constants.
bool MayHaveList(const Node& node);

// Whether an input or output is a DT_VARIANT.
bool HasVariant(const Node& node);

// Whether the op gives a variable's shape to the host.
bool GivesVariableShape(const Node& node);

// Whether the op changes its variables, keeping their shapes. These ops'
// launches, too, depend only on types and shapes.
bool ChangesVariables(absl::string_view op);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURABLE_OPS_H_
