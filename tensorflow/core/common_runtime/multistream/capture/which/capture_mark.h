// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which steps does the program itself want to be captured? The functions that
// tf.cuda.captured makes (captured.py) say so in an attribute of their
// arguments. Passes of attach carry it to each device's part of the graph that
// a call runs; the graph-level executor asks for it.
//
//   def f(x)        arguments marked
//   def g(x)        calls f
//   graph of g      before functions are inlined, and optimized: marked, since
//                   it calls f, on arguments and results, which stay
//   its parts       marked on what they take and give

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_MARK_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_MARK_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// Its value is one of the words of TF_MULTI_STREAM_CAPTURE: off, auto, require.
inline constexpr char kCaptureAttr[] = "_multi_stream_capture";

// Before functions are lowered, which LowerFunctionalOpsPass does in phase 10.
inline constexpr int kCaptureMarkPhase = 5;

// Marks the arguments and results of `graph` if it has a marked node, or calls
// a function that has, at any depth. Of several marks, `require` counts before
// `auto`, and `auto` before `off`. InvalidArgument names a node with an unknown
// mark.
absl::Status MarkArgumentsAndResults(const FunctionLibraryDefinition& library,
                                     Graph* graph);

// Marks what each of the parts, which run in one step, takes and gives, if one
// of them is marked.
void MarkParts(absl::Span<Graph* const> parts);

// The mark of a part, if it has one.
std::optional<CaptureMode> CaptureMarkOf(const Graph& graph);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURE_MARK_H_
