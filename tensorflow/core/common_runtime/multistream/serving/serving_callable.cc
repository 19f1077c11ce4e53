// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/serving_callable.h"

#include <cstring>
#include <optional>
#include <utility>

#include "tensorflow/c/tf_tensor_internal.h"
#include "tensorflow/core/common_runtime/multistream/base/on_thread.h"
#include "tensorflow/core/platform/tstring.h"

namespace tensorflow::multistream {
namespace {

using Status = std::unique_ptr<TF_Status, Deleter<TF_DeleteStatus>>;
using Op = std::unique_ptr<TFE_Op, Deleter<TFE_DeleteOp>>;

CallResult* Failed(const absl::Status& status) {
  auto* result = new CallResult;
  result->code = static_cast<int32_t>(status.code());
  result->message_text = std::string(status.message());
  result->message = result->message_text.c_str();
  return result;
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

CallResult* WithShapes(std::vector<HostTensor> tensors) {
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

}  // namespace

void CopyTo(Array array, const TF_Tensor* tensor) {
  const size_t bytes = TF_TensorByteSize(tensor);
  if (bytes > 0) std::memcpy(*array, TF_TensorData(tensor), bytes);
}

ServingCallable::ServingCallable(TFE_Context* context, std::string function,
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

void ServingCallable::BindArrays(const PythonObject* array_type,
                                 PythonObject* empty, PythonObject* flat_list,
                                 const PythonObject* const* dtypes) {
  std::vector<size_t> sizes;
  for (TF_DataType type : inputs_) sizes.push_back(TF_DataTypeSize(type));
  python_arrays_ = std::make_unique<PythonArrays>(
      array_type, empty, flat_list,
      std::vector<const PythonObject*>(dtypes, dtypes + inputs_.size()),
      std::move(sizes));
}

bool ServingCallable::AddCapture(TFE_TensorHandle* captured) {
  Status status(TF_NewStatus());
  captures_.emplace_back(
      TFE_TensorHandleCopySharingTensor(captured, status.get()));
  direct_.AddCapture(captured);
  return TF_GetCode(status.get()) == TF_OK;
}

bool ServingCallable::IsDirect(const char* device) const {
  return direct_.Of(device) != nullptr;
}

CallResult* ServingCallable::Call(const char* device, const int64_t* shapes,
                                  const Array* arrays) {
  std::vector<Tensor> arguments(inputs_.size()), made;
  absl::Status status;
  for (size_t i = 0; i < inputs_.size() && status.ok(); ++i) {
    const HostTensor argument = inputs_[i] == TF_STRING
                                    ? StringsOf(arrays[i], shapes)
                                    : CopyOf(arrays[i], inputs_[i], shapes);
    if (argument == nullptr) {
      return Failed(absl::ResourceExhaustedError(
          "No host memory for argument " + std::to_string(i)));
    }
    status = TF_TensorToTensor(argument.get(), &arguments[i]);
    shapes = NextShape(shapes);
  }
  if (status.ok()) status = Call(device, arguments, &made);
  std::vector<HostTensor> results;
  for (size_t i = 0; i < made.size() && status.ok(); ++i) {
    results.emplace_back(TF_TensorFromTensor(made[i], &status));
  }
  if (!status.ok()) return Failed(status);
  bool in_place = true;
  const int64_t* expected = shapes;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (TF_TensorType(results[i].get()) != outputs_[i]) {
      return Failed(absl::InternalError("Result " + std::to_string(i) + " of " +
                                        function_ + " has another type."));
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

absl::Status ServingCallable::Call(const char* device,
                                   const std::vector<Tensor>& arguments,
                                   std::vector<Tensor>* results) {
  if (const DirectFunction* direct = direct_.Of(device)) {
    return direct->Call(arguments, results);
  }
  absl::Status status;
  direct_.Learn(device, [&]() -> std::optional<std::string> {
    std::string target;
    status = Execute(device, arguments, results, &target);
    if (!status.ok()) return std::nullopt;
    return target;
  });
  return status;
}

size_t ServingCallable::CallTogether(const char* device,
                                     const std::vector<int>& sizes,
                                     absl::Span<BatchedCall> calls) {
  const DirectFunction* direct = direct_.Of(device);
  if (direct == nullptr) {
    for (BatchedCall& call : calls) {
      call.status = Call(device, call.arguments, &call.results);
    }
    return calls.size();
  }
  return multistream::CallTogether(
      {[direct](const std::vector<Tensor>& arguments,
                std::vector<Tensor>* results) {
         return direct->Call(arguments, results);
       },
       [direct](const std::vector<TensorShape>& shapes, int64_t rows) {
         return direct->RowsOf(shapes, rows);
       }},
      sizes, calls);
}

absl::Status ServingCallable::MayShare(const char* device,
                                       const std::vector<TensorShape>& shapes,
                                       int64_t rows) const {
  const DirectFunction* direct = direct_.Of(device);
  if (direct == nullptr) {
    return absl::FailedPreconditionError(direct_.WhyNot(device));
  }
  return direct->RowsOf(shapes, rows).status();
}

absl::Status ServingCallable::Execute(const char* device,
                                      const std::vector<Tensor>& arguments,
                                      std::vector<Tensor>* results,
                                      std::string* target) const {
  const Status status(TF_NewStatus());
  const auto failed = [&] {
    return absl::Status(static_cast<absl::StatusCode>(TF_GetCode(status.get())),
                        TF_Message(status.get()));
  };
  const auto is_ok = [&] { return TF_GetCode(status.get()) == TF_OK; };
  Op op(TFE_NewOp(context_, function_.c_str(), status.get()));
  if (!is_ok()) return failed();
  TFE_OpSetDevice(op.get(), device, status.get());
  if (!is_ok()) return failed();
  TFE_OpSetAttrString(op.get(), "executor_type", executor_.data(),
                      executor_.size());
  TFE_OpSetAttrString(op.get(), "config_proto", config_.data(), config_.size());
  absl::Status converted;
  std::vector<Handle> inputs;
  for (const Tensor& argument : arguments) {
    const HostTensor given(TF_TensorFromTensor(argument, &converted));
    TF_RETURN_IF_ERROR(converted);
    inputs.emplace_back(TFE_NewTensorHandle(given.get(), status.get()));
    if (!is_ok()) return failed();
    TFE_OpAddInput(op.get(), inputs.back().get(), status.get());
    if (!is_ok()) return failed();
  }
  for (const Handle& capture : captures_) {
    TFE_OpAddInput(op.get(), capture.get(), status.get());
    if (!is_ok()) return failed();
  }
  std::vector<TFE_TensorHandle*> made(outputs_.size());
  int count = static_cast<int>(made.size());
  {
    // TFE_Execute returns when the results are there.
    WaitingCaller waits;
    TFE_Execute(op.get(), made.data(), &count, status.get());
  }
  if (!is_ok()) return failed();
  *target = DirectFunctions::TargetOf(op.get());
  std::vector<Handle> outputs;
  for (int i = 0; i < count; ++i) outputs.emplace_back(made[i]);
  if (outputs.size() != outputs_.size()) {
    return absl::InternalError(function_ + " gave " + std::to_string(count) +
                               " results.");
  }
  for (const Handle& output : outputs) {
    const HostTensor result(
        TFE_TensorHandleResolve(output.get(), status.get()));
    if (!is_ok()) return failed();
    TF_RETURN_IF_ERROR(
        TF_TensorToTensor(result.get(), &results->emplace_back()));
  }
  return absl::OkStatus();
}

}  // namespace tensorflow::multistream
