// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where does a recording find a step's inputs, and where does it leave the
// outputs? Always at the same addresses: each launch copies the call's inputs
// to them, and the outputs from them.
//
//   call     received, in pinned memory      arguments       sends      results
//                 | one copy (input_block.h)    |              ^           ^
//   recording     '--------> inputs <-----------'              '- places --'

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_COPIES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_COPIES_H_

#include <vector>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_call.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/input_block.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow {
namespace multistream {

// The place where every launch of a recording leaves one output.
struct ResultPlace {
  const void* address = nullptr;
  DataType type = DT_INVALID;
  TensorShape shape;
  bool on_host = false;
  Tensor tensor;  // owns the memory, unless a variable does
};

// Input and output memory of one recording of `group`, whose device is
// `device`.
class RecordedCopies {
 public:
  // Memory of one call, which a launch copies from and to.
  struct OfCall {
    Tensor staged;  // values from the host, in pinned memory
    std::vector<Tensor> outputs;
  };

  RecordedCopies(const StepInterface& step, StreamGroup* group,
                 DeviceBase* device)
      : step_(step), group_(group), device_(device), places_(step.outputs()) {}

  // Allocates the recording's memory for inputs like `inputs`. False if there
  // is no memory.
  bool Allocate(const StepInputs& inputs, Recording* recording);

  // Copies a call's values from the host into pinned memory. False if there is
  // no memory.
  bool Stage(const StepInputs& inputs, Tensor* staged) const;
  // Allocates memory for a call's outputs. False if there is no memory.
  bool NewOutputs(const CapturedCall& call, std::vector<Tensor>* outputs) const;
  // Both enqueue copies. A call with fewer rows than the recording uses the
  // first rows.
  absl::Status CopyIn(const StepInputs& inputs, const Tensor& staged);
  absl::Status CopyOut(const std::vector<Tensor>& outputs);

  // Whether the outputs have the shapes that a padded call expects.
  absl::Status CheckPadding(const Padding& padding) const;

  // First values from the host, then arguments. An argument that is a variable
  // holds the handle only during a launch.
  std::vector<Tensor>& inputs() { return inputs_; }
  std::vector<ResultPlace>& places() { return places_; }
  const std::vector<ResultPlace>& places() const { return places_; }

 private:
  // Allocates host memory that the device can copy from and to.
  Tensor NewPinned(DataType type, const TensorShape& shape) const;

  const StepInterface& step_;
  StreamGroup* const group_;
  DeviceBase* const device_;
  InputBlock block_;  // layout of the values from the host
  Tensor received_;   // the memory of that block
  std::vector<Tensor> inputs_;
  std::vector<ResultPlace> places_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_COPIES_H_
