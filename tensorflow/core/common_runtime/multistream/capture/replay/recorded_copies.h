// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where does a recording find what a step takes, and where does it leave what
// the step makes? Always at the same addresses: each launch copies a call's
// values there, and the results from there.
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

// Where a recording leaves a result, each time.
struct ResultPlace {
  const void* address = nullptr;
  DataType type = DT_INVALID;
  TensorShape shape;
  bool on_host = false;
  Tensor tensor;  // keeps it there, if it is not a variable's
};

// The memory of one recording, of `group`, whose device is `device`.
class RecordedCopies {
 public:
  // What a launch copies from and to: memory of its call's.
  struct OfCall {
    Tensor staged;  // what it receives
    std::vector<Tensor> outputs;
  };

  RecordedCopies(const StepInterface& step, StreamGroup* group,
                 DeviceBase* device)
      : step_(step), group_(group), device_(device), places_(step.outputs()) {}

  // Takes memory of the recording for inputs as these are. False if there is
  // none.
  bool Allocate(const StepInputs& inputs, Recording* recording);

  // Puts what a call receives into pinned memory. False if there is none.
  bool Stage(const StepInputs& inputs, Tensor* staged) const;
  // Takes memory for what a call makes. False if there is none.
  bool NewOutputs(const CapturedCall& call, std::vector<Tensor>* outputs) const;
  // Enqueue copies. The first rows, if there are fewer than the recording has.
  absl::Status CopyIn(const StepInputs& inputs, const Tensor& staged);
  absl::Status CopyOut(const std::vector<Tensor>& outputs);

  // Whether what the step makes has the shapes that a padded call counts on.
  absl::Status CheckPadding(const Padding& padding) const;

  // First what is received, then the arguments; those that are variables have
  // their handle there, for the time of a launch.
  std::vector<Tensor>& inputs() { return inputs_; }
  std::vector<ResultPlace>& places() { return places_; }
  const std::vector<ResultPlace>& places() const { return places_; }

 private:
  // Memory of the host that the device copies from and to.
  Tensor NewPinned(DataType type, const TensorShape& shape) const;

  const StepInterface& step_;
  StreamGroup* const group_;
  DeviceBase* const device_;
  InputBlock block_;  // of what is received
  Tensor received_;   // has it
  std::vector<Tensor> inputs_;
  std::vector<ResultPlace> places_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_COPIES_H_
