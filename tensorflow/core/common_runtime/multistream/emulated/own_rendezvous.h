// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What if a graph that sends tensors to itself is run without a rendezvous?
//
// The function of a data set is called without one if its ops are all on the
// data set's device and that device is a CPU: on a CPU no op sends to another
// op of the same device. An emulated GPU is a CPU to TensorFlow, and yet the
// partitioner adds such sends there, between ops on host memory and on the
// GPU's. (On a machine with a GPU, data sets stay on the CPU: no GPU kernel
// makes one.) An executor of such a graph then makes a rendezvous for each run.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_OWN_RENDEZVOUS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_OWN_RENDEZVOUS_H_

#include <memory>

#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

// Makes `executor` run `graph` also where its caller gives no rendezvous, if
// `graph` is on an emulated GPU and receives tensors.
void GiveOwnRendezvous(const LocalExecutorParams& params, const Graph& graph,
                       std::unique_ptr<Executor>* executor);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_OWN_RENDEZVOUS_H_
