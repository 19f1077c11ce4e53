// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Parts of steps as text (testing/text_graph.h), for the tests of this room.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_GRAPH_FIXTURE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_GRAPH_FIXTURE_H_

#include <string>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/multistream/testing/text_graph.h"

namespace tensorflow::multistream {

inline constexpr char kHost[] = "/job:a/replica:0/task:0/device:CPU:0";
inline constexpr char kGpu[] = "/job:a/replica:0/task:0/device:GPU:0";

// The part of a step on device `here`. What a node receives or sends has the
// node's name. early() receives a value that is marked as early.
class PartGraph : public TextGraph {
 public:
  PartGraph(const std::string& here, const std::string& there) {
    const std::string receives = absl::StrCat(
        " tensor_type=float tensor_name=$name send_device_incarnation=7",
        " send_device=", there, " recv_device=", here);
    Define("receive", "_Recv" + receives);
    Define("host_receive", "_HostRecv" + receives);
    Define("early", "_Recv _multi_stream_early=true" + receives);
    Define("send",
           absl::StrCat("_Send tensor_name=$name send_device_incarnation=7",
                        " send_device=", here, " recv_device=", there));
    Define("arg", "_Arg T=float index=0");
    Define("result", "_Retval index=0");
    Define("handle", "VarHandleOp dtype=float shape=[2] shared_name=$name");
    Define("read", "ReadVariableOp dtype=float");
    Define("gather", "ResourceGather dtype=float");
    Define("enter", "Enter frame_name=loop");
  }

  // Closes a loop: `next` gives the second input of `merge`.
  void Close(const std::string& next, const std::string& merge) {
    TF_CHECK_OK(graph.UpdateEdge((*this)[next], 0, (*this)[merge], 1));
  }
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_GRAPH_FIXTURE_H_
