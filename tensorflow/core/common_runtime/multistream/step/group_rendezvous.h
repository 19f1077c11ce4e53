// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do tensors reach a step's group, and leave it? The executors wrap the
// rendezvous of each step in a GroupRendezvous.
//
// A rendezvous places what it receives in memory of the visible device, which
// is the leader's, in the order of the leader's stream. A step on another
// group must not use it so: what comes from the host is received on the host
// and copied by the group's own stream into the group's own memory. The leader
// does the same, because a copy on the compute stream is one that no thread
// waits for. Sends need no help: their device context already names the group's
// streams.

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

namespace tensorflow {
namespace multistream {

class GroupRendezvous : public RendezvousInterface {
 public:
  // Enqueues on `stream` a copy of `bytes` bytes from `from`, pinned memory of
  // the host, to `to`. Without a stream, an emulated GPU's, makes the copy.
  using HostToDevice = std::function<absl::Status(
      se::Stream* stream, const void* from, void* to, size_t bytes)>;

  // All pointers outlive the step. `leader` and `device` are the visible device
  // and that of `group`, whose ops send and receive. `copy`: for tests, to see
  // what is enqueued, and when.
  GroupRendezvous(RendezvousInterface* wrapped, Step* step, StreamGroup* group,
                  Device* leader, Device* device,
                  HostToDevice copy = CopyOnStream)
      : wrapped_(wrapped),
        step_(step),
        group_(group),
        leader_(leader),
        device_(device),
        copy_(std::move(copy)) {}

  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value,
                    bool is_dead) override;
  void RecvAsync(const ParsedKey& key, const Args& args,
                 DoneCallback done) override;
  void StartAbort(const absl::Status& status) override;

 private:
  // Copies `value`, on the host, to the step's group.
  void CopyToGroup(const ParsedKey& key, const Args& send_args,
                   const Args& args, const Tensor& value, DoneCallback done);

  static absl::Status CopyOnStream(se::Stream* stream, const void* from,
                                   void* to, size_t bytes);

  // Enqueues on `stream` (nullptr: of an emulated GPU) a copy of `from`, on the
  // host, to `to`. `from` is read before this returns.
  absl::Status EnqueueCopy(se::Stream* stream, const Tensor& from, Tensor* to);

  RendezvousInterface* const wrapped_;
  Step* const step_;
  StreamGroup* const group_;
  Device* const leader_;
  Device* const device_;
  const HostToDevice copy_;
};

}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_STEP_GROUP_RENDEZVOUS_H_
