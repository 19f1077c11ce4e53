// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a machine without a GPU have devices named /device:GPU:k, for tests?
// Ops run on the CPU; groups, allocators, holds and order are those of a real
// GPU. hooks/ registers the factory.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_GPU_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_GPU_H_

#include <memory>

#include "absl/functional/function_ref.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/local_executor_params.h"
#include "tensorflow/core/graph/graph.h"
#include "tensorflow/core/protobuf/device_properties.pb.h"
#include "tensorflow/core/util/device_name_utils.h"

namespace tensorflow::multistream {

// Makes options.emulated_gpus GPUs of 4 GiB each.
std::unique_ptr<DeviceFactory> NewEmulatedGpuFactory();

// Registers the graph pass of emulated_placement.cc. Called once, by hooks/.
void PlaceOnEmulatedGpus();

// Registers kernels of cuDNN's ops for LSTM and GRU layers and their gradients,
// which Keras uses wherever it sees a GPU and TensorFlow has no kernels of for
// CPUs: one layer, in one direction. Only the first call has an effect.
void RegisterRecurrentLayers();

// What the graph optimizer is told about an emulated GPU: it is an unknown
// device, without the error in the log that a missing CUDA device would cause.
// Replaces grappler::GetDeviceInfo, which is `stock`, and queries the CUDA
// device with the device's number.
DeviceProperties DeviceInfo(const DeviceNameUtils::ParsedName& device,
                            absl::FunctionRef<DeviceProperties()> stock);

// Makes `executor` of an emulated GPU run `graph` also where its caller gives
// no rendezvous, if `graph` receives tensors.
void GiveOwnRendezvous(const LocalExecutorParams& params, const Graph& graph,
                       std::unique_ptr<Executor>* executor);

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_EMULATED_EMULATED_GPU_H_
