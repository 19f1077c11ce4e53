// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Does a graph's next step run in pieces? A piece that is not replayed costs
// more than its nodes do in the whole graph. So if less than half of the
// pieces' launches are replayed, as with shapes that are new each time, steps
// run the whole graph for a while: an exponential back-off.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_BACK_OFF_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_BACK_OFF_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow::multistream {

// Thread-safe.
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

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_CAPTURE_PIECES_PIECE_BACK_OFF_H_
