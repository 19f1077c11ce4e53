// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How does a piece of a graph (cut.h) run? As an op of the step, on the step's
// group: a recording of the piece is launched, or its nodes run as always. The
// step goes on once the piece is enqueued, as after any op.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_RUNNER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_RUNNER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/device_mgr.h"
#include "tensorflow/core/common_runtime/executor.h"
#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_steps.h"
#include "tensorflow/core/common_runtime/multistream/step/group_device.h"
#include "tensorflow/core/common_runtime/rendezvous_mgr.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {

// Does a graph's next step run in pieces? A piece that is not replayed costs
// more than its nodes do in the whole graph. So if less than half of the
// pieces' launches are replayed, as with shapes that are new each time, steps
// run the whole graph for a while: an exponential back-off. Thread-safe.
class PieceBackOff {
 public:
  // Pieces that run before it is decided again.
  static constexpr int kPieces = 256;
  // The first and the longest number of steps without pieces.
  static constexpr int64_t kFirstPause = 1024;
  static constexpr int64_t kLongestPause = 64 * kFirstPause;

  // Call once for each step.
  bool UsePieces() {
    if (paused_.load(std::memory_order_relaxed) <= 0) return true;
    return paused_.fetch_sub(1, std::memory_order_relaxed) <= 0;
  }

  // Call for each piece that a step runs.
  void NotePiece(int launches, bool is_replayed) {
    launches_.fetch_add(launches, std::memory_order_relaxed);
    if (is_replayed) replayed_.fetch_add(launches, std::memory_order_relaxed);
    if ((pieces_.fetch_add(1, std::memory_order_relaxed) + 1) % kPieces == 0) {
      Decide();
    }
  }

 private:
  void Decide() {
    absl::MutexLock lock(&mu_);
    // Other threads may add some meanwhile, which count next time.
    const int64_t replayed = replayed_.exchange(0, std::memory_order_relaxed);
    if (2 * replayed >= launches_.exchange(0, std::memory_order_relaxed)) {
      pause_ = kFirstPause;
      return;
    }
    paused_.store(pause_, std::memory_order_relaxed);
    pause_ = std::min(2 * pause_, kLongestPause);
  }

  std::atomic<int64_t> paused_{0};  // steps until pieces are used again
  std::atomic<int64_t> pieces_{0};
  // Since the last decision.
  std::atomic<int64_t> launches_{0};
  std::atomic<int64_t> replayed_{0};
  absl::Mutex mu_;
  int64_t pause_ ABSL_GUARDED_BY(mu_) = kFirstPause;  // the next one
};

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

// Thread-safe. Kernels of the op find it by the piece's name, so it must
// outlive the executors that have such a kernel.
class PieceRunner {
 public:
  // `executors[i]` runs the piece's nodes as always on group `i` of `leader`.
  // `back_off` is of the piece's graph.
  PieceRunner(GroupLeader* leader, std::string name, int launches,
              std::vector<std::unique_ptr<Executor>> executors,
              std::unique_ptr<CapturedSteps> captured, PieceBackOff* back_off);
  ~PieceRunner();
  PieceRunner(const PieceRunner&) = delete;
  PieceRunner& operator=(const PieceRunner&) = delete;

  // The runner of the piece with this name, or nullptr.
  static PieceRunner* Find(const std::string& name);

  // Runs the piece as the op that has this context. `done` is called once it is
  // enqueued.
  void Run(OpKernelContext* context, AsyncOpKernel::DoneCallback done);

  // In a fork()ed child: the recordings belong to the parent process.
  void Abandon() { captured_.release(); }

 private:
  GroupLeader* const leader_;
  const std::string name_;
  const int launches_;
  const std::vector<std::unique_ptr<Executor>> executors_;
  std::unique_ptr<CapturedSteps> captured_;
  PieceBackOff* const back_off_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_RUNNER_H_
