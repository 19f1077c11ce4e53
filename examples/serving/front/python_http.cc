// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/python_http.h"

#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <charconv>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>

namespace front {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using beast::error_code;

constexpr char kSampled[] = "x-sampled";
// Of a connection, and so not of a request that goes through another one; and
// what only the front may say.
constexpr std::array<const char*, 9> kNotSent = {
    "connection", "keep-alive",     "transfer-encoding", "te",    "upgrade",
    "expect",     "content-length", "proxy-connection",  kSampled};
// Of an answer, what the connection to the client says for itself.
constexpr std::array<const char*, 6> kNotReturned = {
    "connection", "keep-alive",   "transfer-encoding",
    "date",       "content-type", "content-length"};

template <class Names>
bool Has(const Names& names, beast::string_view name) {
  for (const char* known : names) {
    if (beast::iequals(name, known)) return true;
  }
  return false;
}

// How often, and for how long, a request waits for a place among the
// connections that Python has not accepted: for 10 s at most.
constexpr std::chrono::milliseconds kBetweenTries(10);
constexpr int kMostTries = 1000;

// Its functions run on the exchange's executor.
class PythonRequest : public std::enable_shared_from_this<PythonRequest> {
 public:
  PythonRequest(std::shared_ptr<HttpExchange> exchange, std::string sampled)
      : exchange_(std::move(exchange)),
        socket_(exchange_->executor()),
        timer_(exchange_->executor()),
        sampled_(std::move(sampled)) {}

  // Any thread may call it.
  void Start(const std::string& file) {
    exchange_->OnGone([self = shared_from_this()] {
      asio::post(self->socket_.get_executor(), [self] { self->End(); });
    });
    asio::post(socket_.get_executor(),
               [self = shared_from_this(), file] { self->Connect(file); });
  }

 private:
  void Connect(const std::string& file) {
    if (exchange_ == nullptr) return;
    socket_.async_connect(asio::local::stream_protocol::endpoint(file),
                          [self = shared_from_this(), file](error_code error) {
                            if (error == asio::error::no_buffer_space ||
                                error == asio::error::try_again) {
                              return self->ConnectLater(file);
                            }
                            if (error) return self->Fail(kStops);
                            self->Send();
                          });
  }

  // A socket file's listen queue that is full refuses a connection, where TCP
  // has the client try again.
  void ConnectLater(const std::string& file) {
    if (++tries_ == kMostTries) {
      return Fail("too many requests wait for Python. Try again later.");
    }
    error_code ignored;
    socket_.close(ignored);
    timer_.expires_after(kBetweenTries);
    timer_.async_wait(
        [self = shared_from_this(), file](error_code) { self->Connect(file); });
  }

  void Send() {
    if (exchange_ == nullptr) return;
    HttpRequest& asked = exchange_->request();
    request_.method_string(asked.method_string());
    request_.target(asked.target());
    for (const auto& field : asked) {
      if (!Has(kNotSent, field.name_string())) {
        request_.insert(field.name_string(), field.value());
      }
    }
    // The connection is of HTTP/1.1, which has a host in each request.
    if (asked.version() < 11 && asked.count(http::field::host) == 0) {
      request_.set(http::field::host, "localhost");
    }
    if (!sampled_.empty()) request_.set(kSampled, sampled_);
    request_.keep_alive(true);  // so that an answer tells if it wants another
    request_.body() = std::move(asked.body());  // nobody else needs it now
    if (!request_.body().empty() || asked.method() == http::verb::post) {
      request_.content_length(request_.body().size());
    }
    http::async_write(socket_, request_,
                      [self = shared_from_this()](error_code, size_t) {
                        // It may answer before it has read all.
                        self->Receive();
                      });
  }

  void Receive() {
    if (exchange_ == nullptr) return;
    parser_.emplace();
    parser_->body_limit(std::numeric_limits<uint64_t>::max());
    parser_->skip(exchange_->request().method() == http::verb::head);
    http::async_read(socket_, buffer_, *parser_,
                     [self = shared_from_this()](error_code error, size_t) {
                       if (error) return self->Fail(kStops);
                       self->Answer();
                     });
  }

  void Answer() {
    if (exchange_ == nullptr) return;
    HttpAnswer answer;
    answer.closes = !parser_->keep_alive();
    auto response = parser_->release();
    answer.status = response.result_int();
    answer.content_type = std::string(response[http::field::content_type]);
    const auto length = response[http::field::content_length];
    uint64_t number = 0;
    if (std::from_chars(length.data(), length.data() + length.size(), number)
            .ec == std::errc()) {
      answer.head_length = number;
    }
    for (const auto& field : response) {
      if (!Has(kNotReturned, field.name_string())) {
        answer.headers.emplace_back(field.name_string(), field.value());
      }
    }
    answer.body = std::move(response.body());
    exchange_->Answer(std::move(answer));
    End();
  }

  void Fail(const char* why) {
    if (exchange_ == nullptr) return;
    exchange_->Answer(ErrorAnswer(503, why));
    End();
  }

  void End() {
    exchange_.reset();
    timer_.cancel();
    error_code ignored;
    socket_.close(ignored);
  }

  static constexpr char kStops[] = "the server is shutting down";

  std::shared_ptr<HttpExchange> exchange_;  // null when it has ended
  asio::local::stream_protocol::socket socket_;
  asio::steady_timer timer_;
  int tries_ = 0;
  const std::string sampled_;
  http::request<http::string_body> request_;
  beast::flat_buffer buffer_;
  std::optional<http::response_parser<http::string_body>> parser_;
};

}  // namespace

void AskPython(std::shared_ptr<HttpExchange> exchange,
               const std::string& socket, const std::string& sampled) {
  const auto request =
      std::make_shared<PythonRequest>(std::move(exchange), sampled);
  request->Start(socket);
}

}  // namespace front
