// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/group_rendezvous.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/base/device_context.h"
#include "tensorflow/core/common_runtime/multistream/memory/group_allocator.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/platform/stream_executor.h"

namespace tensorflow::multistream {

absl::Status GroupRendezvous::Send(const ParsedKey& key, const Args& args,
                                   const Tensor& value, bool is_dead) {
  return wrapped_->Send(key, args, value, is_dead);
}

void GroupRendezvous::StartAbort(const absl::Status& status) {
  wrapped_->StartAbort(status);
}

void GroupRendezvous::RecvAsync(const ParsedKey& key, const Args& args,
                                DoneCallback done) {
  const bool to_us = key.dst_device == leader_->name();
  if (!to_us || args.alloc_attrs.on_host()) {
    wrapped_->RecvAsync(key, args, std::move(done));
    return;
  }
  Args ours = args;
  // A tensor that the visible device sends to itself is in host memory, too:
  // one op's output is on the host and the next op wants it on the device.
  if (key.src.type != DEVICE_CPU && key.src_device != key.dst_device) {
    // From another GPU: stock code copies to the leader's memory, in the order
    // of the leader's stream. The copy has completed when `done` runs. Ops that
    // use the copy hold the memory, as all memory of other groups.
    ours.device_context = ContextOf(leader_);
    Sanitizer* const sanitizer = step_->gpu()->leader()->sanitizer();
    if (sanitizer != nullptr) {
      done = [sanitizer, done = std::move(done)](
                 const absl::Status& status, const Args& send_args,
                 const Args& recv_args, const Tensor& value, bool is_dead) {
        sanitizer->HostSynchronized(0);
        ForgetFreshMemory(value.data());  // no op of this group has written it
        done(status, send_args, recv_args, value, is_dead);
      };
    }
    wrapped_->RecvAsync(key, ours, std::move(done));
    return;
  }
  ours.alloc_attrs.set_on_host(true);
  wrapped_->RecvAsync(
      key, ours,
      [this, key, args, done = std::move(done)](
          const absl::Status& status, const Args& send_args,
          const Args& recv_args, const Tensor& value, bool is_dead) mutable {
        if (!status.ok() || is_dead) {
          done(status, send_args, args, value, is_dead);
          return;
        }
        CopyToGroup(key, send_args, args, value, std::move(done));
      });
}

absl::Status GroupRendezvous::Allocate(const ParsedKey& key, const Args& args,
                                       const Tensor& like, Tensor* to) const {
  *to = Tensor(device_->GetAllocator(args.alloc_attrs), like.dtype(),
               like.shape());
  if (to->IsInitialized()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "Out of memory: stream group ", group_->index(), " of ", leader_->name(),
      " has no ", like.TotalBytes(), " bytes for the received tensor ",
      std::string(key.edge_name)));
}

void GroupRendezvous::CopyToGroup(const ParsedKey& key, const Args& send_args,
                                  const Args& args, const Tensor& value,
                                  DoneCallback done) {
  // A tensor list: ops use its elements without having the list as an input,
  // so holds of single ops would not cover them.
  if (value.dtype() == DT_VARIANT) step_->holds().HoldToEnd(group_, value);
  const bool memcpyable = DataTypeCanUseMemcpy(value.dtype());
  auto copy = std::make_shared<Tensor>();
  if (memcpyable) {
    const absl::Status status = Allocate(key, args, value, copy.get());
    if (!status.ok()) {
      done(status, send_args, args, Tensor(), false);
      return;
    }
  }
  se::Stream* stream =
      args.device_context == nullptr ? nullptr : args.device_context->stream();
  if (memcpyable && (is_emulated_ || stream != nullptr)) {
    // On the compute stream, later ops are ordered after the copy, so the step
    // goes on at once.
    done(EnqueueCopy(stream, value, copy.get()), send_args, args, *copy, false);
    return;
  }
  AllocatorAttributes on_host = send_args.alloc_attrs;
  on_host.set_on_host(true);
  auto source = std::make_shared<Tensor>(value);
  Tensor* from = source.get();
  Tensor* to = copy.get();
  CopyTensor::ViaDMA(key.edge_name, send_args.device_context,
                     args.device_context, device_, device_, on_host,
                     args.alloc_attrs, from, to,
                     /*dev_to_dev_stream_index=*/0,
                     [send_args, args, source, copy,
                      done = std::move(done)](const absl::Status& status) {
                       done(status, send_args, args, *copy, false);
                     });
}

absl::Status GroupRendezvous::EnqueueCopy(se::Stream* stream,
                                          const Tensor& from, Tensor* to) {
  const size_t bytes = from.TotalBytes();
  if (bytes == 0) return absl::OkStatus();
  // CUDA copies asynchronously from pinned memory only.
  Tensor staging(device_->GetAllocator(PinnedMemory()), from.dtype(),
                 from.shape());
  if (!staging.IsInitialized()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("Out of pinned host memory: no ", bytes,
                     " bytes for a copy to ", leader_->name()));
  }
  std::memcpy(staging.data(), from.data(), bytes);
  Holds holds(group_, step_);
  holds.Add(staging);
  // On a real GPU, the profiler records the copy.
  std::optional<ScopedTrace> trace;
  if (stream == nullptr && Trace::IsOn()) {
    trace.emplace(TraceKind::kCopy, group_->gpu(), group_->index());
    trace->Set(bytes, "host to GPU");
  }
  return copy_(stream, staging.data(), to->data(), bytes);
}

absl::Status GroupRendezvous::CopyOnStream(se::Stream* stream, const void* from,
                                           void* to, size_t bytes) {
  if (stream == nullptr) {
    std::memcpy(to, from, bytes);
    return absl::OkStatus();
  }
  se::DeviceAddressBase destination(to, bytes);
  return CopyToDevice(stream, from, &destination, bytes);
}

}  // namespace tensorflow::multistream
