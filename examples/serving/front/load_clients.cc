// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/load_clients.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

namespace front {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr char kPredict[] = "/tensorflow.serving.PredictionService/Predict";
constexpr std::chrono::seconds kTimeout(60);
// Of a float: relative above 1, absolute below.
constexpr float kTolerance = 1e-3f;

std::string Read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
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

Outcome::Answer Compare(std::string_view floats, std::string_view values) {
  if (floats == values) return Outcome::kSame;
  if (floats.size() != values.size()) return Outcome::kWrong;
  for (size_t at = 0; at + sizeof(float) <= floats.size();
       at += sizeof(float)) {
    float got = 0, want = 0;
    memcpy(&got, floats.data() + at, sizeof got);
    memcpy(&want, values.data() + at, sizeof want);
    if (!(std::abs(got - want) <= kTolerance * std::max(1.f, std::abs(want)))) {
      return Outcome::kWrong;
    }
  }
  return Outcome::kClose;
}

class OverGrpc : public Clients {
 public:
  OverGrpc(const std::string& address, int clients) {
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

  void Call(size_t client, const Query& query, Done done) override {
    auto* call = new Open;
    const grpc::Slice slice(query.message.data(), query.message.size(),
                            grpc::Slice::STATIC_SLICE);
    call->request = grpc::ByteBuffer(&slice, 1);
    call->context.set_deadline(std::chrono::system_clock::now() + kTimeout);
    stubs_[client]->UnaryCall(
        &call->context, kPredict, {}, &call->request, &call->response,
        [call, &query, done = std::move(done)](const grpc::Status& status) {
          Outcome outcome;
          grpc::Slice slice;
          if (!status.ok()) {
            outcome.error = status.error_message();
          } else if (call->response.DumpToSingleSlice(&slice).ok()) {
            outcome.answer =
                Compare(FloatsOf({reinterpret_cast<const char*>(slice.begin()),
                                  slice.size()}),
                        query.values);
          } else {
            outcome.answer = Outcome::kWrong;
          }
          delete call;
          done(outcome);
        });
  }

 private:
  struct Open {
    grpc::ClientContext context;
    grpc::ByteBuffer request, response;
  };

  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
};

// Takes the numbers of JSON as floats.
struct TakeFloats
    : rapidjson::BaseReaderHandler<rapidjson::UTF8<>, TakeFloats> {
  bool Default() { return true; }
  bool Take(double number) {
    const float value = static_cast<float>(number);
    floats.append(reinterpret_cast<const char*>(&value), sizeof value);
    return true;
  }
  bool Double(double number) { return Take(number); }
  bool Int(int number) { return Take(number); }
  bool Uint(unsigned number) { return Take(number); }
  bool Int64(int64_t number) { return Take(static_cast<double>(number)); }
  bool Uint64(uint64_t number) { return Take(static_cast<double>(number)); }

  std::string floats;
};

class OverRest : public Clients {
 public:
  OverRest(const std::string& url, int clients) {
    const size_t host = url.find("//") + 2, path = url.find('/', host);
    const size_t port = url.rfind(':', path);
    host_ = url.substr(host, port - host);
    port_ = url.substr(port + 1, path - port - 1);
    path_ = url.substr(path);
    for (int client = 0; client < clients; ++client) {
      clients_.push_back(std::make_unique<Client>());
      std::thread([this, client] { Run(clients_[client].get()); }).detach();
    }
  }

  void Call(size_t client, const Query& query, Done done) override {
    Client& called = *clients_[client];
    std::lock_guard<std::mutex> lock(called.mutex);
    called.calls.emplace_back(&query, std::move(done));
    called.added.notify_one();
  }

 private:
  struct Client {
    std::mutex mutex;
    std::condition_variable added;
    std::deque<std::pair<const Query*, Done>> calls;
  };

  [[noreturn]] void Run(Client* client) {
    asio::io_context io;
    std::unique_ptr<asio::ip::tcp::socket> socket;
    for (;;) {
      std::pair<const Query*, Done> call;
      {
        std::unique_lock<std::mutex> lock(client->mutex);
        client->added.wait(lock, [client] { return !client->calls.empty(); });
        call = std::move(client->calls.front());
        client->calls.pop_front();
      }
      Outcome outcome;
      try {
        if (socket == nullptr) {
          socket = std::make_unique<asio::ip::tcp::socket>(io);
          asio::connect(*socket,
                        asio::ip::tcp::resolver(io).resolve(host_, port_));
          socket->set_option(asio::ip::tcp::no_delay(true));
        }
        outcome = Ask(*call.first, socket.get());
      } catch (const std::exception& error) {
        socket.reset();
        outcome.error = error.what();
      }
      call.second(outcome);
    }
  }

  Outcome Ask(const Query& query, asio::ip::tcp::socket* socket) {
    http::request<http::string_body> request(http::verb::post, path_, 11);
    request.set(http::field::host, host_);
    request.body() = query.json;
    request.prepare_payload();
    http::write(*socket, request);
    boost::beast::flat_buffer buffer;
    http::response_parser<http::string_body> parser;
    parser.body_limit(UINT64_MAX);
    http::read(*socket, buffer, parser);
    const std::string& body = parser.get().body();
    Outcome outcome;
    if (parser.get().result() != http::status::ok) {
      outcome.error = body;
      return outcome;
    }
    TakeFloats handler;
    rapidjson::StringStream stream(body.c_str());
    rapidjson::Reader().Parse<rapidjson::kParseFullPrecisionFlag>(stream,
                                                                  handler);
    outcome.answer = Compare(handler.floats, query.values);
    return outcome;
  }

  std::string host_, port_, path_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace

std::vector<Query> ReadQueries(const std::string& folder) {
  std::vector<Query> queries;
  for (;;) {
    const std::string name = folder + "/" + std::to_string(queries.size());
    Query query = {Read(name + ".request"), Read(name + ".json"),
                   Read(name + ".values")};
    if (query.message.empty()) return queries;
    queries.push_back(std::move(query));
  }
}

std::unique_ptr<Clients> GrpcClients(const std::string& address, int clients) {
  return std::make_unique<OverGrpc>(address, clients);
}

std::unique_ptr<Clients> RestClients(const std::string& url, int clients) {
  return std::make_unique<OverRest>(url, clients);
}

}  // namespace front
