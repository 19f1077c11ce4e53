// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What did each group's stream run, and when? Off by default; each place that
// could record an event asks IsOn first, which costs one relaxed load.
//
//   const int64_t begin = Trace::Begin();           // 0 if tracing is off
//   ...                                             // the work
//   if (begin != 0) Trace::Get()->Record({kind, gpu, group, begin, ...});
//
// tf.cuda.trace starts the trace, and makes a timeline of the events.

#ifndef TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TRACE_TRACE_H_
#define TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TRACE_TRACE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace tensorflow::multistream {

enum class TraceKind {
  kStep,    // from when a group was given a step until its stream completed it
  kKernel,  // an op; `amount`: 0
  kCopy,    // `amount`: bytes
  kWait,    // for another group's event; `amount`: the other group
  kCallback,  // on the host
  kReplay,    // of a captured step; `amount`: its kernels
  kHold,      // of another group's memory; `amount`: bytes
};

struct TraceEvent {
  TraceKind kind;
  int gpu;
  int group;
  int64_t begin;  // nanoseconds of the steady clock
  int64_t end;
  int64_t amount;    // see TraceKind
  std::string type;  // of a kernel's op
  std::string name;
};

// One for the process. Thread-safe.
class Trace {
 public:
  static Trace* Get();

  static bool IsOn() { return on_.load(std::memory_order_relaxed); }
  // The time, or 0 if tracing is off.
  static int64_t Begin() { return IsOn() ? Now() : 0; }
  static int64_t Now();

  // False if tracing is on already. Keeps the first `most_events` events, and
  // only counts later ones.
  bool Start(size_t most_events);

  // Sets `event.end` to now. Ignores events that began before Start, or end
  // after Stop.
  //
  // A group's stream runs its kernels and copies one after the other. On an
  // emulated GPU two may overlap: then the event that ends first is drawn
  // first, and the other event from there on.
  void Record(TraceEvent event);

  struct Recorded {
    std::vector<TraceEvent> events;  // in the order in which they ended
    int64_t dropped = 0;             // events beyond `most_events`
  };
  // Empty if tracing is off.
  Recorded Stop();

  // The first line is the number of dropped events. Then a line for each event:
  // kind, GPU, group, begin, end, amount, type and name, separated by tabs.
  static std::string Lines(const Recorded& recorded);

 private:
  Trace() = default;

  static std::atomic<bool> on_;

  absl::Mutex mu_;
  size_t most_events_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t started_ ABSL_GUARDED_BY(mu_) = 0;
  Recorded recorded_ ABSL_GUARDED_BY(mu_);
  // Until when each stream is busy. The key: GPU and group.
  std::map<std::pair<int, int>, int64_t> busy_until_ ABSL_GUARDED_BY(mu_);
};

// Records one event, from construction to destruction.
class ScopedTrace {
 public:
  ScopedTrace(TraceKind kind, int gpu, int group)
      : kind_(kind), gpu_(gpu), group_(group), begin_(Trace::Begin()) {}
  ~ScopedTrace() {
    if (begin_ == 0) return;
    Trace::Get()->Record({kind_, gpu_, group_, begin_, 0, amount_,
                          std::move(type_), std::move(name_)});
  }
  ScopedTrace(const ScopedTrace&) = delete;
  ScopedTrace& operator=(const ScopedTrace&) = delete;

  // Whether the event will be recorded. If not, skip making a name for Set.
  bool is_on() const { return begin_ != 0; }
  void Set(int64_t amount, std::string name, std::string type = "") {
    amount_ = amount;
    name_ = std::move(name);
    type_ = std::move(type);
  }

 private:
  const TraceKind kind_;
  const int gpu_;
  const int group_;
  const int64_t begin_;
  int64_t amount_ = 0;
  std::string type_;
  std::string name_;
};

}  // namespace tensorflow::multistream

#endif  // TENSORFLOW_CORE_COMMON_RUNTIME_MULTISTREAM_TRACE_TRACE_H_
