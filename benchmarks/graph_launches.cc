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
// How many CUDA graphs of small kernels can one process launch and wait for?
// The most that captured steps (docs/captured-steps.md) can reach: no
// TensorFlow in it, only CUDA's driver.
//
//   graph_launches [seconds of each row]
//
// Each thread has a stream and a graph of its own: `chains` chains of kernels
// between a copy in and a copy out. Prints a line of CSV for each row, after
// checking every result; exit status 1 if one is wrong or the driver fails.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "benchmarks/cuda_driver.h"

namespace {

// out[i] = in[i] + 1
constexpr char kPtx[] = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry add_one(.param .u64 out, .param .u64 in) {
  .reg .f32 %f<3>; .reg .b32 %r<2>; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [in];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd2, %rd3;
  add.s64 %rd5, %rd1, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%rd5], %f2;
  ret;
}
)";

using Clock = std::chrono::steady_clock;

constexpr int kFloats = 256;
constexpr size_t kBytes = kFloats * sizeof(float);

double MicrosSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

struct Row {
  bool graph;
  int kernels;
  int chains;
  int threads;
};

class Client {
 public:
  Client(CUcontext context, CUfunction kernel, const Row& row)
      : context_(context), kernel_(kernel), row_(row) {
    TFMS_CHECK(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    for (float** memory : {&in_, &out_}) {
      void* pinned;
      TFMS_CHECK(cuMemHostAlloc(&pinned, kBytes, 0));
      *memory = static_cast<float*>(pinned);
    }
    TFMS_CHECK(cuMemAlloc(&memory_, (row.kernels + 1) * kBytes));
    if (row.graph) MakeGraph();
  }

  void Run(const std::atomic<bool>& stop) {
    TFMS_CHECK(cuCtxSetCurrent(context_));
    float value = 0;
    while (!stop) {
      // Whole numbers, which a float has exactly.
      value = value > 1e6f ? 0 : value + 1;
      std::fill(in_, in_ + kFloats, value);
      const Clock::time_point start = Clock::now();
      if (row_.graph) {
        TFMS_CHECK(cuGraphLaunch(graph_, stream_));
      } else {
        Launch();
      }
      TFMS_CHECK(cuStreamSynchronize(stream_));
      micros.push_back(static_cast<float>(MicrosSince(start)));
      if (out_[kFloats - 1] != value + row_.kernels / row_.chains) ++wrong;
    }
  }

  std::vector<float> micros;  // of each launch, with its wait
  int wrong = 0;

 private:
  CUdeviceptr Buffer(int i) const { return memory_ + i * kBytes; }

  // What the i-th kernel reads; it writes the buffer of number i + 1.
  CUdeviceptr InputOf(int i) const {
    return Buffer(i % (row_.kernels / row_.chains) == 0 ? 0 : i);
  }

  void Launch() {
    TFMS_CHECK(cuMemcpyHtoDAsync(Buffer(0), in_, kBytes, stream_));
    for (int i = 0; i < row_.kernels; ++i) {
      CUdeviceptr to = Buffer(i + 1), from = InputOf(i);
      void* arguments[] = {&to, &from};
      TFMS_CHECK(cuLaunchKernel(kernel_, 1, 1, 1, kFloats, 1, 1, 0, stream_,
                                arguments, nullptr));
    }
    TFMS_CHECK(cuMemcpyDtoHAsync(out_, Buffer(row_.kernels), kBytes, stream_));
  }

  CUgraphNode AddCopy(CUgraph graph, bool to_device, CUdeviceptr device,
                      float* host, const std::vector<CUgraphNode>& after) {
    CUDA_MEMCPY3D copy;
    std::memset(&copy, 0, sizeof(copy));
    copy.srcMemoryType = to_device ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    copy.dstMemoryType = to_device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    (to_device ? copy.dstDevice : copy.srcDevice) = device;
    if (to_device) {
      copy.srcHost = host;
    } else {
      copy.dstHost = host;
    }
    copy.WidthInBytes = kBytes;
    copy.Height = copy.Depth = 1;
    CUgraphNode node;
    TFMS_CHECK(cuGraphAddMemcpyNode(&node, graph, after.data(), after.size(),
                                    &copy, context_));
    return node;
  }

  void MakeGraph() {
    CUgraph graph;
    TFMS_CHECK(cuGraphCreate(&graph, 0));
    const CUgraphNode first = AddCopy(graph, true, Buffer(0), in_, {});
    std::vector<CUgraphNode> ends;
    CUgraphNode before = first;
    for (int i = 0; i < row_.kernels; ++i) {
      const bool starts = i % (row_.kernels / row_.chains) == 0;
      if (starts && i > 0) ends.push_back(before);
      if (starts) before = first;
      CUdeviceptr to = Buffer(i + 1), from = InputOf(i);
      void* arguments[] = {&to, &from};
      before =
          cuda_driver::AddKernel(graph, kernel_, kFloats, arguments, &before);
    }
    ends.push_back(before);
    AddCopy(graph, false, Buffer(row_.kernels), out_, ends);
    TFMS_CHECK(cuGraphInstantiateWithFlags(&graph_, graph, 0));
  }

  const CUcontext context_;
  const CUfunction kernel_;
  const Row row_;
  CUstream stream_;
  CUgraphExec graph_;
  float *in_, *out_;  // pinned
  CUdeviceptr memory_;
};

// Memory is the process's until it ends.
int Measure(CUcontext context, CUfunction kernel, const Row& row,
            double seconds) {
  std::vector<Client> clients;
  for (int i = 0; i < row.threads; ++i) {
    clients.emplace_back(context, kernel, row);
  }
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  const Clock::time_point start = Clock::now();
  for (Client& client : clients) {
    threads.emplace_back([&client, &stop] { client.Run(stop); });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const double took = MicrosSince(start) / 1e6;
  std::vector<float> micros;
  int wrong = 0;
  for (const Client& client : clients) {
    micros.insert(micros.end(), client.micros.begin(), client.micros.end());
    wrong += client.wrong;
  }
  std::sort(micros.begin(), micros.end());
  std::printf("%s,%d,%d,%d,%.0f,%.1f,%.1f,%.1f,%d\n",
              row.graph ? "graph" : "single kernels", row.kernels, row.chains,
              row.threads, micros.size() / took, micros[micros.size() / 2],
              micros[micros.size() * 99 / 100], micros.back(), wrong);
  std::fflush(stdout);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
  if (argc > 2 || !(seconds > 0 && seconds <= 60)) {
    std::fprintf(stderr,
                 "usage: graph_launches [seconds]: above 0, to 60, of each "
                 "row\n");
    return 2;
  }
  const CUcontext context = cuda_driver::Start();
  const CUfunction kernel = cuda_driver::LoadKernel(kPtx, "add_one");
  std::printf(
      "launched,kernels,chains,threads,launches_per_second,p50_us,p99_us,"
      "longest_us,wrong\n");
  int wrong = 0;
  for (int kernels : {300, 120, 30}) {
    for (int chains : {1, 10}) {
      for (int threads : {1, 8, 16}) {
        wrong +=
            Measure(context, kernel, {true, kernels, chains, threads}, seconds);
      }
    }
  }
  for (int threads : {1, 8, 16}) {
    wrong += Measure(context, kernel, {false, 300, 1, threads}, seconds);
  }
  return wrong > 0 ? 1 : 0;
}
