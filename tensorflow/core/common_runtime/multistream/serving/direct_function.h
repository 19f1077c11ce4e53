// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How is a function called without TensorFlow's eager layer? TensorFlow has
// divided the function into one part for each device, and the host's part of
// most models only passes tensors on:
//
//   TensorFlow's call   eager op -> function runtime -> executor of the host's
//                       part -> rendezvous -> executor of the GPU's part
//   a direct call       ------------------------> executor of the GPU's part
//
// The GPU's part and its executor are those of TensorFlow's call. So a direct
// call has the same groups, recordings, locks, statistics and errors.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_DIRECT_FUNCTION_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_DIRECT_FUNCTION_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/c/eager/c_api.h"
#include "tensorflow/core/framework/function.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace tensorflow {
class Device;
class EagerContext;
class ProcessFunctionLibraryRuntime;
}  // namespace tensorflow

namespace tensorflow::multistream {

// One instantiation of a function, which it keeps. Thread-safe.
class DirectFunction {
 public:
  using Handle = FunctionLibraryRuntime::Handle;
  // A tensor that the function has captured, and where it is: nullptr if not in
  // this process.
  struct Capture {
    Tensor value;
    const Device* device = nullptr;
  };

  // The instantiations that the context has of a function. Those with equal
  // keys are equal: threads have made them at the same time.
  struct Instantiated {
    Handle handle;
    std::string key;
  };
  static std::vector<Instantiated> InstantiationsOf(
      TFE_Context* context, const std::string& function);

  // The function takes `arguments` tensors at each call, then `captures`.
  // Unimplemented says why the instantiation cannot be called directly.
  static absl::StatusOr<std::unique_ptr<DirectFunction>> Make(
      TFE_Context* context, Handle handle, int arguments,
      std::vector<Capture> captures);
  ~DirectFunction();

  // Whether the context still runs functions as it did.
  bool IsValid() const;

  // Calls the function with tensors on the host, and waits for the results,
  // which are on the host, too. An error is that of TensorFlow's call, which
  // repeats the text for the host's part.
  absl::Status Call(const std::vector<Tensor>& arguments,
                    std::vector<Tensor>* results) const;

  // Whether a call with arguments of `shapes` may be a part of a step of so
  // many rows (independent_rows.h); if so, which results have rows. An error
  // names the op that forbids it. Thread-safe.
  absl::StatusOr<std::vector<bool>> RowsOf(
      const std::vector<TensorShape>& shapes, int64_t rows) const;

 private:
  class CallOnDevice;
  class RowProofs;

  // Where a tensor comes from: one of the three.
  struct Source {
    int argument = -1;  // of the function
    int sent = -1;      // by the device's part
    Tensor constant;
  };

  DirectFunction(EagerContext* context, Handle handle, int arguments,
                 std::vector<Capture> captures);

  absl::Status Look();
  absl::Status LookAtHost(const Graph& graph,
                          const std::vector<FunctionArgIndex>& arguments,
                          const std::vector<int>& results);
  absl::Status LookAtDevice(const Graph& graph, const std::string& host);
  absl::Status LookAtCaptures() const;
  // Where the host's part has the input of a send or of a result from.
  absl::StatusOr<Source> SourceOf(
      const Node& node, const std::vector<FunctionArgIndex>& arguments);

  EagerContext* const context_;
  ProcessFunctionLibraryRuntime* const functions_;
  const Handle handle_;
  const int count_;  // of the arguments of a call
  const std::vector<Capture> captures_;
  std::string name_;
  // The device's part.
  FunctionLibraryRuntime* device_ = nullptr;
  Handle part_ = 0;
  std::vector<int> arguments_;  // of the part: arguments of the function
  // By name in the rendezvous: what the part receives, and the place of what it
  // sends.
  absl::flat_hash_map<std::string, Source> received_;
  absl::flat_hash_map<std::string, int> sent_;
  std::vector<Source> results_;
  // The parts, without the libraries that they were made with.
  const Graph* host_graph_ = nullptr;
  const Graph* device_graph_ = nullptr;
  // Made by the first call of RowsOf.
  mutable absl::once_flag made_row_proofs_;
  mutable absl::StatusOr<std::unique_ptr<RowProofs>> row_proofs_;
};

// The direct functions of a callable: one for each device scope of its callers.
// Thread-safe.
class DirectFunctions {
 public:
  // The function takes `arguments` tensors at each call.
  DirectFunctions(TFE_Context* context, std::string function, int arguments)
      : context_(context),
        function_(std::move(function)),
        arguments_(arguments) {}

  // Adds one of DirectFunction's captures.
  void AddCapture(TFE_TensorHandle* captured);

  // For a call in the scope of `device` (null: of none). nullptr: TensorFlow is
  // to call the function.
  const DirectFunction* Of(const char* device) const;
  // Why there is none; empty if there is one.
  std::string WhyNot(const char* device) const;

  // The name of the device for which TensorFlow has called a function by `op`.
  static std::string TargetOf(TFE_Op* op);

  // Calls the function by `call`, and finds out which instantiation TensorFlow
  // has called. `call` returns the name of the device for which TensorFlow has
  // made the instantiation; nullopt if the call has failed.
  template <class Call>
  void Learn(const char* device, const Call& call) {
    // Only the first call in a scope makes an instantiation. If another thread
    // is making one, this call does not learn anything.
    if (IsKnown(device) || !learn_mu_.TryLock()) {
      call();
      return;
    }
    const std::vector<DirectFunction::Instantiated> before = Instantiations();
    const std::optional<std::string> target = call();
    if (target.has_value()) Add(device, *target, before);
    learn_mu_.Unlock();
  }

 private:
  static absl::string_view KeyOf(const char* device) {
    return device == nullptr ? "" : device;
  }
  std::vector<DirectFunction::Instantiated> Instantiations() const {
    return DirectFunction::InstantiationsOf(context_, function_);
  }
  bool IsKnown(const char* device) const;
  void Add(const char* device, const std::string& target,
           const std::vector<DirectFunction::Instantiated>& before);

  TFE_Context* const context_;
  const std::string function_;
  const int arguments_;
  std::vector<DirectFunction::Capture> captures_;
  absl::Mutex learn_mu_;
  mutable absl::Mutex mu_;
  // By device; an error for a function that cannot be called directly.
  absl::flat_hash_map<std::string,
                      absl::StatusOr<std::unique_ptr<DirectFunction>>>
      functions_ ABSL_GUARDED_BY(mu_);
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_SERVING_DIRECT_FUNCTION_H_
