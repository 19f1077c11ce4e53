// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which thread runs a graph of the host that only passes tensors on? An
// executor of such a graph asks at the beginning of each step.
//
// A function on a GPU has one: it sends the arguments to the GPU, and receives
// the results. TensorFlow wakes a thread of its pool to send, another to
// receive and a third to say that the step is over. All of that is less work
// than to wake one thread, and a captured step is launched where its last
// argument is sent:
//
//   caller           pool                        callbacks of streams
//   RunAsync ------> send, launch
//   waits            retval <------------------- result is there
//                    over
//   RunAsync, send, launch                       with the executor made here
//   waits            retval, over <------------- result is there
//   RunAsync, send, launch                       and with a WaitingCaller
//   waits <------------------------------------- retval, over
//
// No op of such a graph blocks, and nothing else is run in the caller's thread.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PASS_THROUGH_GRAPH_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PASS_THROUGH_GRAPH_H_

#include <memory>

#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// Whether the ops of a graph of the host are arguments, results, constants and
// what sends and receives tensors.
bool OnlyPassesTensorsOn(const Graph& graph);

// An executor of such a graph: what a step can do at once, it does in its
// caller's thread. What has to wait for a tensor goes on where the caller wants
// it, or where the tensor comes from if the caller is a WaitingCaller.
std::unique_ptr<Executor> RunWhereTensorsAre(std::unique_ptr<Executor> stock);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PASS_THROUGH_GRAPH_H_
