// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where does a recording find a step's inputs, and where does it leave the
// outputs? Always at the same addresses: each launch copies the call's inputs
// to them, and the outputs from them.
//
//   call     received, in pinned memory      arguments       sends      results
//                 | one copy (InputBlock)       |              ^           ^
//   recording     '--------> inputs <-----------'              '- places --'

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_COPIES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_COPIES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/capture/record/recording.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_call.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_base.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/util/guarded_philox_random.h"

namespace tensorflow::multistream {

// The layout of several values in one block of memory, so that all values that
// a step receives from the host reach the device in one copy. Each copy takes
// the host microseconds and a lock of the driver, however small it is, and a
// recommender may receive a hundred features.
//
//   host     value 0 |   | value 1 |     | value 2 |     of one launch
//   device   input 0 |   | input 1 |     | input 2 |     of the recording
class InputBlock {
 public:
  // Each input is aligned as device memory is, since alignment decides which
  // kernel an op chooses.
  static constexpr size_t kAlignment = 256;

  InputBlock() = default;
  // For values with these types and shapes.
  explicit InputBlock(const std::vector<Tensor>& values);

  size_t bytes() const { return bytes_; }
  size_t size() const { return places_.size(); }
  // Where the value with this index is in the block.
  size_t At(size_t value) const { return places_[value].at; }
  // Shape of a byte tensor that holds the block.
  TensorShape shape() const { return {static_cast<int64_t>(bytes_)}; }

  // Tensors that refer to the values in `block` and keep `block` alive.
  std::vector<Tensor> In(const Tensor& block) const;

  // Copies values into a block on the host. No value may be larger than its
  // place.
  void Fill(const std::vector<Tensor>& values, Tensor* block) const;

  // The fewest spans that must be copied to move `values` from one block to
  // another. If a value is smaller than its place, the rest of the place is
  // left out.
  struct Span {
    size_t at = 0;
    size_t bytes = 0;
  };
  std::vector<Span> Spans(const std::vector<Tensor>& values) const;

 private:
  struct Place {
    size_t at = 0;
    size_t bytes = 0;
    DataType type = DT_INVALID;
    TensorShape shape;
  };
  std::vector<Place> places_;
  size_t bytes_ = 0;
};

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

  // `generators`: one for each draw of the step.
  RecordedCopies(const StepInterface& step, StreamGroup* group,
                 DeviceBase* device,
                 const std::vector<GuardedPhiloxRandom*>& generators)
      : step_(step),
        group_(group),
        device_(device),
        generators_(generators),
        drawn_(step.draw_shapes.size()),
        places_(step.made()) {}

  // Allocates the recording's memory for inputs like `inputs`. False if there
  // is no memory.
  bool Allocate(const StepInputs& inputs, Recording* recording);

  // Copies a call's values from the host into pinned memory. False if there is
  // no memory.
  bool Stage(const StepInputs& inputs, Tensor* staged) const;
  // Reserves the random numbers that one launch draws: writes the states of the
  // generators into `staged`.
  void Draw(Tensor* staged) const;
  // Allocates memory for a call's outputs. False if there is no memory.
  bool NewOutputs(const CapturedCall& call, std::vector<Tensor>* outputs) const;
  // Both enqueue copies. A call with fewer rows than the recording uses the
  // first rows.
  absl::Status CopyIn(const StepInputs& inputs, const Tensor& staged);
  absl::Status CopyOut(const CapturedCall& call,
                       const std::vector<Tensor>& outputs);

  // Whether CopyOut copies an output to the host: the step has not ended before
  // the copy has.
  bool CopiesToHost() const;

  // Whether the outputs have the shapes that a padded call expects.
  absl::Status CheckPadding(const Padding& padding) const;

  // First values from the host, then arguments. An argument that is a variable
  // holds the handle only during a launch.
  std::vector<Tensor>& inputs() { return inputs_; }
  const Tensor& mask() const { return mask_; }
  const Tensor& draw_state(size_t i) const { return draw_states_[i]; }
  // How many numbers the step draws at a time, by draw.
  std::vector<int64_t>& drawn() { return drawn_; }
  std::vector<ResultPlace>& places() { return places_; }
  const std::vector<ResultPlace>& places() const { return places_; }

 private:
  // Allocates host memory that the device can copy from and to.
  Tensor NewPinned(DataType type, const TensorShape& shape) const;

  const StepInterface& step_;
  StreamGroup* const group_;
  DeviceBase* const device_;
  const std::vector<GuardedPhiloxRandom*>& generators_;
  std::vector<int64_t> drawn_;
  InputBlock block_;  // layout of the values from the host
  Tensor received_;   // the memory of that block
  std::vector<Tensor> inputs_;
  Tensor mask_;                      // of a step that is padded to a length
  std::vector<Tensor> draw_states_;  // as StepInterface::draw_states
  std::vector<ResultPlace> places_;
};

// A padded recording (paddings.h) takes copies of a step's inputs. What is
// added are copies of real rows and entries, which the step can surely process.
using CopyBytes =
    absl::FunctionRef<absl::Status(const void* from, void* to, size_t bytes)>;

absl::Status CopyOnHost(const void* from, void* to, size_t bytes);

// Repeats the rows of a tensor that is no scalar up to `rows`; 0: as they are.
absl::Status PadRows(int64_t rows, Allocator* allocator, CopyBytes copy,
                     Tensor* tensor);

// Repeats the last entry of each row, in the second dimension, up to `length`.
absl::Status PadEntries(int64_t length, Allocator* allocator, CopyBytes copy,
                        Tensor* tensor);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_REPLAY_RECORDED_COPIES_H_
