// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/http_connection.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <time.h>

#include <algorithm>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/status.hpp>
#include <sstream>

#include "examples/serving/front/json_values.h"

namespace front {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using beast::error_code;
using Clock = HttpConnection::Clock;

constexpr size_t kPiece = 1 << 16;  // that is read, or written, at once
constexpr uint32_t kMostHead = 1 << 16;
// For the client to read the last answer: a socket that is closed with bytes
// which nobody has read would take the answer back.
constexpr std::chrono::seconds kLast(2);
// For the first request to be read: until then the connection is not idle.
constexpr std::chrono::milliseconds kFirst(100);
constexpr char kContinue[] = "HTTP/1.1 100 Continue\r\n\r\n";

std::string Date() {
  const time_t now = time(nullptr);
  tm parts;
  char text[64];
  const size_t size = strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT",
                               gmtime_r(&now, &parts));
  return std::string(text, size);
}

// Over TCP or TLS.
template <class Stream>
class ConnectionOf : public HttpConnection {
 public:
  template <class... Arguments>
  ConnectionOf(asio::any_io_executor strand, Shared* shared,
               asio::ip::tcp::socket socket, Arguments&&... arguments)
      : HttpConnection(std::move(strand), shared),
        stream_(std::move(socket), std::forward<Arguments>(arguments)...) {}

 private:
  static constexpr bool kIsTls =
      !std::is_same<Stream, asio::ip::tcp::socket>::value;

  void Handshake(std::function<void(error_code)> done) override {
    if constexpr (kIsTls) {
      stream_.async_handshake(asio::ssl::stream_base::server, std::move(done));
    } else {
      done({});
    }
  }
  void ReadSome(asio::mutable_buffer to, Done done) override {
    stream_.async_read_some(to, std::move(done));
  }
  void WriteAll(const std::vector<asio::const_buffer>& parts,
                Done done) override {
    asio::async_write(
        stream_, parts,
        [this](error_code error, size_t) {
          Progress();
          return error ? 0 : kPiece;
        },
        std::move(done));
  }
  asio::ip::tcp::socket& socket() override {
    if constexpr (kIsTls) {
      return stream_.next_layer();
    } else {
      return stream_;
    }
  }

  Stream stream_;
};

}  // namespace

HttpAnswer ErrorAnswer(int status, const std::string& message) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = "{\n \"error\": ";
  AppendJsonString(message, &answer.body);
  answer.body += "\n}";
  // The client may try another server, or has not sent all of its request.
  answer.closes = status == 408 || status == 413 || status == 415 ||
                  status == 429 || status == 503;
  return answer;
}

void HttpExchange::OnGone(std::function<void()> end) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!has_ended_) {
      ends_.push_back(std::move(end));
      return;
    }
    if (is_answered_) return;
  }
  end();
}

bool HttpExchange::IsGone() {
  std::lock_guard<std::mutex> lock(mutex_);
  return has_ended_ && !is_answered_;
}

void HttpExchange::End(bool is_answered) {
  std::vector<std::function<void()>> ends;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    has_ended_ = true;
    is_answered_ = is_answered;
    ends.swap(ends_);
  }
  if (is_answered) return;
  for (const std::function<void()>& end : ends) end();
}

std::shared_ptr<HttpConnection> HttpConnection::Make(
    asio::ip::tcp::socket socket, Shared* shared) {
  asio::any_io_executor strand = socket.get_executor();
  if (shared->tls) {
    using Tls = asio::ssl::stream<asio::ip::tcp::socket>;
    return std::make_shared<ConnectionOf<Tls>>(std::move(strand), shared,
                                               std::move(socket), *shared->tls);
  }
  return std::make_shared<ConnectionOf<asio::ip::tcp::socket>>(
      std::move(strand), shared, std::move(socket));
}

HttpConnection::HttpConnection(asio::any_io_executor strand, Shared* shared)
    : strand_(std::move(strand)),
      shared_(shared),
      taken_(shared->large),
      looked_for_(Clock::time_point::max()),
      idle_since_(Clock::now() + kFirst) {}

HttpConnection::~HttpConnection() = default;

void HttpConnection::Start() {
  asio::post(strand_, [self = shared_from_this()] {
    self->SetState(State::kHandshake);
    self->Handshake([self](error_code error) {
      if (error || self->is_closed_) return self->End();
      // A first head is expected as soon as there is a connection.
      self->SetState(State::kIdle);
      self->ends_ = Clock::now() + self->shared_->limits.read;
      self->looked_for_ = self->ends_;
      self->Read();
    });
  });
}

void HttpConnection::Leave() {
  asio::post(strand_, [self = shared_from_this()] {
    switch (self->state_) {
      case State::kAnswer:
        self->ends_ = std::min(self->ends_, Clock::now() + kLast);
        self->looked_for_ = self->ends_;
        [[fallthrough]];
      case State::kBody:
      case State::kAsked:
        self->closes_ = true;
        break;
      default:
        self->End();
    }
  });
}

void HttpConnection::Look(Clock::time_point now) {
  if (now < looked_for_.load()) return;
  looked_for_ = Clock::time_point::max();
  asio::post(strand_, [self = shared_from_this()] { self->OnLate(); });
}

void HttpConnection::OnLate() {
  if (Clock::now() < ends_) {  // it has another state by now
    looked_for_ = ends_;
  } else if (state_ == State::kAnswer && Unacknowledged() < unacknowledged_) {
    // The system takes a next part when a third of its buffer, which may have
    // megabytes, is free: the client may read slowly, and yet read on.
    Progress();
  } else if (state_ == State::kBody) {
    std::ostringstream says;
    says << "the body was not sent within "
         << std::chrono::duration<double>(shared_->limits.read).count()
         << " s (--read-timeout).";
    Refuse(408, says.str());
  } else {
    End();
  }
}

int HttpConnection::Unacknowledged() {
  int bytes = 0;
  return ioctl(socket().native_handle(), SIOCOUTQ, &bytes) == 0 ? bytes : 0;
}

void HttpConnection::Progress() {
  unacknowledged_ = Unacknowledged();
  ends_ = Clock::now() + shared_->limits.read;
  looked_for_ = ends_;
}

void HttpConnection::SetState(State state) {
  state_ = state;
  const Clock::time_point now = Clock::now();
  switch (state) {
    case State::kHandshake:
    case State::kHead:
    case State::kContinue:
    case State::kBody:
    case State::kAnswer:
      ends_ = now + shared_->limits.read;
      break;
    case State::kIdle:
      ends_ = now + shared_->limits.keep_alive;
      if (idle_since_.load() == Clock::time_point::max()) idle_since_ = now;
      break;
    case State::kAsked:
      ends_ = Clock::time_point::max();
      break;
    case State::kLast:
      ends_ = now + kLast;
      break;
  }
  if (state == State::kContinue || state == State::kBody ||
      state == State::kAsked) {
    idle_since_ = Clock::time_point::max();
  }
  looked_for_ = ends_;
}

void HttpConnection::Read() {
  if (reads_ || is_closed_) return;
  reads_ = true;
  ReadSome(buffer_.prepare(kPiece),
           [self = shared_from_this()](error_code error, size_t size) {
             self->OnRead(error, size);
           });
}

void HttpConnection::OnRead(error_code error, size_t size) {
  reads_ = false;
  if (error || is_closed_) return End();
  if (state_ == State::kLast) return Read();  // what comes now is not taken
  buffer_.commit(size);
  // A next request waits, and nothing more is read meanwhile: the buffer must
  // not change while a read has a part of it.
  if (state_ != State::kAsked && state_ != State::kAnswer) Parse();
}

void HttpConnection::Parse() {
  while (buffer_.size() > 0) {
    if (state_ == State::kIdle) {
      parser_.emplace();
      parser_->eager(true);
      parser_->header_limit(kMostHead);
      parser_->body_limit(shared_->limits.most_bytes);
      has_head_ = false;
      SetState(State::kHead);
    }
    error_code error;
    const size_t used = parser_->put(buffer_.data(), error);
    buffer_.consume(used);
    if (error == http::error::body_limit) {
      return Refuse(413, "the body is above the limit of " +
                             std::to_string(shared_->limits.most_bytes) +
                             " bytes (--max-request-mb).");
    }
    if (error && error != http::error::need_more) {
      const bool is_long = error == http::error::header_limit;
      return Refuse(is_long ? 431 : 400,
                    "the request is not HTTP/1.1: " + error.message() + ".");
    }
    if (!has_head_ && parser_->is_header_done()) {
      has_head_ = true;
      if (!TakeHead()) return;
    }
    if (has_head_ && !TakeMemory()) return;
    if (parser_->is_done()) return Ask();
    if (used == 0) break;
  }
  // As of a chunk whose head does not end.
  if (buffer_.size() > kMostHead) {
    return Refuse(400, "the request is not HTTP/1.1: a part is too long.");
  }
  Read();
}

bool HttpConnection::TakeHead() {
  const auto& head = parser_->get();
  is_head_ = head.method() == http::verb::head;
  closes_ = !parser_->keep_alive();
  if (parser_->is_done() || head.version() < 11 ||
      !beast::iequals(head[http::field::expect], "100-continue")) {
    SetState(State::kBody);
    return true;
  }
  SetState(State::kContinue);
  WriteAll({asio::buffer(kContinue, sizeof kContinue - 1)},
           [self = shared_from_this()](error_code error, size_t) {
             if (error || self->is_closed_) return self->End();
             self->SetState(State::kBody);
             self->Parse();
           });
  return false;
}

bool HttpConnection::TakeMemory() {
  const std::string too_large = taken_.Grow(parser_->get().body().size());
  if (too_large.empty()) return true;
  Refuse(429, too_large);
  return false;
}

void HttpConnection::Ask() {
  SetState(State::kAsked);
  counts_ = !shared_->closed;
  if (counts_) ++shared_->unsent;
  exchange_ = std::make_shared<HttpExchange>(
      parser_->release(), std::move(taken_), strand_,
      [self = shared_from_this()](HttpAnswer answer) {
        asio::dispatch(self->strand_,
                       [self, answer = std::move(answer)]() mutable {
                         if (self->state_ != State::kAsked) return;
                         self->Write(std::move(answer));
                       });
      });
  shared_->handler(exchange_);
  if (buffer_.size() == 0) Read();
}

void HttpConnection::Refuse(int status, const std::string& message) {
  HttpAnswer answer = ErrorAnswer(status, message);
  answer.closes = true;
  Write(std::move(answer));
}

void HttpConnection::Write(HttpAnswer answer) {
  if (is_closed_) return;
  closes_ = closes_ || answer.closes;
  const auto status = http::int_to_status(answer.status);
  const auto reason = http::obsolete_reason(status);
  head_ = "HTTP/1.1 " + std::to_string(answer.status) + " " +
          std::string(reason.data(), reason.size()) + "\r\ndate: " + Date() +
          "\r\ncontent-length: " +
          std::to_string(answer.head_length.value_or(answer.body.size())) +
          "\r\n";
  if (!answer.content_type.empty()) {
    head_ += "content-type: " + answer.content_type + "\r\n";
  }
  for (const auto& [name, value] : answer.headers) {
    head_ += name + ": " + value + "\r\n";
  }
  if (closes_) {
    head_ += "connection: close\r\n";
  } else if (exchange_ != nullptr && exchange_->request().version() < 11) {
    head_ += "connection: keep-alive\r\n";
  }
  head_ += "\r\n";
  body_ = is_head_ ? std::string() : std::move(answer.body);
  SetState(State::kAnswer);
  // The client may have all of it, and open another connection, before this
  // thread goes on.
  if (body_.size() <= kPiece) idle_since_ = Clock::now();
  WriteAll({asio::buffer(head_), asio::buffer(body_)},
           [self = shared_from_this()](error_code error, size_t) {
             self->OnWritten(error);
           });
}

void HttpConnection::OnWritten(error_code error) {
  if (error || is_closed_) return End();
  body_ = std::string();
  EndRequest(true);
  if (closes_) {
    SetState(State::kLast);
    socket().shutdown(asio::ip::tcp::socket::shutdown_send, error);
    buffer_.clear();
    return Read();
  }
  SetState(State::kIdle);
  Parse();
}

void HttpConnection::EndRequest(bool is_answered) {
  if (counts_) --shared_->unsent;
  counts_ = false;
  parser_.reset();
  taken_.Return();
  is_head_ = false;
  if (exchange_ != nullptr) exchange_->End(is_answered);
  exchange_.reset();
}

void HttpConnection::End() {
  if (is_closed_) return;
  is_closed_ = true;
  idle_since_ = Clock::time_point::min();  // its place is free
  error_code ignored;
  socket().close(ignored);
  EndRequest(false);
}

}  // namespace front
