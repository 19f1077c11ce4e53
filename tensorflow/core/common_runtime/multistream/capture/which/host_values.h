// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which values does a step on a GPU take from the host? Graph passes of hooks/
// prepare the values for capture.
//
// A captured step starts once all its values have arrived, so no value may
// depend on the step's own results. Once a graph has been divided among its
// devices, early values are marked, which exist before the step's ops on a GPU
// run; ClassifyForCapture (capturable.h) reads the mark.
//
//   host   feed --> a --> send ......... early: nothing before it receives
//                             :
//   GPU                    receive --> b --> send ....
//                                                    :
//   host                                          receive --> c --> send
//                                                                  not early
//
// A value may also depend on an argument that is on the GPU, which the GPU's
// part only sends to the host: the default value of a table, or ids that the
// host splits. Such arguments are sent before the step waits for its values.
//
//   GPU    argument --> send            receive --> b --> ...
//                         :                :
//   host               receive --> c --> send ... after arguments
//
// TensorFlow leaves a loop's values from the host on the host, and sends them
// to the GPU in each iteration; an example is a loop over the columns of an
// argument. A captured step cannot contain such copies. So after placement,
// these values are moved to the GPU, by one copy before the loop:
//
//   host   x - Enter - Merge - Switch -> each time      x -> once
//   GPU        LoopCond               -> body       =>       Enter - Merge -
//   ...

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_HOST_VALUES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_HOST_VALUES_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

// Marks the receives of early values. `parts` are all graphs that run in one
// step, each on its device.
void MarkEarlyValues(absl::Span<Graph* const> parts);

// Whether `node` receives a value that is marked as early.
bool IsEarlyValue(const Node& node);
// Whether `node` receives a value that exists once arguments are passed on, or
// is early.
bool ComesAfterArguments(const Node& node);
// Whether `send` only passes an argument of the step on, to a CPU.
bool PassesArgumentOn(const Node& send);

// What a received value waits for.
struct ValueWaits {
  bool known = false;
  // The tensor names of this part's sends that the value depends on.
  std::vector<std::string> sends;
  // A branch may leave the value out.
  bool in_branch = false;
};
ValueWaits WaitsOf(const Node& receive);

// Gives a CPU whose ops take a small constant of a GPU one of its own: a GPU
// would send the value in each step, and what comes back would not be early.
// TensorFlow has the axis of a Split of int32 on the GPU, and the Split on the
// host, for example.
void CopyConstants(Graph* graph);

// Moves the values of loops on a GPU to the GPU. Does not change a loop that
// computes anything outside its GPU.
void MoveLoopValues(Graph* graph);

// Moves the ops that give a tensor's shape to the GPU whose ops take the shape,
// if the tensor goes there, too: TensorFlow has them where the tensor is made,
// and on the GPU the shape would be any value from the host. Call it before
// MoveLoopValues, which does not change a loop with such an op on the host.
void MoveShapes(Graph* graph);

// Lets ops that give the shape of an int32 tensor on the GPU take the tensor
// there, as another type. Their kernels for int32 take it on the host: then
// TensorFlow would wait for the GPU to copy values that nobody reads, as after
// a Unique of ids.
absl::Status TakeIntegersOnDevice(Graph* graph);

// Moves a function's results, which no device was asked for, to the GPU that
// computes them. TensorFlow places such nodes on a GPU by itself, but not on an
// emulated one, whose results would go to the host and back.
void MoveResults(Graph* graph);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_HOST_VALUES_H_
