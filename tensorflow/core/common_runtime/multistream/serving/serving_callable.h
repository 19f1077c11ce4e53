// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is a function called without the GIL? tf.cuda.serving_callable loads this
// library with ctypes (serving_interface.cc). A call reads the arguments from
// arrays, or from the bytes of a request, and runs the function. The first call
// is TensorFlow's, later ones are direct if they can be (direct_function.h).

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_SERVING_CALLABLE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_SERVING_CALLABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "tensorflow/c/c_api.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/core/common_runtime/multistream/serving/batched_calls.h"
#include "tensorflow/core/common_runtime/multistream/serving/direct_function.h"
#include "tensorflow/core/common_runtime/multistream/serving/python_arrays.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow::multistream {

template <auto kDelete>
struct Deleter {
  template <typename T>
  void operator()(T* deleted) const {
    kDelete(deleted);
  }
};
using HostTensor = std::unique_ptr<TF_Tensor, Deleter<TF_DeleteTensor>>;

// A NumPy array: the address of the array's field that points to its data.
using Array = void* const*;

// Copies a result to an array.
void CopyTo(Array array, const TF_Tensor* tensor);

// An error, or results that do not fit the caller's arrays. Python reads the
// first three fields.
struct CallResult {
  int32_t code = TF_OK;
  const char* message = "";
  const int64_t* shapes = nullptr;  // of each result: rank, then dimensions

  std::string message_text;
  std::vector<int64_t> shape_numbers;
  std::vector<HostTensor> tensors;
};

// A function, with all that its calls have in common. Calls are thread-safe.
class ServingCallable {
 public:
  ServingCallable(TFE_Context* context, std::string function,
                  std::string config, std::string executor,
                  std::vector<TF_DataType> inputs,
                  std::vector<TF_DataType> outputs);

  const std::vector<TF_DataType>& inputs() const { return inputs_; }
  size_t output_count() const { return outputs_.size(); }

  // Null until BindArrays was called.
  PythonArrays* python_arrays() const { return python_arrays_.get(); }
  void BindArrays(const PythonObject* array_type, PythonObject* empty,
                  PythonObject* flat_list, const PythonObject* const* dtypes);

  // Adds a captured tensor, of which the callable keeps its own reference.
  bool AddCapture(TFE_TensorHandle* captured);

  // Whether calls in the scope of `device` (null: of none) are direct.
  bool IsDirect(const char* device) const;

  // Null if the results are in the arrays.
  CallResult* Call(const char* device, const int64_t* shapes,
                   const Array* arrays);
  // The same with tensors on the host, which have the types of inputs().
  absl::Status Call(const char* device, const std::vector<Tensor>& arguments,
                    std::vector<Tensor>* results);

  // Makes such calls, in as few steps as possible (batched_calls.h). Returns
  // how many steps were made.
  size_t CallTogether(const char* device, const std::vector<int>& sizes,
                      absl::Span<BatchedCall> calls);
  // OK if a call with arguments of `shapes` may be a part of a step of so many
  // rows, or says why not.
  absl::Status MayShare(const char* device,
                        const std::vector<TensorShape>& shapes,
                        int64_t rows) const;

 private:
  using Handle =
      std::unique_ptr<TFE_TensorHandle, Deleter<TFE_DeleteTensorHandle>>;

  // By a call of TensorFlow's; `target` becomes the name of the device that the
  // call was for.
  absl::Status Execute(const char* device, const std::vector<Tensor>& arguments,
                       std::vector<Tensor>* results, std::string* target) const;

  TFE_Context* const context_;  // owned by Python
  const std::string function_;
  const std::string config_;
  const std::string executor_;
  const std::vector<TF_DataType> inputs_;
  const std::vector<TF_DataType> outputs_;
  std::vector<Handle> captures_;
  DirectFunctions direct_;
  std::unique_ptr<PythonArrays> python_arrays_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_SERVING_CALLABLE_H_
