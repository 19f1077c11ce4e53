// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How many calls of Predict does a model server answer?
//
//   load ADDRESS FOLDER CLIENTS SECONDS [RATE]
//
// FOLDER has the requests 0.request, 1.request, ... and for each the bytes of
// the values in the right answer, 0.values, ... Each client has a connection
// and a call at a time. With RATE, calls come at random times instead (a
// Poisson process), so many in a second on average, over the clients'
// connections, and a call's time is from when it was to come.
//
// Warms the server up, prints "ready", and waits for a line. Then it measures,
// and prints one line, JSON: calls, calls in a second, times in milliseconds,
// answers with other bits that are close (floats of steps with other batches),
// wrong answers, calls that failed, when slow calls came in bursts, and the
// text of the last error.

#include <absl/synchronization/mutex.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr char kPredict[] = "/tensorflow.serving.PredictionService/Predict";
constexpr std::chrono::seconds kTimeout(60);
// Before the measurement: kernels, recordings.
constexpr std::chrono::seconds kWarmUp(2);
constexpr size_t kMostBursts = 10;
// Of a float: relative above 1, absolute below.
constexpr float kTolerance = 1e-3f;

struct Query {
  grpc::ByteBuffer request;
  std::string values;
};

bool Read(const std::string& file, std::string* bytes) {
  std::ifstream in(file, std::ios::binary);
  bytes->assign(std::istreambuf_iterator<char>(in), {});
  return in.good() || in.eof();
}

std::vector<Query> ReadQueries(const std::string& folder) {
  std::vector<Query> queries;
  for (;;) {
    const std::string name = folder + "/" + std::to_string(queries.size());
    std::string request, values;
    if (!Read(name + ".request", &request) || request.empty() ||
        !Read(name + ".values", &values)) {
      return queries;
    }
    const grpc::Slice slice(request);
    queries.push_back({grpc::ByteBuffer(&slice, 1), std::move(values)});
  }
}

// Reads one level of a message: calls `take` with the bytes of each field of
// `number`, which is a message or bytes.
template <class Take>
void ForEach(std::string_view message, int number, const Take& take) {
  google::protobuf::io::CodedInputStream in(
      reinterpret_cast<const uint8_t*>(message.data()),
      static_cast<int>(message.size()));
  while (const uint32_t tag = in.ReadTag()) {
    uint32_t size = 0;
    if (tag != static_cast<uint32_t>(number << 3 | 2)) {
      if (!google::protobuf::internal::WireFormatLite::SkipField(&in, tag)) {
        return;
      }
    } else if (!in.ReadVarint32(&size) ||
               in.CurrentPosition() + size > message.size()) {
      return;
    } else {
      take(message.substr(in.CurrentPosition(), size));
      in.Skip(static_cast<int>(size));
    }
  }
}

// The values of the outputs of a PredictResponse, which are floats.
std::string FloatsOf(std::string_view response) {
  std::string floats;
  ForEach(response, 1, [&floats](std::string_view entry) {
    ForEach(entry, 2, [&floats](std::string_view tensor) {
      for (const int field : {4, 5}) {  // tensor_content, float_val
        ForEach(tensor, field,
                [&floats](std::string_view bytes) { floats += bytes; });
      }
    });
  });
  return floats;
}

enum class Answer { kSame, kClose, kWrong };

Answer Compare(const grpc::ByteBuffer& response, const std::string& values) {
  grpc::Slice slice;
  if (!response.DumpToSingleSlice(&slice).ok()) return Answer::kWrong;
  const std::string_view bytes(reinterpret_cast<const char*>(slice.begin()),
                               slice.size());
  if (bytes.find(values) != std::string_view::npos) return Answer::kSame;
  const std::string floats = FloatsOf(bytes);
  if (floats.size() != values.size()) return Answer::kWrong;
  for (size_t at = 0; at + sizeof(float) <= floats.size();
       at += sizeof(float)) {
    float got = 0, want = 0;
    memcpy(&got, floats.data() + at, sizeof got);
    memcpy(&want, values.data() + at, sizeof want);
    if (!(std::abs(got - want) <= kTolerance * std::max(1.f, std::abs(want)))) {
      return Answer::kWrong;
    }
  }
  return Answer::kClose;
}

// Without what JSON would have to escape.
std::string Plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(),
      [](unsigned char c) { return c < ' ' || c == '"' || c == '\\'; }, ' ');
  return text;
}

class Load {
 public:
  Load(const std::string& address, std::vector<Query> queries, int clients)
      : queries_(std::move(queries)) {
    grpc::ChannelArguments arguments;
    arguments.SetInt("grpc.use_local_subchannel_pool", 1);
    arguments.SetMaxReceiveMessageSize(-1);
    for (int client = 0; client < clients; ++client) {
      arguments.SetInt("client", client);  // or channels are shared
      stubs_.push_back(
          std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
              address, grpc::InsecureChannelCredentials(), arguments)));
    }
  }

  // Calls that begin before `end` follow on each other.
  void RunClosed(Clock::time_point end) {
    for (size_t client = 0; client < stubs_.size(); ++client) {
      Begin(client, Clock::now(), end);
    }
    Wait();
  }

  void RunOpen(double rate, Clock::time_point end) {
    std::mt19937_64 random(1);
    std::exponential_distribution<double> between(rate);
    for (auto at = Clock::now(); at < end;
         at += std::chrono::duration_cast<Clock::duration>(
             std::chrono::duration<double>(between(random)))) {
      std::this_thread::sleep_until(at);
      Begin(next_++ % stubs_.size(), at, Clock::time_point::min());
    }
    Wait();
  }

  void Forget() {
    times_.clear();
    ends_.clear();
    forgot_ = Clock::now();
    close_ = wrong_ = failed_ = 0;
    error_.clear();
  }

  // The calls that took over three times the median, as bursts: those that
  // ended within 10 ms of each other. "[[second, calls, longest], ...]", of the
  // largest bursts.
  std::string Bursts(double median) {
    struct Burst {
      double begin, end;
      int calls;
      double longest;
    };
    std::vector<Burst> bursts;
    std::sort(ends_.begin(), ends_.end());
    for (const auto& [end, time] : ends_) {
      if (time < 3 * median) continue;
      if (bursts.empty() || end > bursts.back().end + 0.01) {
        bursts.push_back({end, end, 0, 0});
      }
      Burst& burst = bursts.back();
      burst.end = end;
      ++burst.calls;
      burst.longest = std::max(burst.longest, time);
    }
    std::sort(bursts.begin(), bursts.end(),
              [](const auto& a, const auto& b) { return a.calls > b.calls; });
    std::string text;
    for (size_t i = 0; i < bursts.size() && i < kMostBursts; ++i) {
      char burst[64];
      snprintf(burst, sizeof burst, "%s[%.3f, %d, %.3f]", i ? ", " : "",
               bursts[i].begin, bursts[i].calls, bursts[i].longest);
      text += burst;
    }
    return "[" + text + "]";
  }

  void Print(double seconds) {
    std::sort(times_.begin(), times_.end());
    const auto at = [&](double part) {
      return times_.empty()
                 ? 0.0
                 : times_[static_cast<size_t>(part * (times_.size() - 1))];
    };
    printf(
        "{\"calls\": %zu, \"per_second\": %.1f, \"p50\": %.4f, \"p99\": %.4f, "
        "\"p999\": %.4f, \"longest\": %.4f, \"close\": %ld, \"wrong\": %ld, "
        "\"failed\": %ld, \"bursts\": %s, \"error\": \"%s\"}\n",
        times_.size(), times_.size() / seconds, at(0.5), at(0.99), at(0.999),
        at(1), close_, wrong_, failed_, Bursts(at(0.5)).c_str(),
        error_.c_str());
  }

 private:
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer response;
  };

  void Begin(size_t client, Clock::time_point begin, Clock::time_point end) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++open_;
    }
    const size_t number = queried_++ % queries_.size();
    auto* call = new Call;
    call->context.set_deadline(std::chrono::system_clock::now() + kTimeout);
    stubs_[client]->UnaryCall(
        &call->context, kPredict, {}, &queries_[number].request,
        &call->response,
        [this, call, client, begin, end, number](const grpc::Status& status) {
          const auto now = Clock::now();
          const Answer answer =
              status.ok() ? Compare(call->response, queries_[number].values)
                          : Answer::kSame;
          delete call;
          if (now < end) Begin(client, now, end);
          std::lock_guard<std::mutex> lock(mutex_);
          times_.push_back(
              std::chrono::duration<double, std::milli>(now - begin).count());
          ends_.push_back({std::chrono::duration<double>(now - forgot_).count(),
                           times_.back()});
          close_ += answer == Answer::kClose;
          wrong_ += answer == Answer::kWrong;
          failed_ += !status.ok();
          if (!status.ok()) error_ = Plain(status.error_message());
          if (--open_ == 0) ended_.notify_all();
        });
  }

  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    ended_.wait(lock, [&] { return open_ == 0; });
  }

  const std::vector<Query> queries_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  std::atomic<size_t> queried_{0};
  size_t next_ = 0;
  std::mutex mutex_;
  std::condition_variable ended_;
  size_t open_ = 0;
  Clock::time_point forgot_ = Clock::now();
  std::vector<double> times_;
  std::vector<std::pair<double, double>> ends_;  // seconds, and the times
  long close_ = 0, wrong_ = 0, failed_ = 0;
  std::string error_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 5 && count != 6) {
    fprintf(stderr, "usage: load ADDRESS FOLDER CLIENTS SECONDS [RATE]\n");
    return 2;
  }
  std::vector<Query> queries = ReadQueries(arguments[2]);
  const int clients = atoi(arguments[3]);
  const double seconds = atof(arguments[4]);
  const double rate = count == 6 ? atof(arguments[5]) : 0;
  if (queries.empty() || clients < 1 || seconds <= 0 || rate < 0) {
    fprintf(stderr, "load: no requests in %s, or a wrong number\n",
            arguments[2]);
    return 2;
  }
  // Debian's Abseil looks for deadlocks at each lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Load load(arguments[1], std::move(queries), clients);
  load.RunClosed(Clock::now() + kWarmUp);
  load.Forget();
  printf("ready\n");
  fflush(stdout);
  getchar();
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(seconds));
  if (rate > 0) {
    load.RunOpen(rate, end);
  } else {
    load.RunClosed(end);
  }
  load.Print(std::chrono::duration<double>(Clock::now() - begin).count());
  return 0;
}
