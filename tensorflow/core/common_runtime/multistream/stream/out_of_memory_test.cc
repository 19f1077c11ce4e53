// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/out_of_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow {
namespace multistream {
namespace {

class OutOfMemoryTest : public ::testing::Test {
 protected:
  StreamRecord record_;
  const std::unique_ptr<GpuGroups> groups_ =
      NewFakeGroups(/*gpu=*/2, /*count=*/4, &record_);
};

TEST_F(OutOfMemoryTest, ErrorsSayWhichGroupHadNoMemory) {
  const absl::Status error = absl::ResourceExhaustedError("no tensor");
  const int64_t start = groups_->memory_failures();
  EXPECT_EQ(groups_->WithMemoryOfGroups(error, start), error);
  AllocatorStats stats;
  stats.bytes_in_use = 3 << 20;
  stats.bytes_limit = 4 << 20;
  groups_->group(3)->NoteNoMemory(2 << 20, stats);
  const int64_t middle = groups_->memory_failures();
  groups_->group(1)->NoteNoMemory(1 << 10, std::nullopt);

  const std::string third =
      "Stream group 3 of GPU 2 had no 2.00MiB: 3.00MiB in use, of at most "
      "4.00MiB";
  const std::string first = "Stream group 1 of GPU 2 had no 1.0KiB";
  absl::Status status = groups_->WithMemoryOfGroups(error, start);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(status.message(), "no tensor\n\t" + first + "\n\t" + third);
  // A step that began later.
  status = groups_->WithMemoryOfGroups(error, middle);
  EXPECT_EQ(status.message(), "no tensor\n\t" + first);
  EXPECT_EQ(groups_->WithMemoryOfGroups(error, groups_->memory_failures()),
            error);
  // Steps that failed for another reason, or not at all.
  const absl::Status other = absl::InternalError("another");
  EXPECT_EQ(groups_->WithMemoryOfGroups(other, start), other);
  EXPECT_TRUE(groups_->WithMemoryOfGroups(absl::OkStatus(), start).ok());
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
