// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/samples.h"

#include <random>

namespace front {
namespace {

// Of a traceparent: version, trace, parent, flags, as "00-32 hex-16 hex-01".
constexpr size_t kTraceparentSize = 55;

}  // namespace

bool IsTraced(std::string_view traceparent) {
  if (traceparent.size() < kTraceparentSize) return false;
  // The lowest bit of the flags is "sampled".
  constexpr std::string_view kOddDigits = "13579bdf";
  return kOddDigits.find(traceparent[kTraceparentSize - 1]) !=
         std::string_view::npos;
}

void Samples::SetShare(const std::string& model, double share) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shares_.erase(model);
  if (share > 0) shares_[model] = share;
  any_ = !shares_.empty();
}

bool Samples::Draw(const std::string& model) {
  if (!any_) return false;
  double share = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = shares_.find(model);
    if (found == shares_.end()) return false;
    share = found->second;
  }
  thread_local std::minstd_rand random{std::random_device()()};
  return std::generate_canonical<double, 32>(random) < share;
}

}  // namespace front
