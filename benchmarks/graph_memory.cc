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
// How much of the GPU's memory does CUDA's driver take for graphs of kernels
// that have many parameters? What cuda/graph_memory.h says of recordings was
// measured with it.
//
//   graph_memory PARAMETER_BYTES [KERNELS [GRAPHS]]
//
// Makes 200 graphs, or GRAPHS, each of a chain of 200 kernels, or KERNELS, that
// have so many bytes of parameters, 12 to 4000, and launches them. Prints a
// line of CSV: what there was, and by how many bytes for each kernel the GPU
// has less free. The driver takes memory in portions of 2 MiB: make many, and
// each size in a process of its own.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "benchmarks/cuda_driver.h"

namespace {

// Writes the last of its parameters, which a kernel that did not use them all
// might not have.
std::string Ptx(int parameter_bytes) {
  const int blob = parameter_bytes - 8;
  return R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry kernel(.param .u64 out, .param .align 8 .b8 blob[)" +
         std::to_string(blob) + R"(]) {
  .reg .b32 %r<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [blob+)" +
         std::to_string(blob - 4) + R"(];
  st.global.u32 [%rd1], %r1;
  ret;
}
)";
}

int64_t FreeBytes() {
  TFMS_CHECK(cuCtxSynchronize());
  size_t free, total;
  TFMS_CHECK(cuMemGetInfo(&free, &total));
  return static_cast<int64_t>(free);
}

int Measure(int parameter_bytes, int kernels, int graphs) {
  cuda_driver::Start();
  CUdeviceptr out;
  TFMS_CHECK(cuMemAlloc(&out, sizeof(int32_t)));
  CUstream stream;
  TFMS_CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUfunction kernel =
      cuda_driver::LoadKernel(Ptx(parameter_bytes).c_str(), "kernel");
  std::vector<char> blob(parameter_bytes);
  void* arguments[] = {&out, blob.data()};
  TFMS_CHECK(
      cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  const int64_t before = FreeBytes();
  for (int i = 0; i < graphs; ++i) {
    CUgraph graph;
    TFMS_CHECK(cuGraphCreate(&graph, 0));
    CUgraphNode last;
    for (int k = 0; k < kernels; ++k) {
      last = cuda_driver::AddKernel(graph, kernel, 1, arguments,
                                    k == 0 ? nullptr : &last);
    }
    CUgraphExec launchable;
    TFMS_CHECK(cuGraphInstantiateWithFlags(&launchable, graph, 0));
    TFMS_CHECK(cuGraphDestroy(graph));
    TFMS_CHECK(cuGraphLaunch(launchable, stream));
  }
  const int64_t taken = before - FreeBytes();
  std::printf("%d,%d,%d,%.0f\n", parameter_bytes, kernels, graphs,
              static_cast<double>(taken) / graphs / kernels);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int parameter_bytes = argc > 1 ? std::atoi(argv[1]) : 0;
  const int kernels = argc > 2 ? std::atoi(argv[2]) : 200;
  const int graphs = argc > 3 ? std::atoi(argv[3]) : 200;
  if (argc > 4 || parameter_bytes < 12 || parameter_bytes > 4000 ||
      parameter_bytes % 4 != 0 || kernels < 1 || kernels > 10000 ||
      graphs < 1 || graphs > 10000) {
    std::fprintf(stderr,
                 "usage: graph_memory PARAMETER_BYTES [KERNELS [GRAPHS]]: a "
                 "multiple of 4 from 12 to 4000, and 1 to 10000 of each\n");
    return 2;
  }
  return Measure(parameter_bytes, kernels, graphs);
}
