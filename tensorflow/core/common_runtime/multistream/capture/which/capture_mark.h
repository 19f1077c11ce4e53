// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which steps does the program itself want to be captured? Functions made by
// tf.cuda.captured (captured.py) carry a mark: an attribute of their arguments.
// Graph passes of hooks/ copy the mark to each device's part of the graph that
// a call runs; the graph-level executor reads it.
//
//   def f(x)        arguments marked
//   def g(x)        calls f
//   graph of g      before functions are inlined, and optimized: marked, since
//                   it calls f, on arguments and results, which stay
//   its parts       marked on what they take and give

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_MARK_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_MARK_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// The attribute's value is a word of TF_MULTI_STREAM_CAPTURE: off, auto,
// require.
inline constexpr char kCaptureAttr[] = "_multi_stream_capture";

// Before LowerFunctionalOpsPass (phase 10) lowers functions.
inline constexpr int kCaptureMarkPhase = 5;

// Marks the arguments and results of `graph` if a node is marked, in the graph
// or in a function called at any depth. Of several marks, `require` wins over
// `auto`, and `auto` over `off`. InvalidArgument names a node with an unknown
// mark.
absl::Status MarkArgumentsAndResults(const FunctionLibraryDefinition& library,
                                     Graph* graph);

// Marks the inputs and outputs of all parts of a step, if one part is marked.
void MarkParts(absl::Span<Graph* const> parts);

// The mark of a part, if it has one.
std::optional<CaptureMode> CaptureMarkOf(const Graph& graph);

// Why no step of the process can be captured; empty if steps can.
std::string WhyNothingIsCaptured();

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_MARK_H_
