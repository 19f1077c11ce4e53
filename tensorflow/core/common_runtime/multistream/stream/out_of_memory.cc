// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/out_of_memory.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensorflow/core/platform/errors.h"
#include "tensorflow/core/platform/numbers.h"

namespace tensorflow::multistream {

void OutOfMemory::Note(int group, size_t bytes,
                       const std::optional<AllocatorStats>& stats,
                       const std::optional<AllocatorStats>& all) {
  std::string text =
      absl::StrCat("Stream group ", group, " of GPU ", gpu_, " had no ",
                   strings::HumanReadableNumBytes(bytes));
  if (stats) {
    absl::StrAppend(&text, ": ",
                    strings::HumanReadableNumBytes(stats->bytes_in_use),
                    " in use");
    if (all && all->bytes_limit) {
      absl::StrAppend(
          &text, ", and ", strings::HumanReadableNumBytes(all->bytes_in_use),
          " of at most ", strings::HumanReadableNumBytes(*all->bytes_limit),
          " by all groups together");
    } else if (stats->bytes_limit) {
      absl::StrAppend(&text, ", of at most ",
                      strings::HumanReadableNumBytes(*stats->bytes_limit));
    }
  }
  absl::MutexLock lock(&mu_);
  last_[group] = {count_.fetch_add(1, std::memory_order_acq_rel) + 1,
                  std::move(text)};
}

absl::Status OutOfMemory::AddTo(absl::Status status,
                                int64_t count_before) const {
  if (!absl::IsResourceExhausted(status)) return status;
  absl::MutexLock lock(&mu_);
  for (const Failure& failure : last_) {
    if (failure.number <= count_before) continue;
    errors::AppendToMessage(&status, failure.text);
  }
  return status;
}

}  // namespace tensorflow::multistream
