// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/stream/forked_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_group.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_stream_group.h"

namespace tensorflow::multistream {
namespace {

// The result of `f` in a fork()ed child.
bool InChild(const std::function<bool()>& f) {
  const pid_t child = fork();
  if (child == 0) _exit(f() ? 1 : 0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status) == 1;
}

// One test for all, because the state of a process cannot be reset.
TEST(ForkStateTest, GroupsAreOfTheParentWhereItHadSomeOrWasMakingThem) {
  EXPECT_FALSE(GroupsAreOfParent());
  EXPECT_FALSE(InChild(GroupsAreOfParent)) << "a parent without groups";
  {
    const MakingGroups making;
    EXPECT_TRUE(InChild(GroupsAreOfParent)) << "while groups were made";
  }
  EXPECT_FALSE(InChild(GroupsAreOfParent)) << "after none had been made";

  StreamRecord record;
  std::vector<std::unique_ptr<StreamGroup>> groups;
  groups.push_back(std::make_unique<FakeStreamGroup>(0, 0, &record));
  GpuGroups* gpu =
      RegisterGpuGroups(0, std::make_unique<GpuGroups>(std::move(groups)));
  EXPECT_TRUE(InChild(GroupsAreOfParent)) << "a parent with groups";
  EXPECT_TRUE(InChild([] { return InChild(GroupsAreOfParent); }))
      << "its child's child";
  EXPECT_TRUE(InChild([] {
    return FindGpuGroups(0) == nullptr && AllGpuGroups().empty();
  })) << "the child has none";

  EXPECT_FALSE(GroupsAreOfParent()) << "the parent goes on";
  EXPECT_EQ(FindGpuGroups(0), gpu);
  EXPECT_EQ(AllGpuGroups(), std::vector<GpuGroups*>{gpu});
}

}  // namespace
}  // namespace tensorflow::multistream
