/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// May the steps of a graph be recorded once and launched as a whole from then
// on? The graph-level executor asks when it is made. Pure graph code: no device
// in it.
//
// A recording launches the same kernels on the same memory. So a graph may be
// recorded if what its ops launch depends on nothing but the types and shapes
// of what the graph receives: no op that computes on the host from received
// values, draws random numbers, changes or reads state, or waits for the GPU.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_PLAN_CAPTURABLE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_PLAN_CAPTURABLE_H_

#include <string>
#include <vector>

#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

struct Capturable {
  // Empty if steps of the graph may be recorded. Else the first reason found
  // why not, naming the op and the node.
  std::string obstacle;
  // The rendezvous keys of what the graph receives and sends: values that the
  // session is fed, which are all there before any op has run, and results.
  std::vector<std::string> receives;
  std::vector<std::string> sends;
};

Capturable ClassifyForCapture(const Graph& graph);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_PLAN_CAPTURABLE_H_
