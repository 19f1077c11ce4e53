// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which interleavings of a few threads break a protocol? The scheduler runs a
// program of threads again and again, each time with another interleaving, one
// thread at a time. `bazel test --config=search` compiles the runtime with
// seam.h, which puts every lock, condition, notification, atomic, clock and
// yield of namespace multistream into the scheduler's hands: before each such
// operation the scheduler decides which thread goes on.
//
//   const Searched searched = SearchAll([](Program* program) {
//     auto lock = std::make_shared<SidedLocks>();
//     program->Thread("a", [=] { lock->Enter(...); ... });
//     program->Thread("b", [=] { ... });
//     program->Run();
//     Expect(count == 2, "both have counted");
//   });
//
// What fails prints the interleaving and ends the process with status
// kFoundStatus. The printed TFMS_SEARCH_REPLAY runs that one interleaving
// again.
//
// What is searched: interleavings of whole operations. What is not: the weaker
// orders that a processor may show for memory_order_acquire and release, and
// data that no lock or atomic guards (ThreadSanitizer finds that).
//
// After CHESS (Musuvathi and Qadeer, 2007), delay bounding (Emmi and others,
// 2011: few deviations from one schedule find most faults), PCT (Burckhardt and
// others, 2010), Loom and Shuttle.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_SCHEDULER_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_SCHEDULER_H_

#include <cstdint>
#include <functional>
#include <string>

namespace tensorflow {
namespace multistream {
namespace search {

// Of a process whose search has found something, for gtest's EXPECT_EXIT.
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

  // A thread, which runs in Run.
  virtual void Thread(std::string name, std::function<void()> body) = 0;
  // A thread that has no end of its own, as a stream: its body returns once
  // BlockUntil says false. It is run when other threads are blocked, or instead
  // of one.
  virtual void Daemon(std::string name, std::function<void()> body) = 0;
  // Runs all threads until they have ended and the daemons are blocked.
  virtual void Run() = 0;
};

using Body = std::function<void(Program*)>;

struct Limits {
  // Exhaustive up to so many deviations from the usual: a thread goes on until
  // it is blocked or has ended, and then the first one that can.
  int deviations = 2;
  // At random: so many changes of priority (PCT's depth, less one).
  int changes = 3;
  int64_t executions = 1'000'000;
  double seconds = 20;
  uint64_t seed = 1;
  // Operations of one execution; more of them mean that it does not end.
  int64_t operations = 20'000;
};

// Those of a search in CI that has other ones of its own.
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
  int64_t most_operations = 0;  // of an execution
  // Every interleaving with so few deviations was run.
  bool all = false;
};

// Runs `body` with each interleaving of at most limits.deviations.
Searched SearchAll(const Body& body, const Limits& limits = {});
// With random priorities, a few of which change.
Searched SearchAtRandom(const Body& body, const Limits& limits = {});

// Unless it is true, the search has found something.
void Expect(bool is_true, const std::string& what);
[[noreturn]] void Found(const std::string& what);

// Below: for the seam, and for fakes that block.

// Whether the caller is a thread of a running program.
bool IsSearched();

// What several threads touch. A number that is the same in each execution.
class Shared {
 public:
  Shared();
  int64_t id() const { return id_; }

 private:
  const int64_t id_;
};

// The caller is about to touch `object`: other threads may go on before.
void Touch(const Shared& object, const char* operation, Place place);
// The same, and blocks until `ready` says true; it only looks. False: the
// execution is over, and the daemon is to return; or, if `may_time_out`, time
// has passed, as it does when no other thread can go on.
bool BlockUntil(const Shared& object, const std::function<bool()>& ready,
                const char* operation, Place place, bool may_time_out = false);
// Only for reports: what the caller does next, with no other thread between.
void Tell(const char* operation, Place place);
// Other threads go on first, if any can.
void Yield(Place place);
// Nanoseconds since the execution began: a microsecond an operation.
int64_t Clock();
// The calling thread, and what a thread's own operations have taken.
int ThisTask();
int64_t ClockOf(int task);
void Sleep(int64_t nanos, Place place);

}  // namespace search
}  // namespace multistream
}  // namespace tensorflow

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TESTING_SEARCH_SCHEDULER_H_
