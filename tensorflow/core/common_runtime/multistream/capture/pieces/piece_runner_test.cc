// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// On emulated GPUs TensorFlow copies nothing between the host and the device.
// Here a device says that it is a GPU.

#include "tensorflow/core/common_runtime/multistream/capture/pieces/piece_runner.h"

#include <gtest/gtest.h>

#include <cstring>

#include "absl/strings/string_view.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow::multistream {
namespace {

constexpr char kCpu[] = "/job:localhost/replica:0/task:0/device:CPU:0";
constexpr char kGpu[] = "/job:localhost/replica:0/task:0/device:GPU:0";

class FakeGpu : public Device {
 public:
  FakeGpu() : Device(Env::Default(), Attributes()) {}
  absl::Status Sync() override { return absl::OkStatus(); }
  Allocator* GetAllocator(AllocatorAttributes) override {
    return cpu_allocator();
  }

 private:
  static DeviceAttributes Attributes() {
    DeviceAttributes attributes;
    attributes.set_name(kGpu);
    attributes.set_device_type(DEVICE_GPU);
    return attributes;
  }
};

class CountsCopies : public DeviceContext {
 public:
  void CopyDeviceTensorToCPU(const Tensor* from, absl::string_view, Device*,
                             Tensor* to, StatusCallback done) override {
    ++copies;
    std::memcpy(to->data(), from->data(), from->TotalBytes());
    done(absl::OkStatus());
  }
  int copies = 0;
};

Rendezvous::ParsedKey Key(std::string* text, const char* to) {
  *text = Rendezvous::CreateKey(kGpu, 0, to, "x", FrameAndIter(0, 0));
  Rendezvous::ParsedKey key;
  TF_CHECK_OK(Rendezvous::ParseKey(*text, &key));
  return key;
}

// A kernel of the host would read the GPU's memory.
TEST(OwnCopiesTest, WhatTheHostReceivesIsOnTheHost) {
  const StaticDeviceMgr devices(std::make_unique<FakeGpu>());
  CountsCopies context;
  OwnCopies own(/*outer=*/nullptr, &devices);
  std::string text;
  const Rendezvous::ParsedKey key = Key(&text, kGpu);
  Tensor sent(DT_INT32, TensorShape({1}));
  sent.flat<int32_t>()(0) = 7;
  Rendezvous::Args on_gpu, on_host;
  on_gpu.device_context = &context;
  on_host.alloc_attrs.set_on_host(true);
  ASSERT_TRUE(own.Send(key, on_gpu, sent, /*is_dead=*/false).ok());
  Tensor received;
  own.RecvAsync(key, on_host,
                [&](const absl::Status& status, const Rendezvous::Args&,
                    const Rendezvous::Args&, const Tensor& value, bool) {
                  TF_CHECK_OK(status);
                  received = value;
                });
  EXPECT_EQ(context.copies, 1);
  EXPECT_NE(received.data(), sent.data());
  EXPECT_EQ(received.flat<int32_t>()(0), 7);
}

TEST(OwnCopiesTest, WhatIsForAnotherDeviceLeavesThePiece) {
  const StaticDeviceMgr devices(std::make_unique<FakeGpu>());
  auto step = std::make_shared<PrivateIntraProcessRendezvous>(&devices);
  OwnCopies own(step, &devices);
  std::string text;
  const Rendezvous::ParsedKey key = Key(&text, kCpu);
  Rendezvous::Args on_host;
  on_host.alloc_attrs.set_on_host(true);
  ASSERT_TRUE(own.Send(key, on_host, Tensor(1.0f), /*is_dead=*/false).ok());
  bool received = false;
  step->RecvAsync(key, on_host,
                  [&](const absl::Status& status, const Rendezvous::Args&,
                      const Rendezvous::Args&, const Tensor&,
                      bool) { received = status.ok(); });
  EXPECT_TRUE(received);
}

void RunPieces(PieceBackOff* back_off, int replayed) {
  for (int i = 0; i < PieceBackOff::kPieces; ++i) {
    back_off->NotePiece(/*launches=*/9, i < replayed);
  }
}

int64_t StepsWithoutPieces(PieceBackOff* back_off) {
  int64_t steps = 0;
  while (!back_off->UsePieces()) ++steps;
  return steps;
}

TEST(PieceBackOffTest, StepsRunInPiecesIfHalfOfThemAreReplayed) {
  PieceBackOff back_off;
  EXPECT_EQ(StepsWithoutPieces(&back_off), 0);
  RunPieces(&back_off, PieceBackOff::kPieces / 2);
  EXPECT_EQ(StepsWithoutPieces(&back_off), 0);
}

TEST(PieceBackOffTest, APieceCountsByItsLaunches) {
  PieceBackOff back_off;
  const auto run = [&back_off](int replayed, int others) {
    for (int i = 0; i < PieceBackOff::kPieces; ++i) {
      const bool is_replayed = i % 2 == 0;
      back_off.NotePiece(is_replayed ? replayed : others, is_replayed);
    }
  };
  run(/*replayed=*/556, /*others=*/4255);
  EXPECT_EQ(StepsWithoutPieces(&back_off), PieceBackOff::kFirstPause);
  run(/*replayed=*/4255, /*others=*/556);
  EXPECT_EQ(StepsWithoutPieces(&back_off), 0);
}

TEST(PieceBackOffTest, PausesGrowUntilPiecesAreReplayed) {
  PieceBackOff back_off;
  const int few = PieceBackOff::kPieces / 2 - 1;
  int64_t pause = PieceBackOff::kFirstPause;
  for (int i = 0; i < 10; ++i) {
    RunPieces(&back_off, few);
    EXPECT_EQ(StepsWithoutPieces(&back_off), pause);
    EXPECT_TRUE(back_off.UsePieces());
    pause = std::min(2 * pause, PieceBackOff::kLongestPause);
  }
  RunPieces(&back_off, PieceBackOff::kPieces);
  EXPECT_EQ(StepsWithoutPieces(&back_off), 0);
  RunPieces(&back_off, 0);
  EXPECT_EQ(StepsWithoutPieces(&back_off), PieceBackOff::kFirstPause);
}

}  // namespace
}  // namespace tensorflow::multistream
