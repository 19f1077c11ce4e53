// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which threads of the operating system run the tasks of an execution?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_WORKERS_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_WORKERS_H_

#include <semaphore.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/testing/search/choices.h"
#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"
#include "tensorflow/core/platform/env.h"

namespace tensorflow::multistream::search {

// A pool of operating system threads, reused for the tasks of all executions.
class Workers {
 public:
  // `run` waits for a task's first turn, and runs the task to its end.
  explicit Workers(void (*run)(Task*)) : run_(run) {}

  void Start(Task* task) {
    // A forked child, as in gtest's death tests, has no copy of the threads.
    if (getpid() != process_) {
      for (auto* workers : {&idle_, &busy_}) {
        for (auto& worker : *workers) worker.release();
        workers->clear();
      }
      process_ = getpid();
    }
    if (idle_.empty()) {
      auto worker = std::make_unique<Worker>();
      sem_init(&worker->started, 0, 0);
      std::thread([this, worker = worker.get()] { Work(worker); }).detach();
      idle_.push_back(std::move(worker));
    }
    busy_.push_back(std::move(idle_.back()));
    idle_.pop_back();
    busy_.back()->task = task;
    sem_post(&busy_.back()->started);
  }
  // Call when all tasks have ended.
  void Rest() {
    for (auto& worker : busy_) idle_.push_back(std::move(worker));
    busy_.clear();
  }

 private:
  struct Worker {
    sem_t started;
    Task* task = nullptr;
  };
  void Work(Worker* worker) {
    while (true) {
      Wait(&worker->started);
      // The task may be deleted as soon as `run_` returns.
      run_(worker->task);
    }
  }

  void (*const run_)(Task*);
  std::vector<std::unique_ptr<Worker>> idle_, busy_;
  pid_t process_ = getpid();
};

// The result of seam.h's NewThread.
class StartedThread : public ::tensorflow::Thread {
 public:
  explicit StartedThread(const Task* task) : task_(task) {}
  ~StartedThread() override {
    if (!IsSearched()) {
      Found("a thread that the runtime has started is left at the end");
    }
    search::BlockUntil(
        ended_, [this] { return task_->has_ended; },
        "waits for the end of a thread", TFMS_SEARCH_HERE);
  }

 private:
  const Shared ended_;
  const Task* const task_;
};

}  // namespace tensorflow::multistream::search

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_WORKERS_H_
