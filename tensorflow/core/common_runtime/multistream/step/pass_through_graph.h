// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which thread runs a graph on the host that only passes tensors on
// (FirstComputingOp)? The graph's executor decides at the beginning of each
// step.
//
// Each function on a GPU has such a graph on the host: it sends the arguments
// to the GPU, and receives the results. Stock TensorFlow wakes one pool thread
// to send, another to receive and a third to end the step, which takes longer
// than their jobs. Besides, sending a captured step's last argument launches
// the step:
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
// No op of a pass-through graph blocks, and the caller's thread runs no other
// graph's ops meanwhile.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PASS_THROUGH_GRAPH_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PASS_THROUGH_GRAPH_H_

#include <memory>

#include "tensorflow/core/common_runtime/executor.h"

namespace tensorflow::multistream {

// An executor for a pass-through graph. Ops that are ready at once run in the
// caller's thread. An op that waits for a tensor runs on the caller's runner,
// or, for a WaitingCaller, in the thread that brings the tensor.
std::unique_ptr<Executor> RunWhereTensorsAre(std::unique_ptr<Executor> stock);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_PASS_THROUGH_GRAPH_H_
