/* Copyright 2026 The Multi-Stream TensorFlow Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
==============================================================================*/

#include "tensorflow/examples/multistream/load.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tensorflow {
namespace multistream {
namespace {

using Clock = std::chrono::steady_clock;
using Feeds = std::vector<std::pair<std::string, Tensor>>;

double SecondsBetween(Clock::time_point start, Clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

// Each input set as Session::Run takes it. The tensors' memory is shared.
std::vector<Feeds> FeedsOf(const Queries& queries) {
  std::vector<Feeds> feeds;
  for (const InputSet& set : queries.input_sets) {
    Feeds& feed = feeds.emplace_back();
    for (size_t i = 0; i < set.size(); ++i) {
      feed.emplace_back(queries.input_names[i], set[i]);
    }
  }
  return feeds;
}

// CPU seconds that this process has used, in all its threads.
double CpuSeconds() {
  std::timespec time;
  return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time) == 0
             ? time.tv_sec + time.tv_nsec * 1e-9
             : 0;
}

void CountAt(size_t second, int64_t queries, std::vector<int64_t>* counts) {
  if (counts->size() <= second) counts->resize(second + 1);
  (*counts)[second] += queries;
}

// Lets all threads start at the same moment, and tells them to stop.
class Course {
 public:
  // Waits for Start() or Fail(). False if there is nothing to run.
  bool AwaitStart() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return started_ || stopped_; });
    return !stopped_;
  }

  void Start() {
    std::unique_lock<std::mutex> lock(mutex_);
    start_ = Clock::now();
    cpu_at_seconds_ = {CpuSeconds()};
    started_ = true;
    changed_.notify_all();
  }
  // Set once AwaitStart() says true.
  Clock::time_point start() const { return start_; }

  // A query has ended in that second, counted from the start.
  void EnterSecond(size_t second) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (cpu_at_seconds_.size() > second) return;
    cpu_at_seconds_.resize(second + 1, CpuSeconds());
  }

  // At the start of each second in which a query has ended.
  std::vector<double> cpu_at_seconds() {
    std::unique_lock<std::mutex> lock(mutex_);
    return cpu_at_seconds_;
  }

  // Keeps the first error and stops all threads.
  void Fail(const absl::Status& error) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (error_.ok()) error_ = error;
    stopped_ = true;
    changed_.notify_all();
  }

  bool stopped() const { return stopped_; }

  absl::Status error() {
    std::unique_lock<std::mutex> lock(mutex_);
    return error_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;  // guarded by mutex_
  Clock::time_point start_;
  std::vector<double> cpu_at_seconds_;  // guarded by mutex_
  absl::Status error_;                  // guarded by mutex_
  std::atomic<bool> stopped_{false};
};

// One client thread's share of the load.
struct Client {
  int64_t number;
  LoadFigures figures;  // without seconds
  Clock::time_point end;

  void Run(Session* session, const Queries& queries,
           const std::vector<Feeds>& feeds, const LoadOptions& options,
           Course* course) {
    if (!course->AwaitStart()) return;
    const Clock::time_point start = course->start();
    end = start;
    std::vector<Tensor> results;
    size_t current_second = 0;
    for (int64_t i = 0; i < options.iters && !course->stopped(); ++i) {
      if (options.max_seconds > 0 &&
          SecondsBetween(start, end) >= options.max_seconds) {
        break;
      }
      // Threads start at different sets: neighbours in time differ in input.
      const size_t set = (number + i) % feeds.size();
      const Clock::time_point before = Clock::now();
      const absl::Status status =
          session->Run(feeds[set], queries.output_names, {}, &results);
      end = Clock::now();
      if (!status.ok()) return course->Fail(status);
      figures.latencies_in_millis.push_back(
          static_cast<float>(SecondsBetween(before, end) * 1e3));
      const auto second = static_cast<size_t>(SecondsBetween(start, end));
      CountAt(second, 1, &figures.queries_of_seconds);
      if (second > current_second) course->EnterSecond(second);
      current_second = second;
      if (options.reference != nullptr) {
        figures.verification.Add(
            Compare(results, (*options.reference)[set], options.tolerance));
      }
    }
  }
};

}  // namespace

void Verification::Add(const Difference& difference) {
  ++verified;
  wrong += difference.wrong;
  max_absolute = std::max(max_absolute, difference.max_absolute);
  max_relative = std::max(max_relative, difference.max_relative);
  if (first_wrong.empty()) first_wrong = difference.first;
}

void Verification::Add(const Verification& other) {
  verified += other.verified;
  wrong += other.wrong;
  max_absolute = std::max(max_absolute, other.max_absolute);
  max_relative = std::max(max_relative, other.max_relative);
  if (first_wrong.empty()) first_wrong = other.first_wrong;
}

absl::StatusOr<std::vector<ResultSet>> RunEachOnce(Session* session,
                                                   const Queries& queries) {
  std::vector<ResultSet> results;
  for (const Feeds& feeds : FeedsOf(queries)) {
    absl::Status status =
        session->Run(feeds, queries.output_names, {}, &results.emplace_back());
    if (!status.ok()) return status;
  }
  return results;
}

absl::StatusOr<LoadFigures> RunLoad(Session* session, const Queries& queries,
                                    const LoadOptions& options) {
  const std::vector<Feeds> feeds = FeedsOf(queries);
  std::vector<Client> clients(options.number_of_threads);
  std::vector<std::thread> threads;
  Course course;
  for (size_t i = 0; i < clients.size(); ++i) {
    clients[i].number = i;
    try {
      threads.emplace_back(&Client::Run, &clients[i], session,
                           std::cref(queries), std::cref(feeds),
                           std::cref(options), &course);
    } catch (const std::system_error& error) {
      course.Fail(absl::ResourceExhaustedError(
          absl::StrCat("number_of_threads ", options.number_of_threads,
                       ": the system gave only ", i, ": ", error.what())));
      break;
    }
  }
  course.Start();
  for (std::thread& thread : threads) thread.join();
  const double cpu_at_end = CpuSeconds();
  if (absl::Status error = course.error(); !error.ok()) return error;

  LoadFigures total;
  Clock::time_point end = course.start();
  for (const Client& client : clients) {
    end = std::max(end, client.end);
    const std::vector<float>& latencies = client.figures.latencies_in_millis;
    total.latencies_in_millis.insert(total.latencies_in_millis.end(),
                                     latencies.begin(), latencies.end());
    const std::vector<int64_t>& counts = client.figures.queries_of_seconds;
    for (size_t second = 0; second < counts.size(); ++second) {
      CountAt(second, counts[second], &total.queries_of_seconds);
    }
    total.verification.Add(client.figures.verification);
  }
  total.seconds = SecondsBetween(course.start(), end);
  const std::vector<double> cpu = course.cpu_at_seconds();
  for (size_t i = 1; i < cpu.size(); ++i) {
    total.cpu_of_seconds.push_back(cpu[i] - cpu[i - 1]);
  }
  total.cpu_seconds = cpu_at_end - cpu.front();
  return total;
}

}  // namespace multistream
}  // namespace tensorflow
