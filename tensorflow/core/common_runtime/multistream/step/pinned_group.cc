// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/pinned_group.h"

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "tensorflow/core/common_runtime/multistream/base/compat.h"

namespace tensorflow::multistream {
namespace {

struct PinnedRunner {
  PinnedGroups groups;
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
    const PinnedGroups pinned = PinnedThread::Get();
    if (pinned.is_any()) {
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

PinnedGroups PinnedGroupsOf(const Executor::Args& args) {
  const PinnedGroups pinned = PinnedThread::Get();
  if (!pinned.is_any()) return pinned;
  const auto* runner = args.runner.target<PinnedRunner>();
  return runner == nullptr ? PinnedGroups() : runner->groups;
}

StepGroups::StepGroups(GpuGroups* gpu, std::string name, const Options& options,
                       int groups)
    : gpu_(gpu),
      name_(std::move(name)),
      all_(Options().GroupsForAll(groups)),
      for_all_(options.GroupsForAll(groups)) {}

absl::StatusOr<StreamGroup*> StepGroups::StartStep(
    const Executor::Args& args) const {
  const PinnedGroups pinned = PinnedGroupsOf(args);
  if (pinned.is_any()) return gpu_->StartStep(for_all_);
  const int groups = static_cast<int>(all_.size());
  if (pinned.first < 0 || pinned.first > pinned.last || pinned.last >= groups) {
    return absl::InvalidArgumentError(absl::StrCat(
        "A call was to run on ", TextOfGroups(pinned.first, pinned.last),
        ", and ", name_, " has ", groups, " stream groups, numbered from 0"));
  }
  return gpu_->StartStep(absl::MakeConstSpan(all_).subspan(
                             pinned.first, pinned.last - pinned.first + 1),
                         /*is_pinned=*/true);
}

std::unique_ptr<Executor> KeepPinnedGroups(std::unique_ptr<Executor> executor) {
  return std::make_unique<PinKeepingExecutor>(std::move(executor));
}

}  // namespace tensorflow::multistream
