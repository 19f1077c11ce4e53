// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// What do the parts of a step on a stream group cost, compared with stock
// TensorFlow? The groups' streams do nothing, so that only the host's work is
// measured. A benchmark whose name ends in Stock measures stock TensorFlow's
// counterpart. docs/measurements.md has the command.

#include <benchmark/benchmark.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "tensorflow/core/common_runtime/multistream/base/options.h"
#include "tensorflow/core/common_runtime/multistream/ops/holds.h"
#include "tensorflow/core/common_runtime/multistream/ops/step.h"
#include "tensorflow/core/common_runtime/multistream/step/group_rendezvous.h"
#include "tensorflow/core/common_runtime/multistream/stream/gpu_groups.h"
#include "tensorflow/core/common_runtime/multistream/stream/stream_order.h"
#include "tensorflow/core/common_runtime/multistream/stream/variable_order.h"
#include "tensorflow/core/common_runtime/multistream/testing/fake_device.h"
#include "tensorflow/core/framework/rendezvous.h"
#include "tensorflow/core/framework/tensor.h"

namespace tensorflow::multistream {
namespace {

constexpr int kGroups = 8;
constexpr int kManyThreads = 4;
constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr char kGpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";

// A stream whose driver takes no time.
class IdleStreamGroup : public StreamGroup {
 public:
  using StreamGroup::StreamGroup;
  void WaitFor(StreamGroup*) override {}
  std::unique_ptr<StreamEvent> NewEvent() override {
    return std::make_unique<StreamEvent>();
  }
  void Record(StreamEvent*) override {}
  void WaitForEvent(StreamGroup*, StreamEvent*) override {}
  void ThenExecute(std::function<void()> f) override { f(); }
  absl::Status Synchronize() override { return absl::OkStatus(); }
};

// One GPU for all threads of all benchmarks.
GpuGroups* Gpu() {
  static GpuGroups* const gpu = [] {
    std::vector<std::unique_ptr<StreamGroup>> groups;
    for (int i = 0; i < kGroups; ++i) {
      groups.push_back(std::make_unique<IdleStreamGroup>(0, i));
    }
    return new GpuGroups(std::move(groups));
  }();
  return gpu;
}

void GroupChoice(benchmark::State& state) {
  const std::vector<int> all = Options().GroupsForAll(kGroups);
  for (auto _ : state) {
    StreamGroup* group = Gpu()->StartStep(all);
    benchmark::DoNotOptimize(group);
    Gpu()->EndStep(group, /*ok=*/true);
  }
}
BENCHMARK(GroupChoice)->Threads(1)->Threads(kManyThreads)->UseRealTime();

// Passes a host tensor from one op to another.
void Transfer(benchmark::State& state, RendezvousInterface* rendezvous) {
  RendezvousInterface::ParsedKey key;
  TF_CHECK_OK(Rendezvous::ParseKey(
      Rendezvous::CreateKey(kCpu, 1, kGpu, "edge", FrameAndIter(0, 0)), &key));
  RendezvousInterface::Args args;
  args.alloc_attrs.set_on_host(true);
  const Tensor tensor(1.0f);
  for (auto _ : state) {
    TF_CHECK_OK(rendezvous->Send(key, args, tensor, /*is_dead=*/false));
    rendezvous->RecvAsync(
        key, args,
        [](const absl::Status& status, const RendezvousInterface::Args&,
           const RendezvousInterface::Args&, const Tensor& received,
           bool is_dead) { benchmark::DoNotOptimize(received.data()); });
  }
}

void RendezvousStock(benchmark::State& state) {
  core::RefCountPtr<Rendezvous> rendezvous(NewLocalRendezvous());
  Transfer(state, rendezvous.get());
}
BENCHMARK(RendezvousStock)->UseRealTime();

void RendezvousOfGroup(benchmark::State& state) {
  core::RefCountPtr<Rendezvous> rendezvous(NewLocalRendezvous());
  Step step(Gpu(), Gpu()->group(2), /*changes_state=*/false);
  FakeContext context;
  FakeDevice device(&context);
  GroupRendezvous wrapped(rendezvous.get(), &step, Gpu()->group(2), &device,
                          &device);
  Transfer(state, &wrapped);
}
BENCHMARK(RendezvousOfGroup)->UseRealTime();

// The cost of one stream's wait for another, without the driver's part.
void WaitThatIsNeeded(benchmark::State& state) {
  StreamOrder order(Gpu(), /*reduce=*/true);
  for (auto _ : state) {
    order.Launched(1);
    std::unique_ptr<StreamOrder::RecordedEvent> event = order.Record(1);
    order.WaitFor(2, *event);
    order.Recycle(std::move(event));
  }
}
BENCHMARK(WaitThatIsNeeded)->UseRealTime();

void WaitThatIsKnown(benchmark::State& state) {
  StreamOrder order(Gpu(), /*reduce=*/true);
  order.Launched(1);
  std::unique_ptr<StreamOrder::RecordedEvent> event = order.Record(1);
  for (auto _ : state) order.WaitFor(2, *event);
  order.Recycle(std::move(event));
}
BENCHMARK(WaitThatIsKnown)->UseRealTime();

// Stock TensorFlow only takes a reference to a tensor that an op uses.
void HoldStock(benchmark::State& state) {
  const Tensor tensor(1.0f);
  for (auto _ : state) {
    Tensor reference = tensor;
    benchmark::DoNotOptimize(reference.data());
  }
}
BENCHMARK(HoldStock)->UseRealTime();

void Hold(benchmark::State& state) {
  const Tensor tensor(1.0f);
  for (auto _ : state) {
    Holds holds(Gpu()->group(2), /*step=*/nullptr);
    holds.Add(tensor);
    holds.Enqueued();
  }
}
BENCHMARK(Hold)->UseRealTime();

absl::Mutex* VariableMutex() {
  static absl::Mutex* const mutex = new absl::Mutex;
  return mutex;
}

// Stock TensorFlow's lock for reading a variable.
void ReadLockStock(benchmark::State& state) {
  for (auto _ : state) {
    absl::ReaderMutexLock lock(VariableMutex());
  }
}
BENCHMARK(ReadLockStock)->Threads(1)->Threads(kManyThreads)->UseRealTime();

void ReadLock(benchmark::State& state) {
  const GpuGroups::StateKey key = 1;
  StreamGroup* const group = Gpu()->group(1 + state.thread_index() % 7);
  for (auto _ : state) {
    Gpu()->BeginRead(group, {&key, 1});
    Gpu()->EndRead(group, {&key, 1});
  }
}
BENCHMARK(ReadLock)->Threads(1)->Threads(kManyThreads)->UseRealTime();

void WriteLockStock(benchmark::State& state) {
  for (auto _ : state) {
    absl::MutexLock lock(VariableMutex());
  }
}
BENCHMARK(WriteLockStock)->Threads(1)->Threads(kManyThreads)->UseRealTime();

void WriteLock(benchmark::State& state) {
  const GpuGroups::StateKey key = 1;
  for (auto _ : state) {
    Gpu()->BeginWrite({&key, 1});
    Gpu()->EndWrite({&key, 1});
  }
}
BENCHMARK(WriteLock)->Threads(1)->Threads(kManyThreads)->UseRealTime();

}  // namespace
}  // namespace tensorflow::multistream

BENCHMARK_MAIN();
