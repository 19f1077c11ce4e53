// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Runs without a GPU: the test's own platform has host executors. Only a run on
// a GPU shows that the streams, cuBLAS handles and so on of several CUDA
// executors work side by side.

#include "tensorflow/core/common_runtime/multistream/cuda/stream_executors.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "tensorflow/core/common_runtime/device/device_event_mgr.h"
#include "tensorflow/core/platform/stream_executor.h"
#include "tensorflow/core/protobuf/config.pb.h"
#include "xla/stream_executor/event.h"
#include "xla/stream_executor/executor_cache.h"
#include "xla/stream_executor/gpu/gpu_init.h"
#include "xla/stream_executor/host/host_executor.h"
#include "xla/stream_executor/host/host_platform.h"
#include "xla/stream_executor/platform.h"
#include "xla/stream_executor/platform_manager.h"
#include "xla/stream_executor/stream.h"
#include "xla/stream_executor/stream_executor.h"

namespace stream_executor {
namespace {

Platform* gpus_of_the_test = nullptr;

}  // namespace

// Replaces TensorFlow's function.
Platform* GPUMachineManager() {
  if (gpus_of_the_test != nullptr) return gpus_of_the_test;
  static const auto stock = reinterpret_cast<Platform* (*)()>(
      dlsym(RTLD_NEXT, "_ZN15stream_executor17GPUMachineManagerEv"));
  return stock();
}

}  // namespace stream_executor

namespace tensorflow::multistream {

// The linker name by which TensorFlow calls it, unless it is inlined.
void ThenExecute(EventMgr* events, se::Stream* stream, std::function<void()> f) __asm__(
    "_ZN10tensorflow8EventMgr11ThenExecuteEPN15stream_executor6StreamE"
    "St8functionIFvvEE");

namespace {

using Made = absl::StatusOr<std::unique_ptr<se::StreamExecutor>>;

class Executor : public se::host::HostExecutor {
 public:
  using HostExecutor::HostExecutor;
  absl::StatusOr<std::unique_ptr<se::Event>> CreateEvent() override {
    ++events;
    return HostExecutor::CreateEvent();
  }
  std::atomic<int> events{0};
};

Made NewExecutor(int ordinal) {
  return std::make_unique<Executor>(/*platform=*/nullptr, ordinal);
}

se::Platform* Host() {
  auto host = se::PlatformManager::PlatformWithName("Host");
  EXPECT_TRUE(host.ok()) << host.status();
  return host.ok() ? *host : nullptr;
}

se::StreamExecutor* ExecutorOf(se::Platform* platform, int ordinal) {
  auto executor = platform->ExecutorForDevice(ordinal);
  EXPECT_TRUE(executor.ok()) << executor.status();
  return executor.ok() ? *executor : nullptr;
}

// Any number of GPUs; making an executor may fail.
class FakeGpus : public se::host::HostPlatform {
 public:
  absl::StatusOr<se::StreamExecutor*> ExecutorForDevice(int ordinal) override {
    return cache_.GetOrCreate(ordinal, [this, ordinal]() -> Made {
      ++made;
      if (!error.ok()) return error;
      if (when_making) when_making();
      return NewExecutor(ordinal);
    });
  }
  absl::Status error;
  std::function<void()> when_making;
  int made = 0;

 private:
  se::ExecutorCache cache_;
};

class GroupExecutorsTest : public ::testing::Test {
 protected:
  GroupExecutorsTest() : gpus_(Gpus()), gpu_(10 * ++tests) {
    se::gpus_of_the_test = gpus_;
    gpus_->made = 0;
  }
  ~GroupExecutorsTest() override {
    ChooseExecutor(0, 0);
    gpus_->error = absl::OkStatus();
    gpus_->when_making = nullptr;
    se::gpus_of_the_test = nullptr;
  }

  // The executor that this thread's lookup returns after the choice.
  se::StreamExecutor* Chosen(int gpu, int group, int context = 0) {
    ChooseExecutor(gpu, group, context);
    return ExecutorOf(gpus_, gpu);
  }

  FakeGpus* const gpus_;
  const int gpu_;  // another for each test: executors are never deleted

 private:
  static FakeGpus* Gpus() {
    static auto* gpus = new FakeGpus;
    return gpus;
  }
  static inline int tests = 0;
};

TEST_F(GroupExecutorsTest, EachGroupHasOneExecutorAndTheLeaderTheStockOne) {
  se::StreamExecutor* stock = ExecutorOf(gpus_, gpu_);
  std::set<se::StreamExecutor*> all = {stock};
  std::vector<se::StreamExecutor*> by_group = {stock};
  for (int group = 1; group < 4; ++group) {
    by_group.push_back(Chosen(gpu_, group));
    all.insert(by_group.back());
    EXPECT_EQ(by_group.back()->device_ordinal(), gpu_);
  }
  EXPECT_EQ(all.size(), 4);
  EXPECT_EQ(gpus_->made, 4);
  for (int group = 3; group >= 0; --group) {
    EXPECT_EQ(Chosen(gpu_, group), by_group[group]) << group;
  }
  EXPECT_EQ(gpus_->made, 4);
}

TEST_F(GroupExecutorsTest, AChoiceIsForOneGpuAndThreadUntilTheNext) {
  se::StreamExecutor* stock = ExecutorOf(gpus_, gpu_);
  se::StreamExecutor* other_gpu = ExecutorOf(gpus_, gpu_ + 1);
  se::StreamExecutor* own = Chosen(gpu_, 1);
  EXPECT_EQ(ExecutorOf(gpus_, gpu_), own);
  EXPECT_EQ(ExecutorOf(gpus_, gpu_ + 1), other_gpu);
  std::thread([&] {
    EXPECT_EQ(ExecutorOf(gpus_, gpu_), stock);
    EXPECT_EQ(Chosen(gpu_, 1), own);
  }).join();
  EXPECT_EQ(ExecutorOf(gpus_, gpu_), own);
  EXPECT_NE(Chosen(gpu_ + 1, 1), own);
  EXPECT_EQ(ExecutorOf(gpus_, gpu_), stock);
  EXPECT_EQ(Chosen(gpu_, 1), own);
}

TEST_F(GroupExecutorsTest, AChoiceIsForTheGpusPlatform) {
  Chosen(0, 1);
  se::StreamExecutor* of_host = ExecutorOf(Host(), 0);
  se::ExecutorCache cache;
  int made = 0;
  auto get = [&] {
    return *cache.GetOrCreate(0, [&] {
      ++made;
      return NewExecutor(0);
    });
  };
  se::StreamExecutor* of_cache = get();
  ChooseExecutor(0, 0);
  EXPECT_EQ(ExecutorOf(Host(), 0), of_host);
  EXPECT_EQ(get(), of_cache);
  EXPECT_EQ(*cache.Get(0), of_cache);
  EXPECT_EQ(made, 1);
}

TEST_F(GroupExecutorsTest, AnErrorIsToldToWhoAsksNextAndNotKept) {
  const absl::Status error = absl::UnavailableError("it is busy");
  // First making TensorFlow's executor fails, then making the group's.
  for (bool has_stock : {false, true}) {
    if (has_stock) ExecutorOf(gpus_, gpu_);
    gpus_->error = error;
    ChooseExecutor(gpu_, 1);
    EXPECT_EQ(gpus_->ExecutorForDevice(gpu_).status(), error);
    gpus_->error = absl::OkStatus();
    if (has_stock) {
      se::StreamExecutor* own = ExecutorOf(gpus_, gpu_);
      EXPECT_NE(own, Chosen(gpu_, 0));
      EXPECT_EQ(own, Chosen(gpu_, 1));
    }
  }
}

TEST_F(GroupExecutorsTest, WhatAnExecutorAsksForWhenItIsMadeIsTheStockOne) {
  se::StreamExecutor* stock = ExecutorOf(gpus_, gpu_);
  se::StreamExecutor* of_host = ExecutorOf(Host(), 0);
  int times = 0;
  gpus_->when_making = [&] {
    EXPECT_EQ(ExecutorOf(gpus_, gpu_), stock);
    EXPECT_EQ(ExecutorOf(Host(), 0), of_host);
    ++times;
  };
  se::StreamExecutor* own = Chosen(gpu_, 1);
  EXPECT_EQ(times, 1);
  EXPECT_NE(own, stock);
  EXPECT_EQ(ExecutorOf(gpus_, gpu_), own);
}

// One for a context, because each manager has a polling thread, and an event
// can be recorded only on streams of its own context.
TEST_F(GroupExecutorsTest, EachContextHasAnEventManager) {
  const auto manager = [&](int gpu, int group, int context) {
    return EventMgrFactory::Singleton()->GetEventMgr(
        Chosen(gpu, group, context), GPUOptions());
  };
  EventMgr* of_first = manager(gpu_, 4, 0);
  EXPECT_EQ(manager(gpu_, 5, 0), of_first);
  EXPECT_EQ(manager(gpu_, 0, 0), of_first);
  EventMgr* of_second = manager(gpu_, 1, 1);
  EXPECT_EQ(manager(gpu_, 3, 1), of_second);
  const std::set<EventMgr*> all = {of_first, of_second, manager(gpu_, 2, 2),
                                   manager(gpu_ + 1, 1, 0)};
  EXPECT_EQ(all.size(), 4);
}

// TensorFlow calls the visible device's manager for copies of all groups.
TEST_F(GroupExecutorsTest, AStreamsContextSaysWhoseEventIsRecorded) {
  EventMgrFactory* factory = EventMgrFactory::Singleton();
  auto* stock = static_cast<Executor*>(Chosen(gpu_, 0));
  auto* first = static_cast<Executor*>(Chosen(gpu_, 1, 1));
  auto* second = static_cast<Executor*>(Chosen(gpu_, 3, 1));
  auto* beside = static_cast<Executor*>(Chosen(gpu_, 2, 0));
  EventMgr* visible = factory->GetEventMgr(stock, GPUOptions());
  for (auto* executor : {first, second, beside}) {
    factory->GetEventMgr(executor, GPUOptions());
  }
  const auto run_on = [&](Executor* executor) {
    auto stream = executor->CreateStream(/*priority=*/std::nullopt);
    ASSERT_TRUE(stream.ok()) << stream.status();
    absl::Notification done;
    ThenExecute(visible, stream->get(), [&] { done.Notify(); });
    done.WaitForNotification();
  };
  run_on(second);
  EXPECT_EQ(first->events, 1);
  EXPECT_EQ(second->events, 0);
  EXPECT_EQ(stock->events, 0);
  run_on(beside);
  EXPECT_EQ(stock->events, 1);
  EXPECT_EQ(beside->events, 0);
  EXPECT_EQ(first->events, 1);
}

}  // namespace
}  // namespace tensorflow::multistream
