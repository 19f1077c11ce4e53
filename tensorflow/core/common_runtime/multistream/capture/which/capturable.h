// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// May the steps of a graph be recorded once and replayed from then on? The
// graph-level executor asks when it is created. Pure graph code: no device in
// it.
//
// A recording launches the same kernels on the same memory. So a graph may be
// recorded if the launches of its ops depend only on the types and shapes of
// the graph's inputs, and on the addresses of its variables. No op may compute
// on the host from input values, wait for the GPU, or change state other than
// variables and generators of random numbers.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURABLE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURABLE_H_

#include <string>
#include <vector>

#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/graph/graph.h"

namespace tensorflow::multistream {

struct Capturable {
  // Empty if steps of the graph may be recorded. Else the first reason found
  // why not, naming the op and the node.
  std::string obstacle;
  // Name of the node, if the obstacle is at one.
  std::string obstacle_at;
  // A piece of a step (capture/pieces/): the step goes on on the same stream.
  bool is_piece = false;
  // XLA compiles a part of the graph.
  bool is_compiled = false;

  // The inputs, all of which exist before any op of the graph runs: values from
  // the host, by their rendezvous keys, and arguments of a call.
  struct Argument {
    int index = 0;  // in the call frame
    bool is_variable = false;
    bool on_host = false;  // recorded as a value from the host
    // A value on the host that decides sizes: each value has its own recording.
    bool decides = false;
  };
  std::vector<std::string> receives;
  // Those that an AddN may take over (sums.h).
  std::vector<std::string> summands;
  // Arguments that are only sent to the host, which the values from the host
  // may depend on (PassesArgumentOn).
  struct Passed {
    std::string key;
    int index = 0;  // in the call frame
    bool on_host = false;
  };
  std::vector<Passed> passed;
  // Received, and needed only if a check does not hold (ValuesOnDevice).
  std::vector<std::string> messages;
  std::vector<Argument> arguments;

  // The variables that the graph may read or change.
  struct Variable {
    int argument = -1;  // index in `arguments`; if -1, see `name`
    std::string container;
    std::string name;
    bool gathered = false;  // an op reads rows of it
    bool changed = false;   // an op gives it a new value
  };
  std::vector<Variable> variables;

  bool changes_variables = false;

  // The nodes that draw random numbers (drawn_numbers.h).
  std::vector<std::string> draws;

  // The outputs: sent to the host, and returned to the caller.
  struct Result {
    int index = 0;           // in the call frame
    bool on_host = false;    // int32: the caller expects it there
    bool on_device = false;  // although the ops leave it on the device
  };
  std::vector<std::string> sends;
  // Conditions that are sent to the host, as the step fails if one is false.
  std::vector<std::string> checks;
  std::vector<Result> results;
};

// Whether the node runs code that XLA has compiled, or has XLA compile it.
bool IsCompiled(const Node& node);

// How many kernels a node that launches any launches at most: code that XLA
// compiles, one for each of its ops. `library` contains the functions.
int MostKernelsOf(const Node& node, const FunctionLibraryDefinition& library);

// Obstacles of single nodes, by node id; empty for a node that may be recorded.
// Transfers, arguments and results have none here.
std::vector<std::string> ObstaclesAt(const Graph& graph,
                                     const FunctionLibraryDefinition* library);

// `graph` is one that PutValuesOnDevice returned (values_on_device.h), or a
// step's own. `library` contains the functions that XLA compiles; nullptr: the
// graph's own library does.
Capturable ClassifyForCapture(const Graph& graph,
                              const FunctionLibraryDefinition* library);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_CAPTURABLE_H_
