// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which interleavings of a few threads break a protocol? The scheduler runs a
// program of threads again and again, each time with another interleaving, one
// thread at a time. `bazel test --config=search` compiles the runtime with
// seam.h, through which every lock, condition variable, notification, atomic,
// clock and yield of namespace multistream calls the scheduler: before each of
// these operations the scheduler decides which thread goes on.
//
//   const Searched searched = SearchAll([](Program* program) {
//     auto lock = std::make_shared<SidedLocks>();
//     program->Thread("a", [=] { lock->Enter(...); ... });
//     program->Thread("b", [=] { ... });
//     program->Run();
//     Expect(count == 2, "both have counted");
//   });
//
// A failure prints the interleaving and ends the process with status
// kFoundStatus. The printed TFMS_SEARCH_REPLAY replays that one interleaving.
//
// Searched: interleavings of whole operations. Not searched: the weaker orders
// that memory_order_acquire and release allow, and data races (ThreadSanitizer
// finds these).
//
// After CHESS (Musuvathi and Qadeer, 2007), delay bounding (Emmi and others,
// 2011: few deviations from one schedule find most faults), PCT (Burckhardt and
// others, 2010), Loom and Shuttle.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_SCHEDULER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <string>

namespace tensorflow::multistream::search {

// Exit status of a search that found a fault, for gtest's EXPECT_EXIT.
constexpr int kFoundStatus = 7;

// A line of the program under search, for reports.
struct Place {
  const char* file;
  int line;
};
#define TFMS_SEARCH_HERE                     \
  ::tensorflow::multistream::search::Place { \
    __builtin_FILE(), __builtin_LINE()       \
  }

// One execution of a program.
class Program {
 public:
  virtual ~Program() = default;

  // Adds a thread, which starts in Run.
  virtual void Thread(std::string name, std::function<void()> body) = 0;
  // Adds a thread without an end of its own, such as a stream: its body returns
  // once BlockUntil returns false. Daemons come after all threads in the usual
  // order, so they run when the others are blocked, or as a deviation.
  virtual void Daemon(std::string name, std::function<void()> body) = 0;
  // Runs all threads until they have ended and the daemons are blocked.
  virtual void Run() = 0;
};

using Body = std::function<void(Program*)>;

struct Limits {
  // SearchAll: most deviations from the usual order, in which a thread runs
  // until it blocks or ends, and then the first thread that can go on.
  int deviations = 2;
  // SearchAtRandom: changes of priority (PCT's depth minus one).
  int changes = 3;
  double seconds = 20;
  // Most operations of one execution; more count as a livelock.
  int64_t operations = 20'000;
};

// Limits for a search in CI that needs other values than the defaults.
inline Limits Of(int deviations, double seconds = Limits().seconds) {
  Limits limits;
  limits.deviations = deviations;
  limits.seconds = seconds;
  return limits;
}
inline Limits Seconds(double seconds) {
  return Of(Limits().deviations, seconds);
}

struct Searched {
  int64_t executions = 0;
  int64_t most_operations = 0;  // of any one execution
  // Every interleaving within limits.deviations was run.
  bool all = false;
};

// Runs `body` with each interleaving of at most limits.deviations.
Searched SearchAll(const Body& body, const Limits& limits = {});
// With random priorities, a few of which change.
Searched SearchAtRandom(const Body& body, const Limits& limits = {});

// Reports a fault, with `what`, unless `is_true`.
void Expect(bool is_true, const std::string& what);
[[noreturn]] void Found(const std::string& what);

// Below: for the seam, and for fakes that block.

// Whether the caller is a thread of a running program.
bool IsSearched();

// An object that several threads touch. Its id is the same in each execution.
class Shared {
 public:
  Shared();
  int64_t id() const { return id_; }

 private:
  const int64_t id_;
};

// The caller is about to touch `object`: a point at which other threads may run
// first.
void Touch(const Shared& object, const char* operation, Place place);
// The same, and blocks until `ready`, which must have no side effects, returns
// true. Returns false if the execution is over, and the calling daemon must
// return; or, with `may_time_out`, after a timeout, which happens only when no
// thread can go on.
bool BlockUntil(const Shared& object, const std::function<bool()>& ready,
                const char* operation, Place place, bool may_time_out = false);
// For reports only: names the caller's next action; no other thread runs here.
void Tell(const char* operation, Place place);
// Other threads run first, if any can.
void Yield(Place place);
// Simulated nanoseconds since the execution began: 1 us for each operation.
int64_t Clock();
// The calling thread's id, and a thread's simulated CPU time.
int ThisTask();
int64_t ClockOf(int task);
void Sleep(int64_t nanos, Place place);

}  // namespace tensorflow::multistream::search

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_SCHEDULER_H_
