// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which thread runs next, at each point where several can? Exhaustive, random,
// or replayed from a report.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_CHOICES_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_CHOICES_H_

#include <semaphore.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/core/common_runtime/multistream/testing/search/scheduler.h"

namespace tensorflow::multistream::search {

// A thread of the program.
struct Task {
  int id = 0;
  std::string name;
  bool is_daemon = false;
  std::function<void()> body;

  sem_t turn;
  // True once the thread can go on; empty: it can now.
  std::function<bool()> ready;
  bool may_time_out = false;
  bool timed_out = false;
  bool has_ended = false;
  bool yields = false;  // other tasks run first
  int64_t last_turn = 0;
  int64_t made = 0;        // how many Shared objects it made
  int64_t operations = 0;  // executed so far
  int64_t priority = 0;
  // Its latest operation.
  const char* operation = "begins";
  Place place = {"", 0};
};

inline void Wait(sem_t* semaphore) {
  while (sem_wait(semaphore) != 0) {
  }
}

// Chooses the task that runs next.
class Choices {
 public:
  virtual ~Choices() = default;
  // `options`: tasks that can go on, at least two. `current`: index of the
  // running task in `options`, or -1 if it cannot go on. `operations`: executed
  // so far. Returns an index.
  virtual int Choose(const std::vector<Task*>& options, int current,
                     int64_t operations) = 0;
};

// Depth-first search of all executions: each backtracks to the previous one's
// last choice with an untried option. Without a deviation the current task goes
// on while it can, and then the first task that can.
class AllChoices : public Choices {
 public:
  explicit AllChoices(int most_deviations)
      : most_deviations_(most_deviations) {}

  int Choose(const std::vector<Task*>& options, int current, int64_t) override {
    const int usual = std::max(current, 0);
    if (deviations_ >= most_deviations_) return usual;
    const int count = static_cast<int>(options.size());
    if (next_ == path_.size()) path_.push_back({count, 0});
    Choice& choice = path_[next_++];
    // Executions with equal choices may still differ: the order of hash tables
    // of pointers varies.
    choice.options = count;
    if (choice.chosen >= count) choice.chosen = 0;
    if (choice.chosen == 0) return usual;
    ++deviations_;
    return choice.chosen <= usual ? choice.chosen - 1 : choice.chosen;
  }

  // False if every execution has been run.
  bool Next() {
    path_.resize(next_);
    while (!path_.empty() && path_.back().chosen + 1 >= path_.back().options) {
      path_.pop_back();
    }
    if (path_.empty()) return false;
    ++path_.back().chosen;
    next_ = 0;
    deviations_ = 0;
    return true;
  }
  void Restart() {
    path_.clear();
    next_ = 0;
    deviations_ = 0;
  }

 private:
  struct Choice {
    int options;
    int chosen;  // 0: no deviation
  };
  const int most_deviations_;
  int deviations_ = 0;
  std::vector<Choice> path_;
  size_t next_ = 0;
};

// PCT: the task with the highest priority runs. Priorities are random, and at a
// few random choices the current task's becomes the lowest.
class RandomChoices : public Choices {
 public:
  RandomChoices(uint64_t seed, int changes, int64_t choices)
      : random_(seed), lowest_(0) {
    for (int i = 0; i < changes; ++i) {
      change_at_.insert(random_() % std::max<int64_t>(choices, 1));
    }
  }

  int Choose(const std::vector<Task*>& options, int current, int64_t) override {
    for (Task* task : options) {
      if (task->priority == 0) task->priority = 1 + random_() % (1 << 20);
    }
    if (change_at_.count(choices_++) > 0 && current >= 0) {
      options[current]->priority = --lowest_;
    }
    int highest = 0;
    for (size_t i = 1; i < options.size(); ++i) {
      if (options[i]->priority > options[highest]->priority) {
        highest = static_cast<int>(i);
      }
    }
    return highest;
  }
  int64_t choices() const { return choices_; }

 private:
  std::mt19937_64 random_;
  std::set<int64_t> change_at_;
  int64_t choices_ = 0;
  int64_t lowest_;
};

// The switches printed in a report: pairs of operations executed before the
// switch, and id of the task that runs next.
class ReplayedChoices : public Choices {
 public:
  explicit ReplayedChoices(const char* text) {
    while (*text != '\0') {
      char* end;
      const int64_t operations = std::strtoll(text, &end, 10);
      const int task = *end == ':' ? std::strtol(end + 1, &end, 10) : -1;
      if (task < 0)
        Found("TFMS_SEARCH_REPLAY is not what a report has printed");
      switches_.push_back({operations, task});
      text = *end == ',' ? end + 1 : end;
    }
  }
  int Choose(const std::vector<Task*>& options, int current,
             int64_t operations) override {
    if (next_ < switches_.size() && switches_[next_].first == operations) {
      const int id = switches_[next_++].second;
      for (size_t i = 0; i < options.size(); ++i) {
        if (options[i]->id == id) return static_cast<int>(i);
      }
    }
    return std::max(current, 0);
  }

 private:
  std::vector<std::pair<int64_t, int>> switches_;
  size_t next_ = 0;
};

}  // namespace tensorflow::multistream::search

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_CHOICES_H_
