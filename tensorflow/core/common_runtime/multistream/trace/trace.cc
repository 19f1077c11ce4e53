// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/trace/trace.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace tensorflow::multistream {
namespace {

// In the order of TraceKind.
constexpr const char* kKindNames[] = {"step",     "kernel", "copy", "wait",
                                      "callback", "replay", "hold"};

bool IsOnStream(TraceKind kind) {
  return kind == TraceKind::kKernel || kind == TraceKind::kCopy;
}

// Names may contain tabs and line ends, which separate fields and events.
std::string InLine(const std::string& text) {
  return absl::StrReplaceAll(text, {{"\t", " "}, {"\n", " "}, {"\r", " "}});
}

}  // namespace

std::atomic<bool> Trace::on_{false};

Trace* Trace::Get() {
  static auto* trace = new Trace;
  return trace;
}

int64_t Trace::Now() {
  return std::chrono::steady_clock::now().time_since_epoch() /
         std::chrono::nanoseconds(1);
}

bool Trace::Start(size_t most_events) {
  absl::MutexLock lock(&mu_);
  if (IsOn()) return false;
  most_events_ = most_events;
  recorded_ = {};
  busy_until_.clear();
  started_ = Now();
  on_.store(true, std::memory_order_relaxed);
  return true;
}

void Trace::Record(TraceEvent event) {
  absl::MutexLock lock(&mu_);
  // The event may have begun during an earlier trace.
  if (!IsOn() || event.begin < started_) return;
  if (recorded_.events.size() >= most_events_) {
    ++recorded_.dropped;
    return;
  }
  event.end = Now();
  if (IsOnStream(event.kind)) {
    int64_t& busy_until = busy_until_[{event.gpu, event.group}];
    event.begin = std::max(event.begin, busy_until);
    busy_until = event.end;
  }
  recorded_.events.push_back(std::move(event));
}

Trace::Recorded Trace::Stop() {
  absl::MutexLock lock(&mu_);
  on_.store(false, std::memory_order_relaxed);
  return std::exchange(recorded_, {});
}

std::string Trace::Lines(const Recorded& recorded) {
  std::string lines = absl::StrCat(recorded.dropped, "\n");
  for (const TraceEvent& event : recorded.events) {
    absl::StrAppend(&lines, kKindNames[static_cast<int>(event.kind)], "\t",
                    event.gpu, "\t");
    absl::StrAppend(&lines, event.group, "\t", event.begin, "\t", event.end,
                    "\t");
    absl::StrAppend(&lines, event.amount, "\t", InLine(event.type), "\t",
                    InLine(event.name), "\n");
  }
  return lines;
}

}  // namespace tensorflow::multistream
