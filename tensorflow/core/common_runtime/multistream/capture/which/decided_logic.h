// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a recording know a loop's condition that is made of two? TensorFlow
// computes LogicalAnd on the GPU and copies the result to the host, in each
// iteration: `map_fn` and Keras's RNN have such loops. In a recorded graph,
// logic of decided values (values_on_device.h) is on the host:
//
//   i < n -- And -- copy to the host -- LoopCond   =>   i < n -- And --
//   LoopCond i < m -/                                            i < m -/ host
//   GPU                                        host

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_DECIDED_LOGIC_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_DECIDED_LOGIC_H_

#include "absl/strings/string_view.h"

namespace tensorflow::multistream {

// The op that computes the same as `op` on the host; nullptr if there is none.
// Its kernel is for recordings only (record/decided_values.cc).
const char* LogicOnHost(absl::string_view op);

inline constexpr char kAndOfDecided[] = "_MultiStreamAndOfDecided";
inline constexpr char kOrOfDecided[] = "_MultiStreamOrOfDecided";
inline constexpr char kNotOfDecided[] = "_MultiStreamNotOfDecided";

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_WHICH_DECIDED_LOGIC_H_
