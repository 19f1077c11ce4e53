// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Where do the tensors go that a piece which is not replayed sends to itself,
// between the host and the GPU? Through a rendezvous of its own, which copies
// as the step's does.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_OWN_COPIES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_OWN_COPIES_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/common_runtime/rendezvous_mgr.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

// A piece's own copies between the host and the GPU stay in the piece: in a
// loop, several iterations may run at once.
class OwnCopies : public RendezvousInterface {
 public:
  OwnCopies(std::shared_ptr<RendezvousInterface> outer,
            const DeviceMgr* devices)
      : outer_(std::move(outer)), own_(devices) {}

  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value,
                    bool is_dead) override {
    return For(key)->Send(key, args, value, is_dead);
  }
  void RecvAsync(const ParsedKey& key, const Args& args,
                 DoneCallback done) override {
    For(key)->RecvAsync(key, args, std::move(done));
  }
  void StartAbort(const absl::Status& status) override {
    own_.StartAbort(status);
    if (outer_ != nullptr) outer_->StartAbort(status);
  }

 private:
  RendezvousInterface* For(const ParsedKey& key) {
    const bool is_own = outer_ == nullptr || key.src_device == key.dst_device;
    return is_own ? &own_ : outer_.get();
  }

  const std::shared_ptr<RendezvousInterface> outer_;  // or nullptr
  PrivateIntraProcessRendezvous own_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_OWN_COPIES_H_
