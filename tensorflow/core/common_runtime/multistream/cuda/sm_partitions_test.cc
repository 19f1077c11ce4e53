// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/sm_partitions.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/core/common_runtime/multistream/cuda/calls_by_name_fixture.h"
#include "tensorflow/core/common_runtime/multistream/cuda/fake_driver.h"
#include "tensorflow/core/common_runtime/multistream/cuda/foreign_captures.h"
#include "third_party/gpus/cuda/include/cuda.h"

namespace {

FakeDriver& driver = *LoadFakeDriver();

}  // namespace

namespace tensorflow::multistream {
namespace {

// A GPU is divided once, so each test has its own.
class SmPartitionsTest : public CallsOfLibraryTest {
 protected:
  SmPartitionsTest() {
    driver = FakeDriver();
    driver.gpus = 100;
    driver.device = gpu_;
  }
  ~SmPartitionsTest() override { MakeStreamsOfGroup(0, -1); }

  // Makes a stream as TensorFlow does. Returns the SMs of its partition, or 0
  // if the stream is an ordinary one.
  int SmsOfStream(const char* function = "PriorityStreamOfDriver",
                  int value = 0) {
    driver.stream_partition = 0;
    EXPECT_EQ(Call(function, value), 0);
    return static_cast<int>(driver.partitions[driver.stream_partition]);
  }
  int SmsOfGroup(int group) {
    MakeStreamsOfGroup(gpu_, group);
    return SmsOfStream();
  }
  void Redirect() {
    const absl::Status status = RedirectStreamCreation(kLibrary, kCuda);
    EXPECT_TRUE(status.ok()) << status;
  }
  static void ExpectError(const absl::Status& status, absl::StatusCode code,
                          const std::vector<std::string>& parts) {
    EXPECT_EQ(status.code(), code) << status;
    for (const std::string& part : parts) {
      EXPECT_TRUE(absl::StrContains(status.message(), part))
          << part << " is not in: " << status;
    }
  }

  const int gpu_ = tests++;

 private:
  static inline int tests = 0;
};

TEST_F(SmPartitionsTest, AGroupsStreamsHaveItsSmsAndAllOthersTheRest) {
  const absl::Status status = DivideSms(gpu_, 6, {{0, 3, 32}, {4, 4, 16}});
  ASSERT_TRUE(status.ok()) << status;
  Redirect();
  for (int group = 0; group < 4; ++group) EXPECT_EQ(SmsOfGroup(group), 32);
  EXPECT_EQ(SmsOfGroup(4), 16);
  EXPECT_EQ(SmsOfGroup(5), 84);
  EXPECT_EQ(driver.last_partition, 3);  // the groups 0 to 3 share one
  // A thread that makes the streams of no group.
  MakeStreamsOfGroup(0, -1);
  EXPECT_EQ(SmsOfStream(), 84);
  MakeStreamsOfGroup(gpu_, 0);
  std::thread([this] { EXPECT_EQ(SmsOfStream(), 84); }).join();
}

TEST_F(SmPartitionsTest, AStreamKeepsItsPriority) {
  ASSERT_TRUE(DivideSms(gpu_, 2, {{0, 0, 8}}).ok());
  Redirect();
  MakeStreamsOfGroup(gpu_, 0);
  EXPECT_EQ(SmsOfStream("PriorityStreamOfDriver", -5), 8);
  EXPECT_EQ(driver.stream_priority, -5);
  EXPECT_EQ(SmsOfStream("StreamOfDriver", CU_STREAM_NON_BLOCKING), 8);
  EXPECT_EQ(driver.stream_priority, 0);
}

TEST_F(SmPartitionsTest, OtherStreamsAreCudas) {
  ASSERT_TRUE(DivideSms(gpu_, 2, {{0, 0, 8}}).ok());
  Redirect();
  // A stream that waits for the null stream cannot be in a partition.
  MakeStreamsOfGroup(gpu_, 0);
  EXPECT_EQ(SmsOfStream("StreamOfDriver", CU_STREAM_DEFAULT), 0);
  EXPECT_EQ(Cuda("given"), CU_STREAM_DEFAULT);
  // GPUs that are not divided, and groups of one that is not.
  MakeStreamsOfGroup(0, -1);
  driver.device = 99;
  EXPECT_EQ(SmsOfStream("PriorityStreamOfDriver", -3), 0);
  EXPECT_EQ(Cuda("given"), -3);
  MakeStreamsOfGroup(99, 1);
  EXPECT_EQ(SmsOfStream(), 0);
}

TEST_F(SmPartitionsTest, AllSmsMayBeNamed) {
  driver.sms = 64;
  ASSERT_TRUE(DivideSms(gpu_, 2, {{1, 1, 48}, {0, 0, 16}}).ok());
  Redirect();
  EXPECT_EQ(SmsOfGroup(0), 16);
  EXPECT_EQ(SmsOfGroup(1), 48);
  MakeStreamsOfGroup(0, -1);
  EXPECT_EQ(SmsOfStream(), 0);  // no SM is left
}

TEST_F(SmPartitionsTest, ANumberThatTheGpuDoesNotGiveIsAnError) {
  const absl::Status status = DivideSms(gpu_, 8, {{2, 5, 20}});
  ExpectError(status, absl::StatusCode::kInvalidArgument,
              {"TF_GPU_STREAM_GROUP_SMS asks for 20 SMs for stream groups 2 to "
               "5",
               "gives 24 SMs", "multiples of 8"});
  EXPECT_EQ(DivideSms(gpu_, 8, {{2, 5, 20}}), status);
  Redirect();
  EXPECT_EQ(SmsOfGroup(2), 0);
}

TEST_F(SmPartitionsTest, MoreThanTheGpuHasIsAnError) {
  ExpectError(DivideSms(gpu_, 2, {{0, 0, 64}, {1, 1, 72}}),
              absl::StatusCode::kInvalidArgument,
              {"72 SMs for stream group 1,", "has 68 left"});
}

TEST_F(SmPartitionsTest, SmsThatTheDriverCannotSplitOffAreAnError) {
  ExpectError(DivideSms(gpu_, 2, {{0, 0, 132}}),
              absl::StatusCode::kInvalidArgument,
              {"cannot give as many of the 132", "multiples of 8"});
}

TEST_F(SmPartitionsTest, NoSmsForTheOthersIsAnError) {
  driver.sms = 64;
  ExpectError(DivideSms(gpu_, 3, {{1, 1, 64}}),
              absl::StatusCode::kInvalidArgument,
              {"leaves no SM", "for 2 of its 3 stream groups"});
}

TEST_F(SmPartitionsTest, AnErrorOfCudaIsTold) {
  driver.result = CUDA_ERROR_NOT_SUPPORTED;
  const absl::Status status = DivideSms(gpu_, 2, {{0, 0, 8}});
  EXPECT_TRUE(absl::StrContains(status.message(), "cuDeviceGetDevResource"))
      << status;
}

TEST_F(SmPartitionsTest, ALibraryThatMakesNoStreamsIsAnError) {
  ExpectError(RedirectStreamCreation("libfake_driver.so", kCuda),
              absl::StatusCode::kUnimplemented,
              {"TF_GPU_STREAM_GROUP_SMS has no effect: libfake_driver.so"});
}

TEST_F(SmPartitionsTest, AGpuIsDividedForOneNumberOfGroups) {
  ASSERT_TRUE(DivideSms(gpu_, 2, {{0, 0, 8}}).ok());
  ASSERT_TRUE(DivideSms(gpu_, 2, {{0, 0, 8}}).ok());
  ExpectError(DivideSms(gpu_, 4, {{0, 0, 8}}),
              absl::StatusCode::kFailedPrecondition,
              {"divided for 2 stream groups already, and cannot have 4"});
}

// Both replace the functions that make streams.
TEST_F(SmPartitionsTest, ForeignCapturesAreIgnoredToo) {
  ASSERT_TRUE(DivideSms(gpu_, 2, {{0, 0, 8}}).ok());
  for (int i = 0; i < 2; ++i) {
    Redirect();
    ASSERT_TRUE(IgnoreForeignCapturesIn(kLibrary, kCuda).ok());
  }
  Cuda("exchanges") = 0;
  EXPECT_EQ(SmsOfGroup(0), 8);
  EXPECT_EQ(Cuda("exchanges"), 2);
  MakeStreamsOfGroup(99, 1);
  EXPECT_EQ(SmsOfStream("StreamOfDriver", CU_STREAM_NON_BLOCKING), 0);
  EXPECT_EQ(Cuda("mode_of_call"), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

}  // namespace
}  // namespace tensorflow::multistream
