/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

// How is the runtime attached to TensorFlow? Here, by two means that a library
// has which TensorFlow's process loads first: functions that this file defines
// in TensorFlow's place, and a device factory of higher priority.

#include <dlfcn.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/executor_factory.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/common_runtime/multistream/cuda_gpu.h"
#include "tensorflow/core/common_runtime/multistream/emulated_gpu.h"
#include "tensorflow/core/common_runtime/multistream/graph_level_executor.h"
#include "tensorflow/core/common_runtime/multistream/group_device.h"
#include "tensorflow/core/common_runtime/multistream/node_level_executor.h"
#include "tensorflow/core/common_runtime/multistream/options.h"
#include "tensorflow/core/common_runtime/multistream/pinned_group.h"
#include "tensorflow/core/platform/logging.h"

namespace tensorflow {
namespace multistream {
namespace {

// TensorFlow registers its GPU factory with 210.
constexpr int kFactoryPriority = 220;

// A wrong environment makes each attempt to list or make devices fail, with
// what is wrong; Python says it at import already.
class FailingFactory : public DeviceFactory {
 public:
  explicit FailingFactory(absl::Status status) : status_(std::move(status)) {}
  absl::Status ListPhysicalDevices(std::vector<std::string>*) override {
    return status_;
  }
  absl::Status CreateDevices(const SessionOptions&, const std::string&,
                             std::vector<std::unique_ptr<Device>>*) override {
    return status_;
  }

 private:
  const absl::Status status_;
};

bool RegisterAll() {
  const absl::StatusOr<Options>& options = EnvironmentOptions();
  std::unique_ptr<DeviceFactory> factory;
  if (!options.ok()) {
    factory = std::make_unique<FailingFactory>(options.status());
  } else {
    if (!options->without_effect.empty()) {
      LOG(WARNING) << "Multi-stream: these variables are set and have no "
                      "effect: "
                   << absl::StrJoin(options->without_effect, ", ");
    }
    if (!options->Enabled()) return false;
    const absl::Status file = EnvironmentStreamFile().status();
    factory = !file.ok() ? std::make_unique<FailingFactory>(file)
              : options->emulated_gpus > 0 ? NewEmulatedGpuFactory(*options)
                                           : NewCudaGpuFactory(*options);
  }
  DeviceFactory::Register("GPU", std::move(factory), kFactoryPriority,
                          /*is_pluggable_device=*/false);
  return true;
}

const bool registered = RegisterAll();

}  // namespace
}  // namespace multistream

absl::Status NewExecutor(const std::string& executor_type,
                         const LocalExecutorParams& params, const Graph& graph,
                         std::unique_ptr<Executor>* out_executor) {
  ExecutorFactory* factory = nullptr;
  TF_RETURN_IF_ERROR(ExecutorFactory::GetFactory(executor_type, &factory));
  if (multistream::registered) {
    auto* leader = dynamic_cast<multistream::GroupMember*>(params.device);
    if (leader != nullptr && leader->gpu_groups()->size() > 1) {
      const auto make_stock = [factory](const LocalExecutorParams& p,
                                        const Graph& g,
                                        std::unique_ptr<Executor>* out) {
        return factory->NewExecutor(p, g, out);
      };
      const multistream::Options& options = *multistream::EnvironmentOptions();
      if (!options.node_level) {
        return multistream::NewGraphLevelExecutor(params, graph, leader,
                                                  make_stock, out_executor);
      }
      return multistream::NewNodeLevelExecutor(
          params, graph, leader, options,
          multistream::EnvironmentStreamFile()->get(), make_stock,
          out_executor);
    }
    TF_RETURN_IF_ERROR(factory->NewExecutor(params, graph, out_executor));
    *out_executor = multistream::KeepPinnedGroup(std::move(*out_executor));
    return absl::OkStatus();
  }
  return factory->NewExecutor(params, graph, out_executor);
}

class EagerContext;

// EagerContext::RunEagerOpAsFunction() const. (Its header needs one that the
// wheel does not have.)
//
// TensorFlow runs an eager op as a function of one op. All such functions share
// one rendezvous, in which the calls of two threads can take each other's
// inputs, and each would be a step on some group. With groups, an eager op is
// what it was before: a kernel on the visible device, on the leader's stream.
bool RunEagerOpAsFunction(const EagerContext* context) asm(
    "_ZNK10tensorflow12EagerContext20RunEagerOpAsFunctionEv");

bool RunEagerOpAsFunction(const EagerContext* context) {
  if (multistream::registered) return false;
  static const auto stock =
      reinterpret_cast<bool (*)(const EagerContext*)>(dlsym(
          RTLD_NEXT, "_ZNK10tensorflow12EagerContext20RunEagerOpAsFunctionEv"));
  return stock != nullptr && stock(context);
}

}  // namespace tensorflow
