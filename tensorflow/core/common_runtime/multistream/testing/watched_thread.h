// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// For tests: has a thread reached the point where it waits for another thread?

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_WATCHED_THREAD_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_WATCHED_THREAD_H_

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

namespace tensorflow::multistream {

// Runs a function in a thread of its own. The destructor waits for its end.
class WatchedThread {
 public:
  explicit WatchedThread(std::function<void()> f)
      : thread_([this, f = std::move(f)] {
          id_ = syscall(SYS_gettid);
          f();
          ended_ = true;
        }) {}
  ~WatchedThread() { thread_.join(); }
  WatchedThread(const WatchedThread&) = delete;
  WatchedThread& operator=(const WatchedThread&) = delete;

  // Waits until the function has returned or the thread sleeps. True if it has
  // returned.
  bool EndsBeforeItSleeps() const {
    while (!ended_ && !Sleeps()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return ended_;
  }

 private:
  // Reads /proc: the state follows the thread's name, which is in parentheses.
  bool Sleeps() const {
    if (id_ == 0) return false;
    std::ifstream file("/proc/self/task/" + std::to_string(id_) + "/stat");
    const std::string line((std::istreambuf_iterator<char>(file)), {});
    const size_t end_of_name = line.rfind(") ");
    return end_of_name != std::string::npos && line[end_of_name + 2] == 'S';
  }

  std::atomic<int64_t> id_{0};
  std::atomic<bool> ended_{false};
  std::thread thread_;  // last: it uses the members above
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_WATCHED_THREAD_H_
