// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/hooks/group_requests.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tensorflow/core/common_runtime/multistream/base/group_sizes.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/process_options.h"
#include "tensorflow/core/common_runtime/multistream/base/session_config.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/cuda/cuda_gpu_factory.h"
#include "tensorflow/core/common_runtime/multistream/emulated/emulated_gpu.h"
#include "tensorflow/core/common_runtime/multistream/hooks/replaced_symbols.h"
#include "tensorflow/core/common_runtime/multistream/node_level/stream_file.h"
#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/platform/statusor.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow::multistream {
namespace {

// Above TensorFlow's GPU factory, which has 210.
constexpr int kFactoryPriority = 220;

// With an invalid environment, or with a wrong library order when groups are
// requested, each attempt to list or make devices fails with the reason. Python
// reports it already at import.
//
// If nothing is requested and TensorFlow's calls do not reach our functions,
// sessions that ask for streams fail: then AddDevices below is never called,
// but this factory is.
class FailingFactory : public DeviceFactory {
 public:
  explicit FailingFactory(absl::Status status, bool only_with_streams = false)
      : status_(std::move(status)), only_with_streams_(only_with_streams) {}
  absl::Status ListPhysicalDevices(std::vector<std::string>*) override {
    return only_with_streams_ ? absl::OkStatus() : status_;
  }
  absl::Status CreateDevices(const SessionOptions& options, const std::string&,
                             std::vector<std::unique_ptr<Device>>*) override {
    if (!only_with_streams_) return status_;
    TF_ASSIGN_OR_RETURN(const std::optional<SessionConfig> asked,
                        ReadSessionConfig(options.config));
    return asked.has_value() && asked->streams.value_or(1) > 1
               ? status_
               : absl::OkStatus();
  }

 private:
  const absl::Status status_;
  const bool only_with_streams_;
};

std::atomic<bool> registered{false};

void Register(std::unique_ptr<DeviceFactory> factory) {
  DeviceFactory::Register("GPU", std::move(factory), kFactoryPriority,
                          /*is_pluggable_device=*/false);
  registered.store(true, std::memory_order_release);
}

// Whether this process has begun to make devices.
std::atomic<bool> makes_devices{false};

bool LookAtEnvironment() {
  const absl::StatusOr<Options>& options = ProcessOptions();
  if (!options.ok()) {
    Register(std::make_unique<FailingFactory>(options.status()));
    return true;
  }
  if (!options->without_effect.empty()) {
    LOG(WARNING) << "Multi-stream: these variables are set and have no effect: "
                 << absl::StrJoin(options->without_effect, ", ");
  }
  if (options->test_faults) {
    test_faults_allowed.store(true, std::memory_order_relaxed);
    LOG(WARNING) << "Multi-stream: with " << kTestFaultsVariable
                 << "=true, tests can make steps of this process read wrong "
                    "data. Unset it wherever results matter.";
  }
  const absl::Status reached = CheckReplacedSymbols();
  if (!options->Enabled()) {
    if (!reached.ok()) {
      DeviceFactory::Register(
          "MULTI_STREAM_REFUSAL",
          std::make_unique<FailingFactory>(reached, /*only_with_streams=*/true),
          kFactoryPriority, /*is_pluggable_device=*/false);
    }
    return false;
  }
  const absl::Status file = LoadProcessStreamFile(*options).status();
  if (!reached.ok() || !file.ok()) {
    Register(std::make_unique<FailingFactory>(reached.ok() ? file : reached));
  } else if (options->emulated_gpus > 0) {
    PlaceOnEmulatedGpus();
    Register(NewEmulatedGpuFactory());
  } else {
    Register(NewCudaGpuFactory());
  }
  return true;
}

bool HasGpu() {
  DeviceFactory* factory = DeviceFactory::GetFactory("GPU");
  std::vector<std::string> gpus;
  return factory != nullptr && factory->ListPhysicalDevices(&gpus).ok() &&
         !gpus.empty();
}

// Whether this process has made GPU devices, for a session or to list them. Not
// `makes_devices`: some of TensorFlow's Python modules call the stock
// AddDevices, not ours.
bool HasMadeGpus() { return GPUProcessState::singleton()->HasGPUDevice(); }

// Serializes requests that come after the environment's.
absl::Mutex requests_mu(absl::kConstInit);

// Prepares the process for the streams that a session's configuration asks for;
// an error if it is too late.
absl::Status PrepareFor(const SessionConfig& asked) {
  const int streams = asked.streams.value_or(1);
  if (streams > 1) TF_RETURN_IF_ERROR(CheckReplacedSymbols());
  const bool made = !AllGpuGroups().empty();
  const bool register_now =
      streams > 1 && !made && !registered.load(std::memory_order_acquire);
  if (register_now && HasMadeGpus()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "A session's graph_options.rewrite_options.multi_stream_opts."
        "multi_stream_num is ",
        streams,
        ", and this process uses its GPUs without stream groups already. "
        "Groups are made once per process: make this session before others, "
        "before the first op that runs eagerly and before devices are listed "
        "(device_lib.list_local_devices), or set ",
        kGroupCountVariable, "=", streams));
  }
  if (register_now && !HasGpu()) {
    LOG_FIRST_N(WARNING, 1) << "Multi-stream: a session asks for " << streams
                            << " streams of a GPU, and there is no GPU";
    return absl::OkStatus();
  }
  if (asked.streams == 1) return absl::OkStatus();
  // A GPU with fewer groups returns an error when its device is made.
  TF_RETURN_IF_ERROR(RequestNodeLevel(made ? 1 : streams));
  const Options& options = *ProcessOptions();
  TF_RETURN_IF_ERROR(made ? ProcessStreamFile(options).status()
                          : LoadProcessStreamFile(options).status());
  if (register_now) Register(NewCudaGpuFactory());
  return absl::OkStatus();
}

// Enables capture for devices that are made from now on. `too_late`: the
// caller's devices already exist.
absl::Status PrepareForCapture(bool too_late) {
  const absl::StatusOr<Options>& options = ProcessOptions();
  if (!options.ok()) return options.status();
  if (options->captures()) return absl::OkStatus();
  TF_RETURN_IF_ERROR(CheckReplacedSymbols());
  TF_RETURN_IF_ERROR(CanRequestCapture());
  const bool is_registered = registered.load(std::memory_order_acquire);
  if (too_late || (!is_registered && HasMadeGpus())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "this process has made its devices without captured steps already. Ask "
        "for them before the first session or eager op, or set ",
        kCaptureVariable, "=marked"));
  }
  TF_RETURN_IF_ERROR(RequestCapture());
  if (!is_registered && HasGpu()) Register(NewCudaGpuFactory());
  return absl::OkStatus();
}

// For a session. A failure is only logged, since results are the same without
// capture.
void TryToPrepareForCapture(const SessionConfig* streams) {
  absl::Status status;
  if (streams != nullptr && streams->streams.value_or(2) > 1) {
    status = absl::FailedPreconditionError(
        "its nodes have streams, as use_multi_stream is ON");
  } else {
    status = PrepareForCapture(/*too_late=*/false);
  }
  if (status.ok()) return;
  LOG_FIRST_N(WARNING, 10)
      << "Multi-stream: a session's gpu_options.cuda_graph_enable_jit has no "
         "effect: "
      << status.message();
}

}  // namespace

bool GroupsAreRegistered() {
  return registered.load(std::memory_order_acquire);
}

void LookAtEnvironmentOnce() {
  static const bool looked = LookAtEnvironment();
  (void)looked;
}

absl::Status CaptureFunctions(bool has_devices) {
  absl::MutexLock lock(&requests_mu);
  return PrepareForCapture(has_devices);
}

absl::Status LookAtEnvironmentAgain() {
  LookAtEnvironmentOnce();
  // If calls do not reach us, LookAtEnvironmentOnce has already registered the
  // factory that refuses.
  TF_RETURN_IF_ERROR(CheckReplacedSymbols());
  if (makes_devices.load(std::memory_order_relaxed) || HasMadeGpus()) {
    return absl::FailedPreconditionError(
        "This process has made devices. Look at the environment before the "
        "first session, and before the first op that runs eagerly.");
  }
  TF_RETURN_IF_ERROR(ReadEnvironmentAgain());
  LookAtEnvironment();
  return absl::OkStatus();
}

absl::Status AddDevices(const SessionOptions& options,
                        absl::FunctionRef<absl::Status()> stock) {
  makes_devices.store(true, std::memory_order_relaxed);
  // In a forked child, refuse before taking any lock: at the fork a thread of
  // the parent may have held ours, or one that TensorFlow takes to make the CPU
  // device, which is made first.
  if (GroupsAreOfParent()) {
    return WantsGpus(options.config) ? GroupsAreOfParentError() : stock();
  }
  const MakingGroups making;
  TF_ASSIGN_OR_RETURN(const std::optional<SessionConfig> asked,
                      ReadSessionConfig(options.config));
  // A GPU has groups for as long as the process lives, or none.
  absl::MutexLock lock(&requests_mu);
  const absl::StatusOr<Options>& before = ProcessOptions();
  const size_t gpus_before = AllGpuGroups().size();
  absl::Status status;
  if (asked.has_value()) status = PrepareFor(*asked);
  if (status.ok() && AsksForCapture(options.config)) {
    TryToPrepareForCapture(asked.has_value() ? &*asked : nullptr);
  }
  if (status.ok()) status = stock();
  // A failed session's requests must not apply to the next session.
  if (!status.ok() && AllGpuGroups().size() == gpus_before) {
    RestoreOptions(before);
  }
  return status;
}

}  // namespace tensorflow::multistream
