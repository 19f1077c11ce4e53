// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is a function called without the GIL? tf.cuda.serving_callable loads this
// library with ctypes. One call of TFMS_CallServing reads the arguments from
// arrays, runs the function, and copies the results to arrays. The first call
// is TensorFlow's, later ones are direct if they can be (direct_function.h).

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/c/tf_tensor.h"
#include "tensorflow/c/tf_tensor_internal.h"
#include "tensorflow/core/common_runtime/multistream/base/on_thread.h"
#include "tensorflow/core/common_runtime/multistream/serving/direct_function.h"
#include "tensorflow/core/common_runtime/multistream/serving/python_arrays.h"
#include "tensorflow/core/platform/tstring.h"

namespace tensorflow::multistream {
namespace {

template <auto kDelete>
struct Deleter {
  template <typename T>
  void operator()(T* deleted) const {
    kDelete(deleted);
  }
};
using Status = std::unique_ptr<TF_Status, Deleter<TF_DeleteStatus>>;
using HostTensor = std::unique_ptr<TF_Tensor, Deleter<TF_DeleteTensor>>;
using Handle =
    std::unique_ptr<TFE_TensorHandle, Deleter<TFE_DeleteTensorHandle>>;
using Op = std::unique_ptr<TFE_Op, Deleter<TFE_DeleteOp>>;

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

CallResult* Failed(TF_Code code, std::string message) {
  auto* result = new CallResult;
  result->code = code;
  result->message_text = std::move(message);
  result->message = result->message_text.c_str();
  return result;
}

CallResult* Failed(const absl::Status& status) {
  return Failed(static_cast<TF_Code>(status.code()),
                std::string(status.message()));
}

CallResult* Failed(const Status& status) {
  return Failed(TF_GetCode(status.get()), TF_Message(status.get()));
}

// Steps over one shape: its rank, then its dimensions.
const int64_t* NextShape(const int64_t* shape) {
  return shape + 1 + (*shape > 0 ? *shape : 0);
}

bool HasShape(const TF_Tensor* tensor, const int64_t* shape) {
  const int rank = TF_NumDims(tensor);
  if (rank != shape[0]) return false;
  for (int i = 0; i < rank; ++i) {
    if (TF_Dim(tensor, i) != shape[1 + i]) return false;
  }
  return true;
}

// A NumPy array: the address of the array's field that points to its data.
using Array = void* const*;

void CopyTo(Array array, const TF_Tensor* tensor) {
  const size_t bytes = TF_TensorByteSize(tensor);
  if (bytes > 0) std::memcpy(*array, TF_TensorData(tensor), bytes);
}

// A copy of an array. A copy is needed: a result or a variable may share an
// argument's memory long after the call, and the caller may change the array
// as soon as the call returns.
HostTensor CopyOf(Array array, TF_DataType type, const int64_t* shape) {
  size_t bytes = TF_DataTypeSize(type);
  for (int i = 0; i < shape[0]; ++i) bytes *= shape[1 + i];
  HostTensor tensor(
      TF_AllocateTensor(type, shape + 1, static_cast<int>(shape[0]), bytes));
  if (tensor != nullptr && bytes > 0) {
    std::memcpy(TF_TensorData(tensor.get()), *array, bytes);
  }
  return tensor;
}

// A tensor of strings, from an array of bytes: an int64 offset of each string,
// and of the end of the last one; then the bytes of all strings.
HostTensor StringsOf(Array array, const int64_t* shape) {
  int64_t count = 1;
  for (int i = 0; i < shape[0]; ++i) count *= shape[1 + i];
  std::vector<int64_t> offsets(count + 1);
  std::memcpy(offsets.data(), *array, offsets.size() * sizeof(int64_t));
  const char* bytes =
      static_cast<const char*>(*array) + offsets.size() * sizeof(int64_t);
  auto* strings = new tstring[count];
  for (int64_t i = 0; i < count; ++i) {
    strings[i].assign(bytes + offsets[i], offsets[i + 1] - offsets[i]);
  }
  return HostTensor(TF_NewTensor(
      TF_STRING, shape + 1, static_cast<int>(shape[0]), strings,
      count * sizeof(tstring),
      [](void* data, size_t, void*) { delete[] static_cast<tstring*>(data); },
      nullptr));
}

// A function, with all that its calls have in common. Calls are thread-safe.
class ServingCallable {
 public:
  ServingCallable(TFE_Context* context, std::string function,
                  std::string config, std::string executor,
                  std::vector<TF_DataType> inputs,
                  std::vector<TF_DataType> outputs)
      : context_(context),
        function_(std::move(function)),
        config_(std::move(config)),
        executor_(std::move(executor)),
        inputs_(std::move(inputs)),
        outputs_(std::move(outputs)),
        direct_(context, function_, static_cast<int>(inputs_.size())) {}

  size_t output_count() const { return outputs_.size(); }

  // Null until BindArrays was called.
  PythonArrays* python_arrays() const { return python_arrays_.get(); }
  void BindArrays(const PythonObject* array_type, PythonObject* empty,
                  PythonObject* flat_list, const PythonObject* const* dtypes) {
    std::vector<size_t> sizes;
    for (TF_DataType type : inputs_) sizes.push_back(TF_DataTypeSize(type));
    python_arrays_ = std::make_unique<PythonArrays>(
        array_type, empty, flat_list,
        std::vector<const PythonObject*>(dtypes, dtypes + inputs_.size()),
        std::move(sizes));
  }

  // Adds a captured tensor, of which the callable keeps its own reference.
  bool AddCapture(TFE_TensorHandle* captured) {
    Status status(TF_NewStatus());
    captures_.emplace_back(
        TFE_TensorHandleCopySharingTensor(captured, status.get()));
    direct_.AddCapture(captured);
    return TF_GetCode(status.get()) == TF_OK;
  }

  // Whether calls in the scope of `device` (null: of none) are direct.
  bool IsDirect(const char* device) const {
    return direct_.Of(device) != nullptr;
  }

  // Null if the results are in the arrays.
  CallResult* Call(const char* device, const int64_t* shapes,
                   const Array* arrays) {
    std::vector<HostTensor> arguments;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      arguments.push_back(inputs_[i] == TF_STRING
                              ? StringsOf(arrays[i], shapes)
                              : CopyOf(arrays[i], inputs_[i], shapes));
      if (arguments.back() == nullptr) {
        return Failed(TF_RESOURCE_EXHAUSTED,
                      "No host memory for argument " + std::to_string(i));
      }
      shapes = NextShape(shapes);
    }
    std::vector<HostTensor> results;
    CallResult* failed = nullptr;
    if (const DirectFunction* direct = direct_.Of(device)) {
      failed = CallDirectly(*direct, arguments, &results);
    } else {
      direct_.Learn(device, [&] {
        failed = Execute(device, arguments, &results);
        return failed == nullptr;
      });
    }
    if (failed != nullptr) return failed;
    bool in_place = true;
    const int64_t* expected = shapes;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (TF_TensorType(results[i].get()) != outputs_[i]) {
        return Failed(TF_INTERNAL, "Result " + std::to_string(i) + " of " +
                                       function_ + " has another type.");
      }
      in_place = in_place && HasShape(results[i].get(), expected);
      expected = NextShape(expected);
    }
    if (!in_place) return WithShapes(std::move(results));
    for (size_t i = 0; i < results.size(); ++i) {
      CopyTo(arrays[inputs_.size() + i], results[i].get());
    }
    return nullptr;
  }

 private:
  // Appends the results' tensors.
  CallResult* CallDirectly(const DirectFunction& function,
                           const std::vector<HostTensor>& arguments,
                           std::vector<HostTensor>* results) const {
    std::vector<Tensor> given(arguments.size()), made;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const absl::Status status =
          TF_TensorToTensor(arguments[i].get(), &given[i]);
      if (!status.ok()) return Failed(status);
    }
    absl::Status status = function.Call(given, &made);
    for (const Tensor& result : made) {
      if (!status.ok()) break;
      results->emplace_back(TF_TensorFromTensor(result, &status));
    }
    return status.ok() ? nullptr : Failed(status);
  }

  // The same by a call of TensorFlow's.
  CallResult* Execute(const char* device,
                      const std::vector<HostTensor>& arguments,
                      std::vector<HostTensor>* results) const {
    const Status status(TF_NewStatus());
    const auto is_ok = [&] { return TF_GetCode(status.get()) == TF_OK; };
    Op op(TFE_NewOp(context_, function_.c_str(), status.get()));
    if (!is_ok()) return Failed(status);
    TFE_OpSetDevice(op.get(), device, status.get());
    if (!is_ok()) return Failed(status);
    TFE_OpSetAttrString(op.get(), "executor_type", executor_.data(),
                        executor_.size());
    TFE_OpSetAttrString(op.get(), "config_proto", config_.data(),
                        config_.size());
    std::vector<Handle> inputs;
    for (const HostTensor& argument : arguments) {
      inputs.emplace_back(TFE_NewTensorHandle(argument.get(), status.get()));
      if (!is_ok()) return Failed(status);
      TFE_OpAddInput(op.get(), inputs.back().get(), status.get());
      if (!is_ok()) return Failed(status);
    }
    for (const Handle& capture : captures_) {
      TFE_OpAddInput(op.get(), capture.get(), status.get());
      if (!is_ok()) return Failed(status);
    }
    std::vector<TFE_TensorHandle*> made(outputs_.size());
    int count = static_cast<int>(made.size());
    {
      // TFE_Execute returns when the results are there.
      WaitingCaller waits;
      TFE_Execute(op.get(), made.data(), &count, status.get());
    }
    if (!is_ok()) return Failed(status);
    std::vector<Handle> outputs;
    for (int i = 0; i < count; ++i) outputs.emplace_back(made[i]);
    if (outputs.size() != outputs_.size()) {
      return Failed(TF_INTERNAL,
                    function_ + " gave " + std::to_string(count) + " results.");
    }
    for (const Handle& output : outputs) {
      results->emplace_back(
          TFE_TensorHandleResolve(output.get(), status.get()));
      if (!is_ok()) return Failed(status);
    }
    return nullptr;
  }

  static CallResult* WithShapes(std::vector<HostTensor> tensors) {
    auto* result = new CallResult;
    for (const HostTensor& tensor : tensors) {
      const int rank = TF_NumDims(tensor.get());
      result->shape_numbers.push_back(rank);
      for (int i = 0; i < rank; ++i) {
        result->shape_numbers.push_back(TF_Dim(tensor.get(), i));
      }
    }
    result->shapes = result->shape_numbers.data();
    result->tensors = std::move(tensors);
    return result;
  }

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

// What a call of TFMS_CallWithArrays needs until it returns.
struct StagedCall {
  // Stages the arguments; returns their plan, or null if the call is to take
  // the way in Python.
  const PythonArrays::Plan* Stage(PythonArrays* arrays,
                                  PythonObject* arguments) {
    if (!arrays->StageStrings(arguments, &staged)) return nullptr;
    const PythonArrays::Plan* plan = arrays->PlanOf(arguments);
    if (plan == nullptr || !arrays->Stage(arguments, *plan, &staged)) {
      return nullptr;
    }
    for (void* const& data : staged.data) addresses.push_back(&data);
    return plan;
  }
  // Returns a list of new arrays for results; null if there is no memory.
  PythonObject* NewResults(const PythonArrays& arrays, PythonObject* results,
                           size_t count) {
    std::vector<Array> data(count);
    PythonObject* list = arrays.NewResults(results, &data);
    addresses.insert(addresses.end(), data.begin(), data.end());
    return list;
  }

  PythonArrays::Staged staged;
  std::vector<Array> addresses;  // of arguments' and results' data
};

std::vector<TF_DataType> Types(const int32_t* numbers, int count) {
  std::vector<TF_DataType> types;
  for (int i = 0; i < count; ++i) {
    types.push_back(static_cast<TF_DataType>(numbers[i]));
  }
  return types;
}

}  // namespace
}  // namespace tensorflow::multistream

extern "C" {

using tensorflow::multistream::Array;
using tensorflow::multistream::CallResult;
using tensorflow::multistream::NumpyArray;
using tensorflow::multistream::Python;
using tensorflow::multistream::PythonArrays;
using tensorflow::multistream::PythonObject;
using tensorflow::multistream::ServingCallable;

// Delete the result with TFMS_DeleteServing. Null if a captured tensor cannot
// be shared. Types are numbers of tensorflow::DataType.
ServingCallable* TFMS_NewServing(TFE_Context* context, const char* function,
                                 const char* config, int config_size,
                                 const char* executor, const int32_t* inputs,
                                 int input_count, const int32_t* outputs,
                                 int output_count,
                                 TFE_TensorHandle* const* captures,
                                 int capture_count) {
  auto callable = std::make_unique<ServingCallable>(
      context, function, std::string(config, config_size), executor,
      tensorflow::multistream::Types(inputs, input_count),
      tensorflow::multistream::Types(outputs, output_count));
  for (int i = 0; i < capture_count; ++i) {
    if (!callable->AddCapture(captures[i])) return nullptr;
  }
  return callable.release();
}

void TFMS_DeleteServing(ServingCallable* callable) { delete callable; }

// Call with the GIL held. Calls the function on `device` (null: on any).
// `shapes`: the arguments' shapes, then the results' expected shapes; each is a
// rank (-1: unknown) and the dimensions. `arrays`: C-contiguous arrays for the
// arguments (strings: as StringsOf reads them), then for the results.
//
// Returns null if the results are in the arrays. Otherwise the caller deletes
// the returned object with TFMS_DeleteServingResult: an error, or, with code 0,
// results whose shapes are not the expected ones.
CallResult* TFMS_CallServing(ServingCallable* callable, const char* device,
                             const int64_t* shapes, const Array* arrays) {
  void* thread = Python().save_thread();
  CallResult* result = callable->Call(device, shapes, arrays);
  // If the process is ending, Python ends the thread in this call. So no local
  // variable of this function may have a destructor.
  Python().restore_thread(thread);
  return result;
}

// Whether the next call on `device` is direct.
bool TFMS_ServingIsDirect(const ServingCallable* callable, const char* device) {
  return callable->IsDirect(device);
}

// Sets `fields` to the fields of an array object as this library reads them:
// the addresses of data, dtype, type and dimensions, the rank and the flags.
// Returns whether the library finds Python's functions.
bool TFMS_FieldsOfArray(const NumpyArray* array, int64_t* fields) {
  fields[0] = reinterpret_cast<int64_t>(array->data);
  fields[1] = reinterpret_cast<int64_t>(array->dtype);
  fields[2] = reinterpret_cast<int64_t>(array->type);
  fields[3] = reinterpret_cast<int64_t>(array->dimensions);
  fields[4] = array->rank;
  fields[5] = array->flags;
  return Python().AreThere();
}

// Lets TFMS_CallWithArrays call the function. The caller keeps the objects
// alive: numpy.ndarray, numpy.empty, a function that gives an array's elements
// as a list, and the arguments' dtypes (null for strings).
void TFMS_BindArrays(ServingCallable* callable, const PythonObject* array_type,
                     PythonObject* empty, PythonObject* flat_list,
                     const PythonObject* const* dtypes) {
  callable->BindArrays(array_type, empty, flat_list, dtypes);
}

// Call with the GIL held. `shapes` has `count` numbers, as for
// TFMS_CallServing. `results` is as in PythonArrays::Plan.
void TFMS_AddPlan(ServingCallable* callable, const int64_t* shapes, int count,
                  PythonObject* results) {
  callable->python_arrays()->AddPlan(
      std::vector<int64_t>(shapes, shapes + count), results);
}

// Call with the GIL held: calls the function with a tuple of arrays. Returns a
// list of the results; or an int: the address of what TFMS_CallServing
// returned, or 0 if the arrays have no plan and the function was not called.
// Null, with Python's error set, if there is no memory for the results.
PythonObject* TFMS_CallWithArrays(ServingCallable* callable, const char* device,
                                  PythonObject* arguments) {
  PythonArrays* arrays = callable->python_arrays();
  // On the heap, as TFMS_CallServing may not return.
  auto* call = new tensorflow::multistream::StagedCall;
  const PythonArrays::Plan* plan = call->Stage(arrays, arguments);
  if (plan == nullptr) {
    delete call;
    return Python().long_from_pointer(nullptr);
  }
  // Other threads may change the plan while objects are made.
  PythonObject* results =
      call->NewResults(*arrays, plan->results, callable->output_count());
  CallResult* other = nullptr;
  if (results != nullptr) {
    other = TFMS_CallServing(callable, device, plan->shapes.data(),
                             call->addresses.data());
  }
  delete call;
  if (other == nullptr) return results;
  Python().decref(results);
  return Python().long_from_pointer(other);
}

// Copies the results to arrays that have the results' shapes.
void TFMS_CopyServingResult(const CallResult* result, const Array* arrays) {
  for (size_t i = 0; i < result->tensors.size(); ++i) {
    tensorflow::multistream::CopyTo(arrays[i], result->tensors[i].get());
  }
}

void TFMS_DeleteServingResult(CallResult* result) { delete result; }

}  // extern "C"
