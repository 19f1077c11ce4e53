// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/capture/replay/captured_call.h"

#include <gtest/gtest.h>

#include <utility>

#include "tensorflow/core/common_runtime/multistream/testing/fake_device.h"

namespace tensorflow::multistream {
namespace {

constexpr char kHost[] = "/job:a/replica:0/task:0/device:CPU:0";
constexpr char kGpu[] = "/job:a/replica:0/task:0/device:GPU:0";

std::string KeyFor(const std::string& tensor) {
  return Rendezvous::CreateKey(kGpu, 1, kHost, tensor, FrameAndIter(0, 0));
}

// Keeps what is sent.
class Sends : public RendezvousInterface {
 public:
  absl::Status Send(const ParsedKey& key, const Args& args, const Tensor& value,
                    bool) override {
    sent.emplace_back(key.edge_name, value.scalar<float>()());
    contexts.push_back(args.device_context);
    return absl::OkStatus();
  }
  void RecvAsync(const ParsedKey&, const Args&, DoneCallback) override {}
  void StartAbort(const absl::Status&) override {}

  std::vector<std::pair<std::string, float>> sent;
  std::vector<const DeviceContext*> contexts;  // with which each was sent
};
using Sent = std::vector<std::pair<std::string, float>>;

// A step that sends its second argument, which it passes on, and a result.
class PassingOnTest : public ::testing::Test {
 protected:
  PassingOnTest() : step_(Graph()), frame_(ArgTypes(), {}) {
    TF_CHECK_OK(frame_.SetArgs({Tensor(1.0f), Tensor(2.0f)}));
  }

  std::shared_ptr<CapturedCall> Call(CallFrameInterface* frame) {
    Executor::Args args;
    args.rendezvous = &sends_;
    args.call_frame = frame;
    // Not captured, the step sends both.
    const auto run = [](std::shared_ptr<RendezvousInterface> rendezvous,
                        CallFrameInterface*, Executor::DoneCallback done) {
      for (const auto& [tensor, value] : Sent{{"passed", 2}, {"made", 3}}) {
        const std::string text = KeyFor(tensor);
        Rendezvous::ParsedKey key;
        TF_CHECK_OK(Rendezvous::ParseKey(text, &key));
        TF_CHECK_OK(rendezvous->Send(key, {}, Tensor(value), false));
      }
      done(absl::OkStatus());
    };
    return std::make_shared<CapturedCall>(step_, args, /*group=*/nullptr, run,
                                          [](const absl::Status&) {});
  }

  static Capturable Graph() {
    Capturable graph;
    graph.passed.push_back({KeyFor("passed"), /*index=*/1});
    graph.sends.push_back(KeyFor("made"));
    return graph;
  }
  static DataTypeVector ArgTypes() { return {DT_FLOAT, DT_FLOAT}; }

  const core::RefCountPtr<DeviceContext> context_{new FakeContext};
  FakeDevice device_{context_.get()};
  const StepInterface step_;
  FunctionCallFrame frame_;
  Sends sends_;
};

TEST_F(PassingOnTest, AnArgumentIsSentOnceHoweverTheStepRuns) {
  const auto call = Call(&frame_);
  TF_CHECK_OK(call->SendArguments(&device_));
  EXPECT_EQ(sends_.sent, (Sent{{"passed", 2}}));
  // A GPU cannot copy without it.
  EXPECT_EQ(sends_.contexts[0], context_.get());
  CapturedCall::RunAlways(call);
  EXPECT_EQ(sends_.sent, (Sent{{"passed", 2}, {"made", 3}}));
}

TEST_F(PassingOnTest, AStepThatIsComparedSendsNothing) {
  const auto call = Call(&frame_);
  std::vector<StepOutput> kept;
  CapturedCall::RunAndKeep(
      call, StepInputs(),
      [&kept](const absl::Status& status, std::vector<StepOutput> outputs) {
        TF_CHECK_OK(status);
        kept = std::move(outputs);
      });
  EXPECT_TRUE(sends_.sent.empty());
  ASSERT_EQ(kept.size(), 1);
  EXPECT_EQ(kept[0].tensor.scalar<float>()(), 3);
}

TEST_F(PassingOnTest, ACallWithoutArgumentsFails) {
  EXPECT_FALSE(Call(nullptr)->SendArguments(&device_).ok());
}

}  // namespace
}  // namespace tensorflow::multistream
