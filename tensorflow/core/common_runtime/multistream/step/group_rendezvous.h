// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do tensors reach a step's group, and leave it? The executors wrap the
// rendezvous of each step in a GroupRendezvous.
//
// A stock rendezvous places received tensors in the leader's memory, in the
// order of the leader's stream: wrong for a step on another group. So tensors
// are received on the host, and the group's own stream copies them to the
// group's own memory. The leader does the same, because no thread has to wait
// for a copy on the compute stream. Sends need no help: their device context
// already names the group's streams.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_GROUP_RENDEZVOUS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_GROUP_RENDEZVOUS_H_

#include <cstddef>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/platform/stream_executor.h"

namespace tensorflow::multistream {

class GroupRendezvous : public RendezvousInterface {
 public:
  // Enqueues on `stream` a copy of `bytes` bytes from `from`, pinned host
  // memory, to `to`. A null `stream` (emulated GPU) copies at once.
  using HostToDevice = std::function<absl::Status(
      se::Stream* stream, const void* from, void* to, size_t bytes)>;

  // All pointers outlive the step. `leader` is the visible device; `device` is
  // the device of `group`, on which the step's ops send and receive. `copy`:
  // tests replace it, to see the copies and their order.
  GroupRendezvous(RendezvousInterface* wrapped, Step* step, StreamGroup* group,
                  Device* leader, Device* device,
                  HostToDevice copy = CopyOnStream)
      : wrapped_(wrapped),
        step_(step),
        group_(group),
        leader_(leader),
        device_(device),
        copy_(std::move(copy)),
        is_emulated_(device->device_type() == DEVICE_CPU) {}

  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value,
                    bool is_dead) override;
  void RecvAsync(const ParsedKey& key, const Args& args,
                 DoneCallback done) override;
  void StartAbort(const absl::Status& status) override;

 private:
  // Makes `to` a tensor like `like` in the group's memory.
  absl::Status Allocate(const ParsedKey& key, const Args& args,
                        const Tensor& like, Tensor* to) const;

  // Copies `value`, in host memory, to the step's group.
  void CopyToGroup(const ParsedKey& key, const Args& send_args,
                   const Args& args, const Tensor& value, DoneCallback done);

  static absl::Status CopyOnStream(se::Stream* stream, const void* from,
                                   void* to, size_t bytes);

  // Enqueues on `stream` (nullptr on an emulated GPU) a copy of `from`, in host
  // memory, to `to`. The caller may free `from` after the return.
  absl::Status EnqueueCopy(se::Stream* stream, const Tensor& from, Tensor* to);

  RendezvousInterface* const wrapped_;
  Step* const step_;
  StreamGroup* const group_;
  Device* const leader_;
  Device* const device_;
  const HostToDevice copy_;
  // To stock code an emulated GPU is a CPU.
  const bool is_emulated_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_GROUP_RENDEZVOUS_H_
