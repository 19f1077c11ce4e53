// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The functions of this folder that Python calls with ctypes.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/serving/device_choice.h"
#include "tensorflow/core/common_runtime/multistream/serving/front_frames.h"
#include "tensorflow/core/common_runtime/multistream/serving/predictor.h"
#include "tensorflow/core/common_runtime/multistream/serving/python_arrays.h"
#include "tensorflow/core/common_runtime/multistream/serving/served_models.h"
#include "tensorflow/core/common_runtime/multistream/serving/serving_callable.h"

namespace tensorflow::multistream {
namespace {

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

ServedModels::Withdrawn* OrNull(ServedModels::Withdrawn withdrawn) {
  if (withdrawn == nullptr) return nullptr;
  return new ServedModels::Withdrawn(std::move(withdrawn));
}

}  // namespace
}  // namespace tensorflow::multistream

extern "C" {

using tensorflow::multistream::Array;
using tensorflow::multistream::CallResult;
using tensorflow::multistream::DeviceChoice;
using tensorflow::multistream::NumpyArray;
using tensorflow::multistream::OrNull;
using tensorflow::multistream::PinnedGroups;
using tensorflow::multistream::Predictor;
using tensorflow::multistream::Python;
using tensorflow::multistream::PythonArrays;
using tensorflow::multistream::PythonObject;
using tensorflow::multistream::ServedModels;
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

// Exists as long as the process: a server has one.
DeviceChoice* TFMS_NewDeviceChoice(int devices) {
  return new DeviceChoice(devices);
}

int TFMS_BeginCall(DeviceChoice* choice) { return choice->Begin(); }

void TFMS_EndCall(DeviceChoice* choice, int device) { choice->End(device); }

// Delete the result with TFMS_DeletePredictor, before the callables. Each is
// called in the scope of one of `devices` (null: of none); `choice` is null if
// there is one of them. An input may take `most_bytes`. The names and `shapes`
// of inputs and the names of outputs are in the callables' order; each shape is
// a rank and the dimensions, -1 for those that are unknown. The batch sizes end
// with 0. Groups are PinnedGroups::packed.
Predictor* TFMS_NewPredictor(ServingCallable* const* callables,
                             const char* const* devices, int count,
                             DeviceChoice* choice, const char* signature,
                             int64_t most_bytes, const char* const* inputs,
                             const int64_t* shapes, const char* const* outputs,
                             const int32_t* batch_sizes, int64_t groups) {
  std::vector<Predictor::Replica> replicas(count);
  for (int i = 0; i < count; ++i) {
    replicas[i].callable = callables[i];
    if (devices[i] != nullptr) replicas[i].device = devices[i];
  }
  const ServingCallable* callable = callables[0];
  std::vector<int> sizes;
  for (; *batch_sizes != 0; ++batch_sizes) sizes.push_back(*batch_sizes);
  std::vector<Predictor::Input> taken;
  for (size_t i = 0; i < callable->inputs().size(); ++i) {
    const int64_t rank = *shapes++;
    taken.push_back(
        {inputs[i], rank < 0 ? tensorflow::PartialTensorShape()
                             : tensorflow::PartialTensorShape(
                                   {shapes, static_cast<size_t>(rank)})});
    shapes += rank < 0 ? 0 : rank;
  }
  return new Predictor(
      std::move(replicas), choice, signature, most_bytes, std::move(taken),
      std::vector<std::string>(outputs, outputs + callable->output_count()),
      std::move(sizes), PinnedGroups::Unpacked(groups));
}

// Why requests do not share steps, cut to `size` bytes with the 0 at its end;
// empty if they may.
void TFMS_WhyNotShared(const Predictor* predictor, char* why, int size) {
  snprintf(why, size, "%s",
           std::string(predictor->MayShare().message()).c_str());
}

int64_t TFMS_AnsweredByPredictor(const Predictor* predictor) {
  return predictor->answered();
}

void TFMS_DeletePredictor(Predictor* predictor) { delete predictor; }

int TFMS_FrontFrames() { return tensorflow::multistream::kFrontFrames; }

// Exists as long as the process: threads answer with it.
ServedModels* TFMS_NewServedModels() { return new ServedModels; }

// Returns what the version replaces, as TFMS_WithdrawModel does.
ServedModels::Withdrawn* TFMS_PublishModel(ServedModels* models,
                                           const char* model, int64_t version,
                                           const char* const* signatures,
                                           const Predictor* const* predictors,
                                           int count) {
  ServedModels::Signatures published;
  for (int i = 0; i < count; ++i) published[signatures[i]] = predictors[i];
  return OrNull(models->Publish(model, version, std::move(published)));
}

// Give the result to TFMS_WaitForRequests. Null if there is no such version.
ServedModels::Withdrawn* TFMS_WithdrawModel(ServedModels* models,
                                            const char* model,
                                            int64_t version) {
  return OrNull(models->Withdraw(model, version));
}

// Call without the GIL: waits for the requests that use the version.
void TFMS_WaitForRequests(ServedModels::Withdrawn* withdrawn) {
  ServedModels::WaitForRequests(*withdrawn);
  delete withdrawn;
}

// Call without the GIL: returns when the other end of the socket is closed.
void TFMS_AnswerRequests(ServedModels* models, int socket) {
  models->Answer(socket);
}

}  // extern "C"
