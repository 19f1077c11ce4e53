// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How many bytes may all large requests have together, while they are read,
// wait or run? As request_memory.py: small requests are always taken, so that
// large ones cannot keep them out. Thread-safe.

#ifndef EXAMPLES_SERVING_FRONT_LARGE_REQUESTS_H_
#define EXAMPLES_SERVING_FRONT_LARGE_REQUESTS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

namespace front {

class LargeRequests {
 public:
  static constexpr uint64_t kSmallBytes = 1 << 16;

  explicit LargeRequests(uint64_t most_bytes_of_one)
      : most_(kRequests * most_bytes_of_one) {}

  // Counts so many more bytes. If they are too many, counts nothing and returns
  // the error.
  std::string Take(uint64_t more) {
    uint64_t used = used_;
    while (more <= most_ - std::min(used, most_)) {
      if (used_.compare_exchange_weak(used, used + more)) return "";
    }
    return "the requests that are being handled have " + std::to_string(used) +
           " bytes, and " + std::to_string(more) + " more are above " +
           std::to_string(most_) + " (" + std::to_string(kRequests) +
           " times --max-request-mb). Try again later.";
  }
  void Return(uint64_t bytes) { used_ -= bytes; }

 private:
  static constexpr uint64_t kRequests = 16;

  const uint64_t most_;
  std::atomic<uint64_t> used_{0};
};

// The bytes of one request that is read, as they are counted: what owns the
// request owns this, too, so that both go together.
class LargeRequest {
 public:
  // `all` must live longer.
  explicit LargeRequest(LargeRequests* all) : all_(all) {}
  LargeRequest(LargeRequest&& other)
      : all_(other.all_), bytes_(std::exchange(other.bytes_, 0)) {}
  ~LargeRequest() { Return(); }

  // Counts the request, which has so many bytes by now. If they are too many,
  // counts no more of them and returns the error.
  std::string Grow(uint64_t size) {
    if (size <= LargeRequests::kSmallBytes || size <= bytes_) return "";
    std::string too_large = all_->Take(size - bytes_);
    if (too_large.empty()) bytes_ = size;
    return too_large;
  }
  // The request is gone.
  void Return() { all_->Return(std::exchange(bytes_, 0)); }

 private:
  LargeRequests* const all_;
  uint64_t bytes_ = 0;
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_LARGE_REQUESTS_H_
