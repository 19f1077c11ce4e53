// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/pinned_group.h"

#include <functional>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/base/compat.h"

namespace tensorflow::multistream {
namespace {

thread_local int pinned = kAnyGroup;

struct PinnedRunner {
  int group;
  Executor::Args::Runner run;

  void operator()(Executor::Args::Closure closure) const {
    run(std::move(closure));
  }
};

class PinKeepingExecutor : public Executor {
 public:
  explicit PinKeepingExecutor(std::unique_ptr<Executor> wrapped)
      : wrapped_(std::move(wrapped)) {}

 private:
  void TFMS_RUN_ASYNC(const Args& args, DoneCallback done) override {
    if (pinned == kAnyGroup) {
      wrapped_->RunAsync(args, std::move(done));
      return;
    }
    Args ours = args;
    ours.runner = PinnedRunner{pinned, args.runner};
    wrapped_->RunAsync(ours, std::move(done));
  }

  const std::unique_ptr<Executor> wrapped_;
};

}  // namespace

int PinThread(int group) { return std::exchange(pinned, group); }

int PinnedGroup(const Executor::Args& args) {
  if (pinned != kAnyGroup) return pinned;
  const auto* runner = args.runner.target<PinnedRunner>();
  return runner == nullptr ? kAnyGroup : runner->group;
}

std::unique_ptr<Executor> KeepPinnedGroup(std::unique_ptr<Executor> executor) {
  return std::make_unique<PinKeepingExecutor>(std::move(executor));
}

}  // namespace tensorflow::multistream
