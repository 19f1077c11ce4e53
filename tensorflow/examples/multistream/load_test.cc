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

#include "tensorflow/examples/multistream/load.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>

#include "tensorflow/examples/multistream/contains.h"

namespace tensorflow {
namespace multistream {
namespace {

// A session that returns what it is fed, plus one; wrong or failing at a
// chosen call.
class FakeSession : public Session {
 public:
  absl::Status Create(const GraphDef&) override { return absl::OkStatus(); }
  absl::Status Extend(const GraphDef&) override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }
  absl::Status Run(const std::vector<std::pair<std::string, Tensor>>& inputs,
                   const std::vector<std::string>& output_names,
                   const std::vector<std::string>&,
                   std::vector<Tensor>* outputs) override {
    const int64_t call = calls++;
    if (call == fail_at) return absl::InternalError("device lost");
    if (delay_in_millis > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_in_millis));
    }
    EXPECT_EQ(inputs[0].first, "x");
    EXPECT_EQ(output_names[0], "y");
    Tensor result(DT_FLOAT, TensorShape({1}));
    result.flat<float>()(0) =
        inputs[0].second.flat<float>()(0) + (call == wrong_at ? 2 : 1);
    *outputs = {result};
    return absl::OkStatus();
  }

  absl::Status ListDevices(std::vector<DeviceAttributes>*) override {
    return absl::OkStatus();
  }

  std::atomic<int64_t> calls{0};
  int64_t fail_at = -1;
  int64_t wrong_at = -1;
  int delay_in_millis = 0;
};

class LoadTest : public ::testing::Test {
 protected:
  LoadTest() {
    queries_.input_names = {"x"};
    queries_.output_names = {"y"};
    for (int i = 0; i < 5; ++i) {
      Tensor x(DT_FLOAT, TensorShape({1}));
      x.flat<float>()(0) = i * 10;
      queries_.input_sets.push_back({x});
    }
    reference_ = *RunEachOnce(&session_, queries_);
    session_.calls = 0;
    options_.number_of_threads = 3;
    options_.iters = 40;
    options_.reference = &reference_;
  }

  FakeSession session_;
  Queries queries_;
  std::vector<ResultSet> reference_;
  LoadOptions options_;
};

TEST_F(LoadTest, ReferenceHasOneResultForEachInputSet) {
  ASSERT_EQ(reference_.size(), 5);
  EXPECT_EQ(reference_[3][0].flat<float>()(0), 31);
}

TEST_F(LoadTest, EveryThreadRunsItsItersAndEveryResultIsVerified) {
  const auto figures = RunLoad(&session_, queries_, options_);
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(session_.calls, 120);
  EXPECT_EQ(figures->latencies_in_millis.size(), 120);
  EXPECT_EQ(figures->verification.verified, 120);
  EXPECT_EQ(figures->verification.wrong, 0);
  EXPECT_GT(figures->seconds, 0);
  EXPECT_GT(figures->cpu_seconds, 0);
}

TEST_F(LoadTest, OneWrongResultIsFound) {
  session_.wrong_at = 77;
  const auto figures = RunLoad(&session_, queries_, options_);
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->verification.verified, 120);
  EXPECT_EQ(figures->verification.wrong, 1);
  EXPECT_EQ(figures->verification.max_absolute, 1);
  EXPECT_TRUE(Contains(figures->verification.first_wrong, {"output 0[0]"}));
}

TEST_F(LoadTest, FirstErrorEndsTheLoad) {
  session_.fail_at = 10;
  options_.iters = 1000000;
  session_.delay_in_millis = 1;
  const auto figures = RunLoad(&session_, queries_, options_);
  EXPECT_EQ(figures.status().message(), "device lost");
  EXPECT_LT(session_.calls, 1000);
}

TEST_F(LoadTest, TimeLimitEndsTheLoad) {
  session_.delay_in_millis = 5;
  options_.iters = 1000000;
  options_.max_seconds = 0.1;
  const auto figures = RunLoad(&session_, queries_, options_);
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_GE(figures->seconds, 0.1);
  EXPECT_LT(figures->latencies_in_millis.size(), 1000);
  EXPECT_EQ(figures->latencies_in_millis.size(), session_.calls);
}

TEST_F(LoadTest, QueriesAreCountedInTheSecondInWhichTheyEnd) {
  options_.number_of_threads = 2;
  options_.iters = 2;
  session_.delay_in_millis = 1100;
  const auto figures = RunLoad(&session_, queries_, options_);
  ASSERT_TRUE(figures.ok()) << figures.status();
  // A machine that is slow may end them later, never earlier.
  ASSERT_GE(figures->queries_of_seconds.size(), 3);
  EXPECT_EQ(figures->queries_of_seconds[0], 0);
  EXPECT_EQ(std::accumulate(figures->queries_of_seconds.begin(),
                            figures->queries_of_seconds.end(), int64_t{0}),
            4);
  EXPECT_EQ(figures->cpu_of_seconds.size(),
            figures->queries_of_seconds.size() - 1);
}

TEST_F(LoadTest, NothingIsVerifiedWithoutReference) {
  options_.reference = nullptr;
  const auto figures = RunLoad(&session_, queries_, options_);
  ASSERT_TRUE(figures.ok()) << figures.status();
  EXPECT_EQ(figures->verification.verified, 0);
}

}  // namespace
}  // namespace multistream
}  // namespace tensorflow
