// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/serving/direct_function.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "tensorflow/c/eager/tfe_context_internal.h"
#include "tensorflow/c/eager/tfe_op_internal.h"
#include "tensorflow/c/eager/tfe_tensorhandle_internal.h"
#include "tensorflow/core/common_runtime/eager/context.h"
#include "tensorflow/core/common_runtime/eager/eager_operation.h"
#include "tensorflow/core/common_runtime/eager/tensor_handle.h"
#include "tensorflow/core/common_runtime/function_body.h"
#include "tensorflow/core/common_runtime/multistream/base/graph_traits.h"
#include "tensorflow/core/common_runtime/multistream/base/on_thread.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/graph_ends.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/common_runtime/multistream/serving/row_proofs.h"
#include "tensorflow/core/common_runtime/process_function_library_runtime.h"
#include "tensorflow/core/common_runtime/rendezvous_mgr.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/graph/graph_node_util.h"
#include "tensorflow/core/platform/denormal.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/setround.h"

namespace tensorflow::multistream {
namespace {

// Makes protected members of TensorFlow's function runtime visible.
struct Functions : ProcessFunctionLibraryRuntime {
  using ProcessFunctionLibraryRuntime::MultiDeviceFunctionData;
};
using Instantiation = Functions::MultiDeviceFunctionData;

// An explicit template instantiation may name private members.
using DataMember = std::unordered_map<FunctionLibraryRuntime::Handle,
                                      std::unique_ptr<Instantiation>>
    ProcessFunctionLibraryRuntime::*;
using LockMember = mutex ProcessFunctionLibraryRuntime::*;
DataMember InstantiationsMember(ProcessFunctionLibraryRuntime*);
LockMember LockOfInstantiations(ProcessFunctionLibraryRuntime*);
template <DataMember data, LockMember lock>
struct PrivateMembers {
  friend DataMember InstantiationsMember(ProcessFunctionLibraryRuntime*) {
    return data;
  }
  friend LockMember LockOfInstantiations(ProcessFunctionLibraryRuntime*) {
    return lock;
  }
};
template struct PrivateMembers<&ProcessFunctionLibraryRuntime::mdevice_data_,
                               &ProcessFunctionLibraryRuntime::mu_>;

// Whether an instantiation with this key, NAME[ATTRIBUTE=VALUE,...], is one for
// the device `target`.
bool IsFor(const std::string& target, absl::string_view key) {
  const std::string wanted = absl::StrCat("_target=", target);
  const std::vector<absl::string_view> parts =
      absl::StrSplit(key, absl::ByAnyChar("[],"));
  return absl::c_linear_search(parts, wanted);
}

EagerContext* ContextOf(TFE_Context* context) {
  return ContextFromInterface(unwrap(context));
}

absl::Status Refused(std::string why) {
  return absl::UnimplementedError(std::move(why));
}

int IndexOf(const Node& node) {
  int index = -1;
  TryGetNodeAttr(node.attrs(), "index", &index);
  return index;
}

// Whether the node comes after others without taking a tensor of theirs.
bool Waits(const Node& node) {
  return absl::c_any_of(node.in_edges(), [](const Edge* edge) {
    return edge->IsControlEdge() && edge->src()->IsOp();
  });
}

}  // namespace

// A call: what the device's part takes its inputs from, and gives its results
// to.
class DirectFunction::CallOnDevice : public RendezvousInterface,
                                     public CallFrameInterface {
 public:
  CallOnDevice(const DirectFunction& function,
               const std::vector<Tensor>& arguments)
      : function_(function),
        arguments_(arguments),
        sent_(function.sent_.size()) {}

  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value,
                    bool is_dead) override {
    const auto sent = function_.sent_.find(key.edge_name);
    if (sent == function_.sent_.end()) {
      return Others()->Send(key, args, value, is_dead);
    }
    if (is_dead) return absl::OkStatus();  // of a branch that is not taken
    std::optional<Tensor>* result = &sent_[sent->second];
    if (args.alloc_attrs.on_host()) {
      *result = value;
      return absl::OkStatus();
    }
    // TensorFlow's rendezvous copies the value to the host.
    TF_RETURN_IF_ERROR(Others()->Send(key, args, value, /*is_dead=*/false));
    pending_.fetch_add(1, std::memory_order_relaxed);
    Args on_host;
    // A copy to pageable memory blocks this thread until the copy ends. Until
    // then the copy reads a lock of the driver, and threads that have to write
    // the lock wait (cuda/events_ahead.h).
    on_host.alloc_attrs = PinnedMemory();
    Others()->RecvAsync(key, on_host,
                        [this, result](const absl::Status& status, const Args&,
                                       const Args&, const Tensor& copy, bool) {
                          *result = copy;
                          Ended(status);
                        });
    return absl::OkStatus();
  }

  void RecvAsync(const ParsedKey& key, const Args& args,
                 DoneCallback done) override {
    const auto received = function_.received_.find(key.edge_name);
    if (received == function_.received_.end()) {
      return Others()->RecvAsync(key, args, std::move(done));
    }
    const Tensor& value = ValueOf(received->second);
    Args from_host;
    from_host.alloc_attrs.set_on_host(true);
    if (args.alloc_attrs.on_host()) {
      return done(absl::OkStatus(), from_host, args, value, /*is_dead=*/false);
    }
    // TensorFlow's rendezvous copies the value to the device.
    const absl::Status status =
        Others()->Send(key, from_host, value, /*is_dead=*/false);
    if (!status.ok()) return done(status, from_host, args, Tensor(), false);
    Others()->RecvAsync(key, args, std::move(done));
  }

  void StartAbort(const absl::Status& status) override {
    Others()->StartAbort(status);
  }

  size_t num_args() const override { return function_.arguments_.size(); }
  size_t num_retvals() const override { return 0; }
  absl::Status GetArg(int index, const Tensor** value) override {
    *value = &Argument(function_.arguments_[index]);
    return absl::OkStatus();
  }
  absl::Status SetRetval(int index, const Tensor&) override {
    return absl::InternalError(absl::StrCat("there is no result ", index));
  }

  void Ended(const absl::Status& status) {
    {
      absl::MutexLock lock(&mu_);
      status_.Update(status);
    }
    if (pending_.fetch_sub(1, std::memory_order_acq_rel) == 1) ended_.Notify();
  }
  absl::Status Wait(std::vector<Tensor>* results) {
    ended_.WaitForNotification();
    absl::MutexLock lock(&mu_);
    if (!status_.ok()) return status_;
    results->clear();
    for (const Source& source : function_.results_) {
      if (source.sent >= 0 && !sent_[source.sent].has_value()) {
        return absl::InternalError(
            absl::StrCat("Retval[", results->size(), "] does not have value"));
      }
      results->push_back(ValueOf(source));
    }
    return absl::OkStatus();
  }

 private:
  const Tensor& ValueOf(const Source& source) const {
    if (source.argument >= 0) return Argument(source.argument);
    return source.sent >= 0 ? *sent_[source.sent] : source.constant;
  }
  const Tensor& Argument(int index) const {
    const int count = function_.count_;
    return index < count ? arguments_[index]
                         : function_.captures_[index - count].value;
  }

  // What the device's part passes to itself, and what must be copied.
  RendezvousInterface* Others() {
    absl::call_once(
        made_, [this] { others_.emplace(function_.functions_->device_mgr()); });
    return &*others_;
  }

  const DirectFunction& function_;
  const std::vector<Tensor>& arguments_;
  std::vector<std::optional<Tensor>> sent_;
  absl::once_flag made_;
  std::optional<PrivateIntraProcessRendezvous> others_;
  std::atomic<int> pending_{1};
  absl::Notification ended_;
  absl::Mutex mu_;
  absl::Status status_ ABSL_GUARDED_BY(mu_);
};

std::vector<DirectFunction::Instantiated> DirectFunction::InstantiationsOf(
    TFE_Context* context, const std::string& function) {
  ProcessFunctionLibraryRuntime* functions = ContextOf(context)->pflr();
  std::vector<Instantiated> all;
  mutex_lock lock(functions->*LockOfInstantiations(nullptr));
  for (const auto& [handle, data] : functions->*InstantiationsMember(nullptr)) {
    if (data->function_name_ != function) continue;
    all.push_back({handle, data->function_key_});
  }
  return all;
}

absl::StatusOr<std::unique_ptr<DirectFunction>> DirectFunction::Make(
    TFE_Context* context, Handle handle, int arguments,
    std::vector<Capture> captures) {
  ProcessFunctionLibraryRuntime* functions = ContextOf(context)->pflr();
  {
    mutex_lock lock(functions->*LockOfInstantiations(nullptr));
    auto& all = functions->*InstantiationsMember(nullptr);
    const auto found = all.find(handle);
    if (found == all.end()) return Refused("it has been released");
    ++found->second->instantiation_counter_;
  }
  std::unique_ptr<DirectFunction> made(new DirectFunction(
      ContextOf(context), handle, arguments, std::move(captures)));
  TF_RETURN_IF_ERROR(made->Look());
  return made;
}

DirectFunction::DirectFunction(EagerContext* context, Handle handle,
                               int arguments, std::vector<Capture> captures)
    : context_(context),
      functions_(context->pflr()),
      handle_(handle),
      count_(arguments),
      captures_(std::move(captures)) {}

DirectFunction::~DirectFunction() {
  if (IsValid()) functions_->ReleaseHandle(handle_).IgnoreError();
}

bool DirectFunction::IsValid() const { return context_->pflr() == functions_; }

absl::Status DirectFunction::Look() {
  const Instantiation* data;
  {
    mutex_lock lock(functions_->*LockOfInstantiations(nullptr));
    data = (functions_->*InstantiationsMember(nullptr)).at(handle_).get();
  }
  // All other fields are constant.
  name_ = data->function_name_;
  results_.resize(data->num_outputs_);
  if (data->is_cross_process_ || data->has_remote_outputs) {
    return Refused("it uses devices of other processes");
  }
  const std::string host = context_->HostCPU()->name();
  const auto on_host = data->glue_.find(host);
  if (data->glue_.size() != 2 || on_host == data->glue_.end()) {
    return Refused(absl::StrCat("it uses ", data->glue_.size(), " devices"));
  }
  for (const auto& [device, part] : data->glue_) {
    FunctionLibraryRuntime* runtime = functions_->GetFLR(device);
    const FunctionBody* body =
        runtime == nullptr ? nullptr : runtime->GetFunctionBody(part.handle);
    if (body == nullptr) return Refused("a part of it is not known");
    for (const FunctionArgIndex& argument : part.arg_indices) {
      if (argument.sub_index >= 0) return Refused("an argument is packed");
    }
    if (device == host) {
      host_graph_ = &*body->graph;
      TF_RETURN_IF_ERROR(
          LookAtHost(*body->graph, part.arg_indices, part.ret_indices));
      continue;
    }
    if (!part.ret_indices.empty()) return Refused("a result is on the GPU");
    device_ = runtime;
    part_ = part.handle;
    device_graph_ = &*body->graph;
    for (const FunctionArgIndex& argument : part.arg_indices) {
      arguments_.push_back(argument.index);
    }
  }
  TF_RETURN_IF_ERROR(LookAtDevice(*device_graph_, host));
  return LookAtCaptures();
}

absl::Status DirectFunction::LookAtCaptures() const {
  const auto is_on = [&](const Device* device, int argument) {
    if (argument < count_) return device == context_->HostCPU();
    const Capture& it = captures_[argument - count_];
    // A variable's handle is a tensor on the host, whatever its device.
    return it.device == device || it.value.dtype() == DT_RESOURCE;
  };
  for (const int argument : arguments_) {
    if (!is_on(device_->device(), argument)) {
      return Refused(absl::StrCat("argument ", argument, " is not on the GPU"));
    }
  }
  std::vector<Source> on_host = results_;
  for (const auto& [name, source] : received_) on_host.push_back(source);
  for (const Source& source : on_host) {
    if (source.argument >= 0 && !is_on(context_->HostCPU(), source.argument)) {
      return Refused(
          absl::StrCat("argument ", source.argument, " is on the GPU"));
    }
  }
  return absl::OkStatus();
}

absl::Status DirectFunction::LookAtHost(
    const Graph& graph, const std::vector<FunctionArgIndex>& arguments,
    const std::vector<int>& results) {
  if (const Node* node = FirstComputingOp(graph)) {
    return Refused(absl::StrCat(node->type_string(), " '", node->name(),
                                "' runs on the host"));
  }
  for (const Node* node : graph.op_nodes()) {
    // A tensor that is no result tells the host when to go on.
    if (node->IsRecv()) sent_.try_emplace(TensorNameOf(*node), sent_.size());
  }
  for (const Node* node : graph.op_nodes()) {
    if (!node->IsSend() && !node->IsRetval()) continue;
    TF_ASSIGN_OR_RETURN(Source source, SourceOf(*node, arguments));
    if (node->IsRetval()) {
      results_[results[IndexOf(*node)]] = std::move(source);
    } else if (source.sent < 0) {
      received_[TensorNameOf(*node)] = std::move(source);
    } else {
      return Refused(absl::StrCat(node->name(), " goes back to the GPU"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<DirectFunction::Source> DirectFunction::SourceOf(
    const Node& node, const std::vector<FunctionArgIndex>& arguments) {
  const Node* from = &node;
  bool waits = Waits(node);
  do {
    const Edge* edge;
    TF_RETURN_IF_ERROR(from->input_edge(0, &edge));
    from = edge->src();
    waits = waits || Waits(*from);
  } while (from->IsIdentity());
  if (waits && node.IsSend()) {
    return Refused(absl::StrCat(node.name(), " waits for the GPU"));
  }
  Source source;
  if (from->IsArg()) {
    source.argument = arguments[IndexOf(*from)].index;
  } else if (from->IsRecv()) {
    source.sent = sent_.at(TensorNameOf(*from));
  } else {
    TF_RETURN_IF_ERROR(GetNodeAttr(from->attrs(), "value", &source.constant));
  }
  return source;
}

absl::Status DirectFunction::LookAtDevice(const Graph& graph,
                                          const std::string& host) {
  for (const Node* node : graph.op_nodes()) {
    if (IsCollective(*node)) {
      return Refused(absl::StrCat(node->name(), " is a collective op"));
    }
    if (!node->IsSend() && !node->IsRecv()) continue;
    const auto [name, from, to] = TransferOf(*node);
    if (node->IsSend() ? to == host && !sent_.contains(name)
                       : from == host && !received_.contains(name)) {
      return Refused(
          absl::StrCat(node->name(), " is not passed on by the host"));
    }
  }
  return absl::OkStatus();
}

absl::Status DirectFunction::Call(const std::vector<Tensor>& arguments,
                                  std::vector<Tensor>* results) const {
  CallOnDevice call(*this, arguments);
  CancellationManager cancellation;
  FunctionLibraryRuntime::Options options;
  options.rendezvous = &call;
  options.cancellation_manager = &cancellation;
  options.step_container = context_->StepContainer();
  options.runner = context_->runner();
  options.allow_dead_tensors = true;
  absl::Status status;
  {
    // As TensorFlow's call of a function does.
    const port::ScopedFlushDenormal flush;
    const port::ScopedSetRound round(FE_TONEAREST);
    const WaitingCaller waits;
    device_->Run(options, part_, &call,
                 [&call](const absl::Status& ended) { call.Ended(ended); });
    status = call.Wait(results);
  }
  if (status.ok()) return status;
  return errors::CreateWithUpdatedMessage(
      status, absl::StrCat(errors::FormatFunctionForError(name_), " ",
                           status.message()));
}

void DirectFunctions::AddCapture(TFE_TensorHandle* captured) {
  TensorHandle* handle = TensorHandleFromInterface(unwrap(captured));
  const Tensor* value = nullptr;
  DirectFunction::Capture& added = captures_.emplace_back();
  if (!handle->Tensor(&value).ok()) return;
  const Device* device = handle->device();
  added = {*value, device == nullptr ? ContextOf(context_)->HostCPU() : device};
}

const DirectFunction* DirectFunctions::Of(const char* device) const {
  absl::ReaderMutexLock lock(&mu_);
  const auto found = functions_.find(KeyOf(device));
  if (found == functions_.end() || !found->second.ok()) return nullptr;
  const DirectFunction* function = found->second->get();
  return function->IsValid() ? function : nullptr;
}

std::string DirectFunctions::WhyNot(const char* device) const {
  absl::ReaderMutexLock lock(&mu_);
  const auto found = functions_.find(KeyOf(device));
  if (found == functions_.end()) return "the function was never called";
  if (!found->second.ok()) return std::string(found->second.status().message());
  return (*found->second)->IsValid() ? "" : "the eager context is another one";
}

bool DirectFunctions::IsKnown(const char* device) const {
  absl::ReaderMutexLock lock(&mu_);
  return functions_.contains(KeyOf(device));
}

std::string DirectFunctions::TargetOf(TFE_Op* op) {
  const EagerOperation* called = OperationFromInterface(unwrap(op));
  const VariantDevice chosen = called->Device();
  Device* const* device = std::get_if<Device*>(&chosen);
  // TensorFlow calls a function without a device for the host.
  return device == nullptr || *device == nullptr
             ? called->EagerContext().HostCPU()->name()
             : (*device)->name();
}

void DirectFunctions::Add(
    const char* device, const std::string& target,
    const std::vector<DirectFunction::Instantiated>& before) {
  using Instantiated = DirectFunction::Instantiated;
  // Meanwhile other threads may have called the function for other devices.
  const std::vector<Instantiated> of_all_devices = Instantiations();
  std::vector<Instantiated> all;
  absl::c_copy_if(
      of_all_devices, std::back_inserter(all),
      [&target](const Instantiated& it) { return IsFor(target, it.key); });
  if (all.empty()) return;
  std::vector<Instantiated> added;
  absl::c_copy_if(all, std::back_inserter(added), [&](const Instantiated& it) {
    return absl::c_none_of(before, [&it](const Instantiated& other) {
      return other.handle == it.handle;
    });
  });
  // Scopes of several devices may have one instantiation.
  if (added.empty()) added = all;
  const bool are_equal =
      !added.empty() && absl::c_all_of(added, [&](const Instantiated& it) {
        return it.key == added[0].key;
      });
  absl::StatusOr<std::unique_ptr<DirectFunction>> made =
      are_equal ? DirectFunction::Make(context_, added[0].handle, arguments_,
                                       captures_)
                : Refused(absl::StrCat(added.size(), " instantiations"));
  if (!made.ok()) {
    VLOG(1) << function_ << " is not called directly: " << made.status();
  }
  absl::MutexLock lock(&mu_);
  // Another thread may have been first. Its function is in use, and stays.
  functions_.try_emplace(KeyOf(device), std::move(made));
}

}  // namespace tensorflow::multistream
