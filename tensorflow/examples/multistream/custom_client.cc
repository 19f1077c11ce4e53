// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// A client to start from: calls a model from threads of one session. Each call
// is a step, and runs on the stream group with the least to do. All answers are
// compared with those of one thread.
//
//   bazel build //tensorflow/examples/multistream:custom_client
//   TF_GPU_STREAM_GROUP_COUNT=4 \
//       bazel-bin/tensorflow/examples/multistream/custom_client \
//       tensorflow/examples/multistream/data/model_test.pbtxt
//
// Without a GPU, TF_MULTI_STREAM_EMULATED_GPUS=1 stands in for one.

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>  // NOLINT: a client has threads of its own
#include <vector>

#include "tensorflow/core/common_runtime/multistream/multistream.h"
#include "tensorflow/core/framework/graph.pb.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/logging.h"
#include "tensorflow/core/public/session.h"

namespace tf = tensorflow;
namespace multistream = tensorflow::multistream;

constexpr int kThreads = 8;
constexpr int kCallsOfAThread = 50;
// Of the model: input0 is int64, [batch, kFeatures], each from 0 to kIds - 1.
constexpr int kBatch = 16;
constexpr int kFeatures = 24;
constexpr int kIds = 100;

// A batch of ids; another number gives another one.
tf::Tensor MakeQuery(int number) {
  tf::Tensor ids(tf::DT_INT64, tf::TensorShape({kBatch, kFeatures}));
  auto values = ids.flat<int64_t>();
  for (int i = 0; i < values.size(); ++i) values(i) = (number + 7 * i) % kIds;
  return ids;
}

// What a thread of your server does with a query: returns the answer's bytes.
std::string Answer(tf::Session* session, const tf::Tensor& query) {
  std::vector<tf::Tensor> outputs;
  // `multistream::ScopedStreamGroup group(1);` here would choose the group.
  TF_CHECK_OK(session->Run({{"input0", query}}, {"output"}, {}, &outputs));
  return std::string(outputs[0].tensor_data());
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s MODEL.pbtxt\n", argv[0]);
    return 2;
  }
  tf::GraphDef graph;
  TF_CHECK_OK(tf::ReadTextProto(tf::Env::Default(), argv[1], &graph));
  tf::SessionOptions options;
  options.config.set_allow_soft_placement(true);
  std::unique_ptr<tf::Session> session(tf::NewSession(options));
  TF_CHECK_OK(session->Create(graph));

  const int calls = kThreads * kCallsOfAThread;
  std::vector<tf::Tensor> queries;
  std::vector<std::string> expected;
  for (int i = 0; i < calls; ++i) {
    queries.push_back(MakeQuery(i));
    expected.push_back(Answer(session.get(), queries[i]));
  }

  std::vector<std::string> answers(calls);
  std::vector<std::thread> clients;
  for (int client = 0; client < kThreads; ++client) {
    clients.emplace_back([&, client] {
      for (int i = client; i < calls; i += kThreads) {
        answers[i] = Answer(session.get(), queries[i]);
      }
    });
  }
  for (std::thread& client : clients) client.join();

  for (const multistream::StreamGroupStats& group :
       multistream::StreamStats()) {
    std::printf("group %d: %lld steps\n", group.group,
                static_cast<long long>(group.steps_started));
  }
  int wrong = 0;
  for (int i = 0; i < calls; ++i) wrong += answers[i] != expected[i];
  std::printf("%d of %d answers differ from those of one thread\n", wrong,
              calls);
  return wrong == 0 ? 0 : 1;
}
