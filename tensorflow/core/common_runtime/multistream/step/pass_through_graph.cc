// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/step/pass_through_graph.h"

#include <memory>
#include <utility>

#include "tensorflow/core/common_runtime/multistream/base/compat.h"
#include "tensorflow/core/common_runtime/multistream/base/on_thread.h"

namespace tensorflow::multistream {
namespace {

// The step whose closure this thread is running, or nullptr.
class Running : public OnThread<Running, const void*> {
 public:
  using OnThread::OnThread;
};

// Runs a closure at once only in a thread that is in this step already. Results
// come from the thread that runs stream callbacks; what the caller does next
// must not run there, because the caller may wait for another callback.
struct PassingRunner {
  std::shared_ptr<const Executor::Args::Runner> run;  // identifies the step
  bool caller_waits;

  void operator()(Executor::Args::Closure closure) const {
    if (Running::Get() == run.get()) {
      closure();
      return;
    }
    if (caller_waits) {
      Running here(run.get());
      closure();
      return;
    }
    (*run)([step = run, closure = std::move(closure)] {
      Running here(step.get());
      closure();
    });
  }
};

class PassingExecutor : public Executor {
 public:
  explicit PassingExecutor(std::unique_ptr<Executor> stock)
      : stock_(std::move(stock)) {}

 private:
  void TFMS_RUN_ASYNC(const Args& args, DoneCallback done) override {
    Args ours = args;
    PassingRunner runner{
        std::make_shared<const Args::Runner>(std::move(ours.runner)),
        WaitingCaller::Get()};
    Running here(runner.run.get());
    ours.runner = std::move(runner);
    ours.run_all_kernels_inline = true;
    stock_->RunAsync(ours, std::move(done));
  }

  const std::unique_ptr<Executor> stock_;
};

}  // namespace

std::unique_ptr<Executor> RunWhereTensorsAre(std::unique_ptr<Executor> stock) {
  return std::make_unique<PassingExecutor>(std::move(stock));
}

}  // namespace tensorflow::multistream
