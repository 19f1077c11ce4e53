// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// May the steps of a graph be recorded once and launched as a whole from then
// on? The graph-level executor asks when it is made. Pure graph code: no device
// in it.
//
// A recording launches the same kernels on the same memory. So a graph may be
// recorded if what its ops launch depends on nothing but the types and shapes
// of what the graph takes, and where its variables are: no op that computes on
// the host from values that it takes, draws random numbers, or waits for the
// GPU; and none that changes other state than variables.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURABLE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURABLE_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow {
namespace multistream {

struct Capturable {
  // Empty if steps of the graph may be recorded. Else the first reason found
  // why not, naming the op and the node.
  std::string obstacle;
  // XLA compiles some of it.
  bool is_compiled = false;

  // What the graph takes, which is all there before any of its ops has run:
  // values from the host, by their rendezvous keys, and arguments of a call.
  struct Argument {
    int index = 0;  // in the call frame
    bool is_variable = false;
  };
  std::vector<std::string> receives;
  std::vector<Argument> arguments;

  // The variables that it may read or change.
  struct Variable {
    int argument = -1;  // in `arguments`; or none, and it has a name:
    std::string container;
    std::string name;
    bool gathered = false;  // some op reads rows of it
    bool changed = false;   // some op gives it a new value
  };
  std::vector<Variable> variables;

  bool changes_variables = false;

  // What it gives: to the host, and to its caller.
  struct Result {
    int index = 0;  // in the call frame
    bool on_host = false;
  };
  std::vector<std::string> sends;
  std::vector<Result> results;
};

// `library` has the functions that XLA compiles; nullptr: the graph's own has.
Capturable ClassifyForCapture(const Graph& graph,
                              const FunctionLibraryDefinition* library);

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURABLE_H_
