// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/multistream.h"

#include <algorithm>
#include <cstring>

#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/base/process_options.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/capture/which/capture_report.h"
#include "tensorflow/core/common_runtime/multistream/hooks/group_requests.h"
#include "tensorflow/core/common_runtime/multistream/hooks/replaced_symbols.h"
#include "tensorflow/core/common_runtime/multistream/node_level/node_level_executor.h"
#include "tensorflow/core/common_runtime/multistream/node_level/plan_report.h"
#include "tensorflow/core/common_runtime/multistream/ops/known_variable.h"
#include "tensorflow/core/common_runtime/multistream/step/pinned_group.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/trace/trace.h"

namespace tensorflow::multistream {

bool MultiStreamIsEnabled() { return IsEnabled(); }

int StreamGroupCount(int gpu) {
  const std::vector<GpuGroups*> all = AllGpuGroups();
  if (gpu >= 0 && gpu < static_cast<int>(all.size())) return all[gpu]->size();
  if (!MultiStreamIsEnabled()) return 1;
  return ProcessOptions()->GroupCount(gpu);
}

std::vector<StreamGroupStats> StreamStats() {
  std::vector<StreamGroupStats> stats;
  for (GpuGroups* gpu : AllGpuGroups()) {
    for (const StreamGroupStats& group : gpu->Stats()) stats.push_back(group);
  }
  return stats;
}

absl::Status SynchronizeStreams(int group) {
  absl::Status status;
  for (GpuGroups* gpu : AllGpuGroups()) {
    for (int i = 0; i < gpu->size(); ++i) {
      if (group == kAnyGroup || group == i) {
        status.Update(gpu->group(i)->Block());
      }
    }
  }
  return status;
}

// Of all groups of all GPUs.
static absl::Status StartTrace(int64_t most_events) {
  if (!Trace::Get()->Start(most_events)) {
    return absl::FailedPreconditionError("a trace is on already");
  }
  absl::Status status;
  for (GpuGroups* gpu : AllGpuGroups()) {
    for (int i = 0; i < gpu->size(); ++i) {
      status.Update(gpu->group(i)->MarkForTrace());
    }
  }
  if (!status.ok()) Trace::Get()->Stop();
  return status;
}

// With all that the streams have been given so far.
static std::string StopTrace() {
  for (GpuGroups* gpu : AllGpuGroups()) {
    for (int i = 0; i < gpu->size(); ++i) gpu->group(i)->WaitForCallbacks();
  }
  return Trace::Lines(Trace::Get()->Stop());
}

ScopedStreamGroup::ScopedStreamGroup(int first, int last)
    : before_(PinnedThread::Exchange({first, last}).packed()) {}
ScopedStreamGroup::~ScopedStreamGroup() {
  PinnedThread::Exchange(PinnedGroups::Unpacked(before_));
}

// Without groups it does not matter whom calls reach.
static absl::Status CheckIfEnabled() {
  return IsEnabled() ? CheckReplacedSymbols() : absl::OkStatus();
}

std::string CheckEnvironment() {
  LookAtEnvironmentOnce();
  const auto& options = ProcessOptions();
  if (!options.ok()) return std::string(options.status().message());
  const absl::Status reached = CheckIfEnabled();
  if (!reached.ok()) return std::string(reached.message());
  return std::string(LoadProcessStreamFile(*options).status().message());
}

}  // namespace tensorflow::multistream

// Copies as much of `text` as fits, with a final 0; returns its length.
static int CopyText(const std::string& text, char* out, int size) {
  if (size > 0) {
    const size_t n = std::min(text.size(), static_cast<size_t>(size) - 1);
    std::memcpy(out, text.data(), n);
    out[n] = 0;
  }
  return static_cast<int>(text.size());
}

// The same for Python, which loads this library with ctypes.
extern "C" {

// CopyText of the message.
int TFMS_CheckEnvironment(char* message, int size) {
  return CopyText(tensorflow::multistream::CheckEnvironment(), message, size);
}

// CopyText of what is wrong with the order in which libraries were loaded.
int TFMS_CheckReplacedSymbols(char* message, int size) {
  return CopyText(
      std::string(tensorflow::multistream::CheckIfEnabled().message()), message,
      size);
}

int TFMS_IsEnabled() {
  return tensorflow::multistream::MultiStreamIsEnabled() ? 1 : 0;
}

int TFMS_StreamGroupCount(int gpu) {
  return tensorflow::multistream::StreamGroupCount(gpu);
}

// Writes at most `size` entries to `stats`; returns how many groups there are.
int TFMS_StreamStats(tensorflow::multistream::StreamGroupStats* stats,
                     int size) {
  const auto all = tensorflow::multistream::StreamStats();
  std::copy_n(all.begin(), std::min<size_t>(all.size(), std::max(size, 0)),
              stats);
  return static_cast<int>(all.size());
}

// Calls of this thread run on these groups (PinnedGroups::packed). Returns what
// was said before.
int64_t TFMS_PinThread(int64_t groups) {
  using namespace tensorflow::multistream;  // NOLINT
  return PinnedThread::Exchange(PinnedGroups::Unpacked(groups)).packed();
}

// Whether nodes have groups, rather than steps, where no session says.
int TFMS_IsNodeLevel() {
  const auto& options = tensorflow::multistream::ProcessOptions();
  return options.ok() && options->node_level ? 1 : 0;
}

// Blocks until everything that is enqueued on `group`'s streams, or to those of
// all groups if it is -1, is done on all GPUs. CopyText of an error message.
int TFMS_Synchronize(int group, char* message, int size) {
  const absl::Status status =
      tensorflow::multistream::SynchronizeStreams(group);
  return CopyText(std::string(status.message()), message, size);
}

// PlanTable for `bytes` bytes of a serialized GraphDef, with the options of the
// environment, of GPU 0. CopyText of the table, or -1 - that of an error
// message.
int TFMS_PlanTable(const char* graph, int bytes, const char* function,
                   int caller_group, char* table, int size) {
  using namespace tensorflow::multistream;  // NOLINT
  const absl::StatusOr<std::string> made =
      [&]() -> absl::StatusOr<std::string> {
    const auto& options = ProcessOptions();
    if (!options.ok()) return options.status();
    if (!options->any_node_level) return std::string();
    // Of its own: what people look at does not count as run.
    static const auto* file = new auto(LoadProcessStreamFile(*options));
    if (!file->ok()) return file->status();
    tensorflow::GraphDef def;
    if (!def.ParseFromArray(graph, bytes)) {
      return absl::InvalidArgumentError("not a graph");
    }
    NodePlanOptions plan;
    plan.group_count = StreamGroupCount(0);
    plan.caller_group = caller_group;
    plan.propagate = options->forward_propagation;
    plan.policy = options->policy;
    plan.file = (*file)->get();
    return PlanTable(def, function, plan);
  }();
  if (!made.ok()) {
    return -1 - CopyText(std::string(made.status().message()), table, size);
  }
  return CopyText(*made, table, size);
}

// Groups of nodes are noted from now on, as steps run.
void TFMS_StartSavedPlan() { tensorflow::multistream::SavedPlan::Start(); }

// Until now: CopyText of a line "GROUP NAME" for each node, or -1 - that of an
// error message. With `size` 0, goes on.
int TFMS_StopSavedPlan(char* plan, int size) {
  const absl::StatusOr<std::string> made =
      tensorflow::multistream::SavedPlan::Lines();
  if (size > 0) tensorflow::multistream::SavedPlan::Stop();
  if (!made.ok()) {
    return -1 - CopyText(std::string(made.status().message()), plan, size);
  }
  return CopyText(*made, plan, size);
}

// Whether steps may be captured in this process.
int TFMS_Captures() { return tensorflow::multistream::MayCapture() ? 1 : 0; }

// CaptureFunctions (group_requests.h): CopyText of an error message.
int TFMS_CaptureFunctions(int has_devices, char* message, int size) {
  const absl::Status status =
      tensorflow::multistream::CaptureFunctions(has_devices != 0);
  return CopyText(std::string(status.message()), message, size);
}

// CopyText of CaptureReport::Lines.
int TFMS_CaptureReport(char* lines, int size) {
  return CopyText(tensorflow::multistream::CaptureReport::Lines(), lines, size);
}

// Whether the GPUs of this process are emulated.
int TFMS_EmulatesGpus() {
  const auto& options = tensorflow::multistream::ProcessOptions();
  return options.ok() && options->emulated_gpus > 0 ? 1 : 0;
}

// What the groups' streams run is recorded from now on, `most_events` events at
// most. CopyText of an error message.
int TFMS_TraceStart(int64_t most_events, char* message, int size) {
  return CopyText(
      std::string(tensorflow::multistream::StartTrace(most_events).message()),
      message, size);
}

// Until now: Trace::Lines, valid until the next call, and how long they are.
const char* TFMS_TraceStop(int64_t* bytes) {
  static auto* lines = new std::string;
  *lines = tensorflow::multistream::StopTrace();
  *bytes = static_cast<int64_t>(lines->size());
  return lines->c_str();
}

// Of a KnownVariable that _MultiStreamKnownVariable made.
int TFMS_IsStillKnown(int64_t known) {
  const auto* variable =
      reinterpret_cast<const tensorflow::multistream::KnownVariable*>(known);
  return variable->IsStill() ? 1 : 0;
}

void TFMS_DeleteKnown(int64_t known) {
  delete reinterpret_cast<tensorflow::multistream::KnownVariable*>(known);
}

int64_t TFMS_SanitizerReports() {
  return tensorflow::multistream::SanitizerReports();
}

// For tests: the next `times` chances for a fault (test_faults.h) are taken.
// Returns 0 if there is no such fault, or if TF_MULTI_STREAM_TEST_FAULTS did
// not ask for faults when the process started.
int TFMS_InjectTestFault(int fault, int times) {
  if (fault < 0 || fault >= tensorflow::multistream::kTestFaults) return 0;
  return tensorflow::multistream::InjectTestFault(
             static_cast<tensorflow::multistream::TestFault>(fault), times)
             ? 1
             : 0;
}

// For tests: LookAtEnvironmentAgain (group_requests.h). CopyText of an error
// message.
int TFMS_LookAtEnvironmentAgain(char* message, int size) {
  const absl::Status status = tensorflow::multistream::LookAtEnvironmentAgain();
  return CopyText(std::string(status.message()), message, size);
}

}  // extern "C"
