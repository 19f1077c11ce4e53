// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/fake_graphs.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "third_party/gpus/cuda/include/cuda.h"

// These replace TensorFlow's functions of these names, which call CUDA's
// driver. cuda.h's macros map the names to versioned ones.

using tensorflow::multistream::Driver;
using tensorflow::multistream::NodeOf;
using tensorflow::multistream::StreamOf;

CUresult cuStreamGetCaptureInfo_v3(CUstream stream,
                                   CUstreamCaptureStatus* status,
                                   cuuint64_t* id, CUgraph* graph,
                                   const CUgraphNode** ends,
                                   const CUgraphEdgeData** edges,
                                   size_t* count) {
  auto* fake = StreamOf(stream);
  *status = fake->captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                           : CU_STREAM_CAPTURE_STATUS_NONE;
  *id = 1;
  *graph = reinterpret_cast<CUgraph>(fake);
  *ends = fake->ends.data();
  *edges = nullptr;
  *count = fake->ends.size();
  return Driver()->Result("cuStreamGetCaptureInfo");
}

CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* ends,
                                           size_t count, unsigned int flags) {
  EXPECT_EQ(flags, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  StreamOf(stream)->ends.assign(ends, ends + count);
  return Driver()->Result("cuStreamUpdateCaptureDependencies");
}

// Last node first, because CUDA promises no order.
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  auto* fake = StreamOf(graph);
  const size_t all = fake->nodes.size();
  if (nodes != nullptr) {
    EXPECT_EQ(*count, all);
    for (size_t i = 0; i < all; ++i) nodes[i] = fake->NodeOf(all - 1 - i);
  }
  *count = all;
  return Driver()->Result("cuGraphGetNodes");
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) {
  *type = NodeOf(node)->type;
  return Driver()->Result("cuGraphNodeGetType");
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node,
                                    CUDA_KERNEL_NODE_PARAMS* parameters) {
  EXPECT_EQ(NodeOf(node)->type, CU_GRAPH_NODE_TYPE_KERNEL);
  *parameters = {};
  parameters->func = reinterpret_cast<CUfunction>(node);
  if (NodeOf(node)->has_parameters) {
    parameters->kernelParams = const_cast<void**>(NodeOf(node)->values.data());
  }
  return Driver()->Result("cuGraphKernelNodeGetParams");
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* copy) {
  EXPECT_EQ(NodeOf(node)->type, CU_GRAPH_NODE_TYPE_MEMCPY);
  *copy = NodeOf(node)->copy;
  return Driver()->Result("cuGraphMemcpyNodeGetParams");
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node,
                                    CUDA_MEMSET_NODE_PARAMS* set) {
  EXPECT_EQ(NodeOf(node)->type, CU_GRAPH_NODE_TYPE_MEMSET);
  *set = {};
  set->dst = NodeOf(node)->address;
  return Driver()->Result("cuGraphMemsetNodeGetParams");
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node,
                                      CUDA_MEM_ALLOC_NODE_PARAMS* taken) {
  EXPECT_EQ(NodeOf(node)->type, CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  *taken = {};
  taken->dptr = NodeOf(node)->address;
  taken->bytesize = NodeOf(node)->bytes;
  return Driver()->Result("cuGraphMemAllocNodeGetParams");
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                               CUdeviceptr address) {
  EXPECT_EQ(attribute, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR);
  for (const auto& [begin, end] : Driver()->allocations) {
    if (address < begin || address >= end) continue;
    *static_cast<CUdeviceptr*>(data) = begin;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}
