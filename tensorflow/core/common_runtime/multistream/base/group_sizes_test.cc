// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/base/group_sizes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tensorflow::multistream {
namespace {

constexpr int64_t kMegabyte = 1 << 20;
constexpr char kReserveVariable[] = "TF_DEVICE_MIN_SYS_MEMORY_IN_MB";

// Three GPUs, of which GPU k has 1000 + 100k MiB: free_ + 100k free, 60 of them
// reserved, and per_group_ and per_context_ MiB more for each group and each
// context beyond the first.
class GroupSizesTest : public ::testing::Test {
 protected:
  GroupSizesTest() { unsetenv(kReserveVariable); }
  ~GroupSizesTest() override { unsetenv(kReserveVariable); }

  absl::StatusOr<std::vector<GpuSizes>> Plan() {
    return PlanGroupSizes(options_, config_, physical_, [this](int gpu) {
      return MemoryInfo{(free_ + 100 * gpu) * kMegabyte,
                        (1000 + 100 * gpu) * kMegabyte, 60 * kMegabyte,
                        per_group_ * kMegabyte, per_context_ * kMegabyte};
    });
  }

  // "0:4x210 1:4x235": GPU, groups, MiB of each group.
  std::string Planned() {
    const absl::StatusOr<std::vector<GpuSizes>> sizes = Plan();
    if (!sizes.ok()) return sizes.status().ToString();
    std::string text;
    for (const GpuSizes& size : *sizes) {
      EXPECT_EQ(size.group_bytes % kMegabyte, 0);
      absl::StrAppend(&text, text.empty() ? "" : " ", size.gpu, ":",
                      size.groups, "x", size.group_bytes / kMegabyte);
    }
    return text;
  }

  void ExpectRefused(absl::StatusCode code,
                     const std::vector<std::string>& parts) {
    const absl::Status status = Plan().status();
    EXPECT_EQ(status.code(), code);
    for (const std::string& part : parts) {
      EXPECT_TRUE(absl::StrContains(status.message(), part))
          << part << " is not in: " << status;
    }
  }

  GPUOptions::Experimental* experimental() {
    return config_.mutable_gpu_options()->mutable_experimental();
  }
  // False if this release of TensorFlow has no such field.
  bool SetExperimental(const std::string& field, int number) {
    const auto* found = experimental()->GetDescriptor()->FindFieldByName(field);
    if (found == nullptr) return false;
    experimental()->GetReflection()->SetInt32(experimental(), found, number);
    return true;
  }

  int64_t free_ = 900;
  int64_t per_group_ = 0;
  int64_t per_context_ = 0;
  Options options_{/*group_counts=*/{4}};
  ConfigProto config_;
  std::vector<int> physical_ = {0, 1, 2};
};

TEST_F(GroupSizesTest, GroupsShareTheFreeMemoryEvenlyInWholeMegabytes) {
  EXPECT_EQ(Planned(), "0:4x210 1:4x235 2:4x260");
  options_.group_counts = {1, 2, 4};
  EXPECT_EQ(Planned(), "0:1x840 1:2x470 2:4x260");
  physical_ = {0};
  options_.group_counts = {11};
  EXPECT_EQ(Planned(), "0:11x76");
}

// Each group has library handles of its own, beside TensorFlow's memory.
TEST_F(GroupSizesTest, EachFurtherGroupReservesMemory) {
  per_group_ = 40;
  physical_ = {0};
  EXPECT_EQ(Planned(), "0:4x180");  // (900 - 60 - 3 * 40) / 4
  options_.group_counts = {1};
  EXPECT_EQ(Planned(), "0:1x840");
  // An explicit fraction is of the total memory, and used as it is.
  options_.group_counts = {4};
  config_.mutable_gpu_options()->set_per_process_gpu_memory_fraction(0.5);
  EXPECT_EQ(Planned(), "0:4x125");
}

TEST_F(GroupSizesTest, EachFurtherContextReservesMemory) {
  per_context_ = 80;
  physical_ = {0, 1};
  options_.context_counts = {1, 3};
  EXPECT_EQ(Planned(), "0:4x210 1:4x195");  // (1000 - 60 - 2 * 80) / 4
  EXPECT_EQ((*Plan())[0].contexts, (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ((*Plan())[1].contexts, (std::vector<int>{0, 1, 2, 0}));
  // No more contexts than groups.
  options_.context_counts = {64};
  options_.group_counts = {2};
  EXPECT_EQ(Planned(), "0:2x380 1:2x430");
}

TEST_F(GroupSizesTest, VisibleDeviceListChoosesAndOrdersTheGpus) {
  config_.mutable_gpu_options()->set_visible_device_list("2,0");
  EXPECT_EQ(Planned(), "2:4x260 0:4x210");
  options_.group_counts = {2, 1};
  EXPECT_EQ(Planned(), "2:2x520 0:1x840");
  for (const char* list : {"3", "-1", "0,x", "0,0", "0,"}) {
    config_.mutable_gpu_options()->set_visible_device_list(list);
    ExpectRefused(absl::StatusCode::kInvalidArgument,
                  {absl::StrCat("visible_device_list=\"", list, "\""),
                   "different numbers out of 0, 1, 2"});
  }
}

TEST_F(GroupSizesTest, DeviceCountLimitsTheGpus) {
  (*config_.mutable_device_count())["GPU"] = 2;
  EXPECT_EQ(Planned(), "0:4x210 1:4x235");
  (*config_.mutable_device_count())["GPU"] = 9;
  EXPECT_EQ(Planned(), "0:4x210 1:4x235 2:4x260");
}

TEST_F(GroupSizesTest, ListsThatDoNotFitTheGpusOrGroupsAreRefused) {
  for (size_t entries : {4, 2}) {
    options_.group_counts.assign(entries, 4);
    ExpectRefused(
        absl::StatusCode::kInvalidArgument,
        {absl::StrCat("TF_GPU_STREAM_GROUP_COUNT=\"",
                      absl::StrJoin(options_.group_counts, ","), "\""),
         "3 visible GPUs"});
  }
  options_.group_counts = {4};
  options_.priorities = {-1, 0};
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                {"TF_GPU_STREAM_GROUP_PRIORITIES", "has 4 stream groups"});
}

TEST_F(GroupSizesTest, TheMemoryOfASingleLogicalDeviceIsSplit) {
  physical_ = {0, 1};
  auto* first = experimental()->add_virtual_devices();
  EXPECT_EQ(Planned(), "0:4x210 1:4x235");  // without a limit: all of the GPU
  first->add_memory_limit_mb(512);
  EXPECT_EQ(Planned(), "0:4x128 1:4x235");
  auto* second = experimental()->add_virtual_devices();
  second->add_memory_limit_mb(100);
  second->add_memory_limit_mb(200);
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                {"GPU 1", "2 logical devices", "TF_GPU_STREAM_GROUP_COUNT=4",
                 "unset the variable"});
}

TEST_F(GroupSizesTest, VirtualDevicesPerGpuAreRefused) {
  if (!SetExperimental("num_virtual_devices_per_gpu", 2)) {
    GTEST_SKIP() << "This release of TensorFlow has no such field.";
  }
  ExpectRefused(absl::StatusCode::kInvalidArgument,
                {"num_virtual_devices_per_gpu=2", "TF_GPU_STREAM_GROUP_COUNT"});
  SetExperimental("num_virtual_devices_per_gpu", 1);
  EXPECT_TRUE(Plan().ok());
}

TEST_F(GroupSizesTest, NoGpuIsAnErrorUnlessTheSessionWantsNone) {
  physical_ = {};
  ExpectRefused(absl::StatusCode::kFailedPrecondition,
                {"TF_GPU_STREAM_GROUP_COUNT=4", "no usable GPU", "unset",
                 "TF_MULTI_STREAM_EMULATED_GPUS=1"});
  (*config_.mutable_device_count())["GPU"] = 0;
  EXPECT_EQ(Planned(), "");
  physical_ = {0};
  EXPECT_EQ(Planned(), "");
}

TEST_F(GroupSizesTest, ReservedMemoryOfTheEnvironmentWins) {
  physical_ = {0};
  // As in TensorFlow, 0 reserves nothing, not even for the driver. More than
  // is free, and what is no number, is ignored.
  for (const auto& [reserve, planned] : {std::pair{"100", "0:4x200"},
                                         {"0", "0:4x225"},
                                         {"100000", "0:4x210"},
                                         {"-5", "0:4x210"},
                                         {"lots", "0:4x210"}}) {
    setenv(kReserveVariable, reserve, 1);
    EXPECT_EQ(Planned(), planned) << reserve;
  }
  if (!SetExperimental("gpu_system_memory_size_in_mb", 500)) {
    GTEST_SKIP() << "This release of TensorFlow has no such field.";
  }
  // An ignored variable does not hide ConfigProto's reserve.
  EXPECT_EQ(Planned(), "0:4x100");
  setenv(kReserveVariable, "100", 1);
  EXPECT_EQ(Planned(), "0:4x200");
  config_.mutable_gpu_options()->set_per_process_gpu_memory_fraction(0.1);
  EXPECT_EQ(Planned(), "0:4x200");
  unsetenv(kReserveVariable);
  EXPECT_EQ(Planned(), "0:4x100");
}

TEST_F(GroupSizesTest, LessThanAMegabyteForEachGroupIsRefused) {
  physical_ = {0};
  options_.group_counts = {64};
  experimental()->add_virtual_devices()->add_memory_limit_mb(63);
  ExpectRefused(absl::StatusCode::kResourceExhausted,
                {"GPU 0", "64 stream groups", "at least 1 MiB"});
  experimental()->mutable_virtual_devices(0)->set_memory_limit_mb(0, 64);
  EXPECT_EQ(Planned(), "0:64x1");
  // A GPU that other processes have filled.
  experimental()->clear_virtual_devices();
  options_.group_counts = {4};
  free_ = 12;
  ExpectRefused(absl::StatusCode::kResourceExhausted,
                {"GPU 0 has 0 MiB to give", "4 stream groups",
                 " 1000 MiB 12 are free", "nvidia-smi"});
}

TEST(AllowGrowthTest, TheVariableIsStrongerThanTheConfiguration) {
  for (bool configured : {false, true}) {
    GPUOptions options;
    options.set_allow_growth(configured);
    for (const auto& [value, expected] :
         {std::pair{"true", true}, {"false", false}, {"perhaps", configured}}) {
      setenv("TF_FORCE_GPU_ALLOW_GROWTH", value, 1);
      EXPECT_EQ(AllowGrowth(options), expected) << value;
    }
    unsetenv("TF_FORCE_GPU_ALLOW_GROWTH");
    EXPECT_EQ(AllowGrowth(options), configured);
  }
}

}  // namespace
}  // namespace tensorflow::multistream
