// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A fork()ed child's work that needs no GPU never waits for its parent's
// groups, whose threads do not exist in the child. Steps run on all groups
// meanwhile, so that the groups' locks are held at the fork. (No thread makes
// sessions meanwhile: TensorFlow's lock of its device factories would be held.)

#include <execinfo.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/testing/emulated_session.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {
namespace {

constexpr int kGroups = 4;  // TF_GPU_STREAM_GROUP_COUNT of this target
constexpr int kForks = 50;  // of each test

Scope Products(int layers) {
  Scope root = Scope::NewRootScope().WithDevice("/device:GPU:0");
  Output y = ops::Placeholder(root.WithOpName("x"), DT_FLOAT);
  for (int i = 0; i < layers; ++i) {
    Tensor w(DT_FLOAT, TensorShape({16, 16}));
    w.flat<float>().setConstant(0.01f * static_cast<float>(i + 1));
    y = ops::Tanh(root, ops::MatMul(root, y, ops::Const(root, w)));
  }
  ops::Identity(root.WithOpName("y"), y);
  for (const char* name : {"alone", "new"}) {
    ops::Identity(root.WithOpName(name), ops::Const(root, 1.0f));
  }
  return root;
}

absl::Status RunOnce(Session* session) {
  Tensor x(DT_FLOAT, TensorShape({8, 16}));
  x.flat<float>().setConstant(1);
  std::vector<Tensor> y;
  return session->Run({{"x:0", x}}, {"y:0"}, {}, &y);
}

// Runs a step without work on the CPU in this thread, because TensorFlow's own
// pools have no threads in a child either.
absl::Status RunAlone(Session* session, const char* target) {
  RunOptions options;
  options.set_inter_op_thread_pool(-1);
  RunMetadata metadata;
  std::vector<Tensor> none;
  return session->Run(options, {}, {}, {target}, &none, &metadata);
}

void ShowStackAndEnd(int) {
  void* frames[64];
  backtrace_symbols_fd(frames, backtrace(frames, 64), STDERR_FILENO);
  _exit(1);
}

class ForkedChildTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(MultiStreamIsEnabled()) << CheckEnvironment();
    void* frame;
    backtrace(&frame, 1);  // loads the libraries that backtrace needs
    signal(SIGUSR1, &ShowStackAndEnd);
    // Has run steps on all groups, but runs none at a fork.
    at_rest_ = SessionOf(Products(3));
    for (int i = 0; i < 2 * kGroups; ++i) {
      ASSERT_TRUE(RunOnce(at_rest_.get()).ok());
      ASSERT_TRUE(RunAlone(at_rest_.get(), "alone").ok());
    }
    busy_ = SessionOf(Products(6));
    // Make the executors before the first fork: making them takes TensorFlow's
    // lock of its device factories.
    ASSERT_TRUE(RunOnce(busy_.get()).ok());
    for (int i = 0; i < 5; ++i) {
      threads_.emplace_back([this] {
        while (!stop_) EXPECT_TRUE(RunOnce(busy_.get()).ok());
      });
    }
  }
  void TearDown() override { StopLoad(); }
  void StopLoad() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  // Expects `f` to return true in many children, each forked a little later.
  void ExpectInChildren(const char* what, const std::function<bool()>& f) {
    for (int i = 0; i < kForks && !HasFailure(); ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(137 * (i % 16)));
      const pid_t child = fork();
      if (child == 0) _exit(f() ? 0 : 1);
      int status = 0;
      pid_t ended = 0;
      const bool ends = Eventually([&] {
        ended = waitpid(child, &status, WNOHANG);
        return ended != 0;
      });
      if (!ends) {
        kill(child, SIGUSR1);
        waitpid(child, &status, 0);
      }
      ASSERT_TRUE(ends) << what << ": child " << i
                        << " stood still; its stack is above";
      ASSERT_EQ(ended, child);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
          << what << ": child " << i << " ended with status " << status;
    }
  }

  std::unique_ptr<Session> at_rest_;
  std::unique_ptr<Session> busy_;
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

TEST_F(ForkedChildTest, ReleasesPinnedMemory) {
  Allocator* pinned = FindGpuGroups(0)->group(1)->host_allocator();
  ASSERT_NE(pinned, nullptr);
  Tensor fed(pinned, DT_FLOAT, TensorShape({1024}));
  for (int i = 0; i < 2; ++i) {
    threads_.emplace_back([this, pinned] {
      while (!stop_) Tensor(pinned, DT_FLOAT, TensorShape({1024}));
    });
  }
  ExpectInChildren("pinned memory", [&fed] {
    fed = Tensor();
    return true;
  });
}

TEST_F(ForkedChildTest, IsToldThatAStepCannotRun) {
  // Session::Run takes TensorFlow's lock of its metrics, which another thread
  // that runs a step may hold at the fork().
  StopLoad();
  for (const char* target : {"alone", "new"}) {  // "new" has no executors yet
    ExpectInChildren(target, [this, target] {
      const absl::Status status = RunAlone(at_rest_.get(), target);
      return absl::IsFailedPrecondition(status) &&
             absl::StrContains(status.message(), "fork()ed child");
    });
  }
}

}  // namespace
}  // namespace tensorflow::multistream
