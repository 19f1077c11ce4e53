// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/common_runtime/multistream/cuda/driver_waits.h"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tensorflow/core/common_runtime/multistream/base/test_faults.h"
#include "tensorflow/core/common_runtime/multistream/cuda/capture_gate.h"
#include "tensorflow/core/platform/env.h"
#include "tensorflow/core/platform/path.h"

namespace tensorflow::multistream {
namespace {

// A library's table can be changed only once in a process, so each test loads
// its own copy of the library, under another name.
class DriverWaitsTest : public ::testing::Test {
 protected:
  void Load(const std::string& kind) {
    library_ = absl::StrCat(
        "waits_", kind, "_",
        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    const std::string copy =
        io::JoinPath(::testing::TempDir(), library_ + ".so.1");
    const std::string original = absl::StrCat(
        "tensorflow/core/common_runtime/multistream/cuda/libwaits_", kind,
        ".so");
    ASSERT_TRUE(Env::Default()->CopyFile(original, copy).ok());
    handle_ = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(handle_, nullptr) << dlerror();
  }
  template <typename Function = int (*)()>
  Function Exported(const char* name) {
    return reinterpret_cast<Function>(dlsym(handle_, name));
  }
  int WaitForAll() { return Exported("cuCtxSynchronize")(); }
  // Calls of the waiting function since the last NewWaits.
  int NewWaits() {
    const int before = waits_;
    waits_ = Exported("Waits")();
    return waits_ - before;
  }
  absl::Status Gate() {
    const absl::Status status = GateWaitsOf(library_, &gate_);
    NewWaits();  // forget the calls of Gate's own test
    return status;
  }

  // Expects that a call of `function` waits for the end of a capture.
  void ExpectWaitsForCapture(const char* function) {
    std::optional<GatedCapture> capture(&gate_);
    int result = 0;
    std::thread waits([&] { result = Exported(function)(); });
    while (gate_.waiting(CaptureGate::kWaits) == 0) std::this_thread::yield();
    EXPECT_EQ(NewWaits(), 0);
    capture.reset();
    waits.join();
    EXPECT_EQ(NewWaits(), 1);
    EXPECT_EQ(result, 7);
    EXPECT_EQ(gate_.passed(), 0);
  }

  CaptureGate gate_{/*longest_still=*/absl::InfiniteDuration()};
  std::string library_;
  void* handle_ = nullptr;
  int waits_ = 0;
};

TEST_F(DriverWaitsTest, AWaitThatIsCalledWithinAFrameWaitsForACapture) {
  Load("frame");
  for (int i = 0; i < 2; ++i) {  // a second time changes nothing
    const absl::Status gated = Gate();
    ASSERT_TRUE(gated.ok()) << gated;
    EXPECT_TRUE(gate_.guards());
    ExpectWaitsForCapture("cuCtxSynchronize");
  }
}

TEST_F(DriverWaitsTest, AWaitThatIsJumpedToWaitsForACapture) {
  Load("jump");
  const absl::Status gated = Gate();
  ASSERT_TRUE(gated.ok()) << gated;
  ExpectWaitsForCapture("cuCtxSynchronize");
  ExpectWaitsForCapture("cuCtxSynchronize_v2");
  // Other functions are as before.
  const GatedCapture capture(&gate_);
  std::thread([this] {
    EXPECT_EQ(Exported("cuStreamSynchronize")(), 8);
  }).join();
}

TEST_F(DriverWaitsTest, NoCaptureBeginsDuringAWait) {
  Load("frame");
  ASSERT_TRUE(Gate().ok());
  static CaptureGate* const gate = &gate_;
  static bool begins = false;
  Exported<void (*)(void (*)())>("SetAtWait")(
      [] { begins = GatedCapture(gate, absl::ZeroDuration()).status().ok(); });
  EXPECT_EQ(WaitForAll(), 7);
  EXPECT_FALSE(begins);
}

TEST_F(DriverWaitsTest, AWaitThatACaptureWasInTheWayOfIsMadeOnceMore) {
  Load("frame");
  CaptureGate gate(/*longest_still=*/absl::Milliseconds(1));
  ASSERT_TRUE(GateWaitsOf(library_, &gate).ok());
  NewWaits();
  const GatedCapture capture(&gate);
  for (const auto& [result, waits] : {std::pair(7, 1), {900, 2}}) {
    Exported<void (*)(int)>("SetResult")(result);
    std::thread([&, expected = result] {
      EXPECT_EQ(WaitForAll(), expected);
    }).join();
    EXPECT_EQ(NewWaits(), waits);
  }
}

// A thread that captures would wait for itself. A test can have waits pass by.
TEST_F(DriverWaitsTest, AThreadThatCapturesDoesNotWait) {
  Load("frame");
  ASSERT_TRUE(Gate().ok());
  const GatedCapture capture(&gate_);
  EXPECT_EQ(WaitForAll(), 7);
  EXPECT_EQ(NewWaits(), 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(capture.WhyEnded()));
  test_faults_allowed = true;
  ASSERT_TRUE(InjectTestFault(TestFault::kPassGate, 1));
  std::thread([this] { EXPECT_EQ(WaitForAll(), 7); }).join();
  EXPECT_TRUE(absl::IsInternal(capture.WhyEnded()));
}

TEST_F(DriverWaitsTest, ALibraryThatIsNotKnownStaysAsItIs) {
  for (const std::string kind : {"other", "shared", "more"}) {
    Load(kind);
    waits_ = 0;
    const absl::Status gated = Gate();
    EXPECT_TRUE(absl::IsUnimplemented(gated)) << gated;
    EXPECT_TRUE(absl::StrContains(gated.message(), "cuCtxSynchronize"));
    EXPECT_FALSE(gate_.guards());
    const GatedCapture capture(&gate_);
    std::thread([&] {
      EXPECT_EQ(WaitForAll(), kind == "more" ? 8 : 7);
    }).join();
    EXPECT_EQ(NewWaits(), 1);
    EXPECT_EQ(gate_.passed(), 0) << kind;
  }
}

// The code here is only data; it never runs.
TEST(PlaceOfFunctionTest, KnowsTheEntriesOfDrivers) {
  alignas(8) unsigned char code[2 * kEntryBytes] = {};
  const auto place_of = [&code](const std::string& bytes) {
    std::fill(std::begin(code), std::end(code), 0x90);
    std::copy(bytes.begin(), bytes.end(), code);
    void** const place = PlaceOfFunction(code);
    return place == nullptr ? -1
                            : reinterpret_cast<unsigned char*>(place) - code;
  };
  const std::string compares("\x81\x3d\xee\xe8\x93\x01\x00\xba\x1c\x32", 10);
  const std::string is_ended("\x74\x0c", 2);
  const std::string is_ended_far("\x0f\x84\x20\x00\x00\x00", 6);
  const std::string frame("\x55\x48\x89\xe5\x41\x54\x48\x83\xec\x08", 10);
  // A call or jmp through the table entry at offset 64 of the code; the
  // instruction ends at offset `at`.
  const auto call = [](int operation, int at) {
    return std::string({'\xff', static_cast<char>(operation),
                        static_cast<char>(64 - at), 0, 0, 0});
  };
  EXPECT_EQ(place_of(compares + is_ended + call(0x25, 18)), 64);
  EXPECT_EQ(place_of(frame + compares + is_ended_far + call(0x15, 32)), 64);
  EXPECT_EQ(place_of("\xf3\x0f\x1e\xfa" + compares + is_ended + call(0x25, 22)),
            64);
  // Not aligned.
  EXPECT_EQ(place_of(compares + is_ended + call(0x25, 17)), -1);
  // Something else.
  EXPECT_EQ(place_of(compares + is_ended + call(0x35, 18)), -1);
  EXPECT_EQ(place_of(compares + call(0x25, 16)), -1);
  EXPECT_EQ(place_of(is_ended + call(0x25, 8)), -1);
  EXPECT_EQ(place_of(frame + frame + frame + frame + compares), -1);
  EXPECT_EQ(place_of(""), -1);
}

}  // namespace
}  // namespace tensorflow::multistream
