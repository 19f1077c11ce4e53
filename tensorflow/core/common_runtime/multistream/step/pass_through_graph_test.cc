// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/pass_through_graph.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/base/on_thread.h"

namespace tensorflow::multistream {
namespace {

// Schedules one closure at its begin, one when its tensor is there, and one
// that ends the step.
class ReceivingExecutor : public Executor {
 public:
  ReceivingExecutor(std::function<void(std::string)> ran,
                    std::function<void()>* receive)
      : ran_(std::move(ran)), receive_(receive) {}

 private:
  void TFMS_RUN_ASYNC(const Args& args, DoneCallback done) override {
    EXPECT_TRUE(args.run_all_kernels_inline);
    args.runner([this] { ran_("send"); });
    *receive_ = [this, run = args.runner, done = std::move(done)] {
      run([this, run, done] {
        ran_("receive");
        run([this, done] {
          ran_("over");
          done(absl::OkStatus());
        });
      });
    };
  }

  const std::function<void(std::string)> ran_;
  std::function<void()>* const receive_;
};

class PassThroughGraphTest : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;

  // Runs a step whose tensor comes from another thread.
  void Run() {
    Executor::Args args;
    args.runner = [this](Executor::Args::Closure closure) {
      ++scheduled_;
      std::thread(std::move(closure)).join();
    };
    bool is_over = false;
    executor_->RunAsync(
        args, [&](const absl::Status& status) { is_over = status.ok(); });
    EXPECT_EQ(in_caller_, Names{"send"});
    std::thread([this] {
      receiver_ = std::this_thread::get_id();
      receive_();
    }).join();
    EXPECT_TRUE(is_over);
    EXPECT_EQ(in_caller_, Names{"send"});
  }

  Names in_caller_;
  Names in_receiver_;
  Names elsewhere_;
  int scheduled_ = 0;

 private:
  void Ran(std::string what) {
    const std::thread::id here = std::this_thread::get_id();
    (here == caller_     ? in_caller_
     : here == receiver_ ? in_receiver_
                         : elsewhere_)
        .push_back(std::move(what));
  }

  const std::thread::id caller_ = std::this_thread::get_id();
  std::thread::id receiver_;
  std::function<void()> receive_;
  const std::unique_ptr<Executor> executor_ =
      RunWhereTensorsAre(std::make_unique<ReceivingExecutor>(
          [this](std::string what) { Ran(std::move(what)); }, &receive_));
};

TEST_F(PassThroughGraphTest,
       WhatComesFromAnotherThreadGoesOnWhereTheCallerWants) {
  Run();
  EXPECT_EQ(in_receiver_, Names{});
  EXPECT_EQ(elsewhere_, (Names{"receive", "over"}));
  EXPECT_EQ(scheduled_, 1);
}

TEST_F(PassThroughGraphTest, AStepOfAWaitingCallerEndsWhereItsTensorComesFrom) {
  {
    WaitingCaller waits;
    Run();
  }
  EXPECT_EQ(in_receiver_, (Names{"receive", "over"}));
  EXPECT_EQ(elsewhere_, Names{});
  EXPECT_EQ(scheduled_, 0);
  EXPECT_FALSE(WaitingCaller::Get());
}

}  // namespace
}  // namespace tensorflow::multistream
