// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How many calls of Predict does a model server answer?
//
//   load ADDRESS FOLDER CLIENTS SECONDS [RATE]
//
// ADDRESS is HOST:PORT for gRPC, http://HOST:PORT/PATH for REST. FOLDER has the
// requests 0.request, 1.request, ... for gRPC, 0.json, ... for REST, and for
// each the bytes of the values in the right answer, 0.values, ... Each client
// has a connection and a call at a time. With RATE, calls come at random times
// instead (a Poisson process), so many in a second on average, over the
// clients' connections, and a call's time is from when it was to come.
//
// Warms the server up, prints "ready", and waits for a line. Then it measures,
// and prints one line, JSON: calls, calls in a second, times in milliseconds,
// answers with other bits that are close (floats of steps with other batches),
// wrong answers, calls that failed, when slow calls came in bursts, and the
// text of the last error.

#include <absl/synchronization/mutex.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "examples/serving/front/load_clients.h"

namespace {

using front::Clients;
using front::Outcome;
using front::Query;

using Clock = std::chrono::steady_clock;

// Before the measurement: kernels, recordings.
constexpr std::chrono::seconds kWarmUp(2);
constexpr size_t kMostBursts = 10;

// Without what JSON would have to escape.
std::string Plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return c < ' ' || c == '"' || c == '\\'; }, ' ');
  return text;
}

class Load {
 public:
  Load(std::unique_ptr<Clients> clients, int count, std::vector<Query> queries)
      : clients_(std::move(clients)),
        count_(static_cast<size_t>(count)),
        queries_(std::move(queries)) {}

  // Calls that begin before `end` follow on each other.
  void RunClosed(Clock::time_point end) {
    for (size_t client = 0; client < count_; ++client) {
      Begin(client, Clock::now(), end);
    }
    Wait();
  }

  void RunOpen(double rate, Clock::time_point end) {
    std::mt19937_64 random(1);
    std::exponential_distribution<double> between(rate);
    for (auto at = Clock::now(); at < end;
         at += std::chrono::duration_cast<Clock::duration>(
             std::chrono::duration<double>(between(random)))) {
      std::this_thread::sleep_until(at);
      Begin(next_++ % count_, at, Clock::time_point::min());
    }
    Wait();
  }

  void Forget() {
    times_.clear();
    ends_.clear();
    forgot_ = Clock::now();
    close_ = wrong_ = failed_ = 0;
    error_.clear();
  }

  // The calls that took over three times the median, as bursts: those that
  // ended within 10 ms of each other. "[[second, calls, longest], ...]", of the
  // largest bursts.
  std::string Bursts(double median) {
    struct Burst {
      double begin, end;
      int calls;
      double longest;
    };
    std::vector<Burst> bursts;
    std::sort(ends_.begin(), ends_.end());
    for (const auto& [end, time] : ends_) {
      if (time < 3 * median) continue;
      if (bursts.empty() || end > bursts.back().end + 0.01) {
        bursts.push_back({end, end, 0, 0});
      }
      Burst& burst = bursts.back();
      burst.end = end;
      ++burst.calls;
      burst.longest = std::max(burst.longest, time);
    }
    std::sort(bursts.begin(), bursts.end(),
              [](const auto& a, const auto& b) { return a.calls > b.calls; });
    std::string text;
    for (size_t i = 0; i < bursts.size() && i < kMostBursts; ++i) {
      char burst[64];
      snprintf(burst, sizeof burst, "%s[%.3f, %d, %.3f]", i ? ", " : "",
               bursts[i].begin, bursts[i].calls, bursts[i].longest);
      text += burst;
    }
    return "[" + text + "]";
  }

  void Print(double seconds) {
    std::sort(times_.begin(), times_.end());
    const auto at = [&](double part) {
      return times_.empty()
                 ? 0.0
                 : times_[static_cast<size_t>(part * (times_.size() - 1))];
    };
    printf(
        "{\"calls\": %zu, \"per_second\": %.1f, \"p50\": %.4f, \"p99\": %.4f, "
        "\"p999\": %.4f, \"longest\": %.4f, \"close\": %ld, \"wrong\": %ld, "
        "\"failed\": %ld, \"bursts\": %s, \"error\": \"%s\"}\n",
        times_.size(), times_.size() / seconds, at(0.5), at(0.99), at(0.999),
        at(1), close_, wrong_, failed_, Bursts(at(0.5)).c_str(),
        error_.c_str());
  }

 private:
  void Begin(size_t client, Clock::time_point begin, Clock::time_point end) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++open_;
    }
    const size_t number = queried_++ % queries_.size();
    clients_->Call(
        client, queries_[number],
        [this, client, begin, end](const Outcome& outcome) {
          const auto now = Clock::now();
          if (now < end) Begin(client, now, end);
          std::lock_guard<std::mutex> lock(mutex_);
          times_.push_back(
              std::chrono::duration<double, std::milli>(now - begin).count());
          ends_.push_back({std::chrono::duration<double>(now - forgot_).count(),
                           times_.back()});
          close_ += outcome.answer == Outcome::kClose;
          wrong_ += outcome.answer == Outcome::kWrong;
          failed_ += !outcome.error.empty();
          if (!outcome.error.empty()) error_ = Plain(outcome.error);
          if (--open_ == 0) ended_.notify_all();
        });
  }

  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait(lock, [&] { return open_ == 0; });
  }

  const std::unique_ptr<Clients> clients_;
  const size_t count_;
  const std::vector<Query> queries_;
  std::atomic<size_t> queried_{0};
  size_t next_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  size_t open_ = 0;
  Clock::time_point forgot_ = Clock::now();
  std::vector<double> times_;
  std::vector<std::pair<double, double>> ends_;  // seconds, and the times
  long close_ = 0, wrong_ = 0, failed_ = 0;
  std::string error_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 5 && count != 6) {
    fprintf(stderr, "usage: load ADDRESS FOLDER CLIENTS SECONDS [RATE]\n");
    return 2;
  }
  std::vector<Query> queries = front::ReadQueries(arguments[2]);
  const int clients = atoi(arguments[3]);
  const double seconds = atof(arguments[4]);
  const double rate = count == 6 ? atof(arguments[5]) : 0;
  if (queries.empty() || clients < 1 || seconds <= 0 || rate < 0) {
    fprintf(stderr, "load: no requests in %s, or a wrong number\n",
            arguments[2]);
    return 2;
  }
  // Debian's Abseil looks for deadlocks at each lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const std::string address = arguments[1];
  const bool is_rest = address.rfind("http://", 0) == 0;
  // Never deleted: threads of its clients wait for calls.
  Load& load = *new Load(is_rest ? front::RestClients(address, clients)
                                 : front::GrpcClients(address, clients),
                         clients, std::move(queries));
  load.RunClosed(Clock::now() + kWarmUp);
  load.Forget();
  printf("ready\n");
  fflush(stdout);
  // EOF: the program that started this one has ended.
  if (getchar() == EOF) return 1;
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(seconds));
  if (rate > 0) {
    load.RunOpen(rate, end);
  } else {
    load.RunClosed(end);
  }
  load.Print(std::chrono::duration<double>(Clock::now() - begin).count());
  return 0;
}
