// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// How do requests come through one HTTP connection, and how do answers go back?
//
//   idle ---> head ---> body ---> asked ---> answer is written ---> idle
//     |         |         |         |              |
//     +---------+---------+---------+--------------+---> closed
//
// While a request is asked the connection reads on, and so learns that the
// client is gone, until the client sends a next request. Each state but `asked`
// has a time limit. A connection's functions run on its strand, but for those
// that say otherwise.

#ifndef EXAMPLES_SERVING_FRONT_HTTP_CONNECTION_H_
#define EXAMPLES_SERVING_FRONT_HTTP_CONNECTION_H_

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "examples/serving/front/large_requests.h"

namespace front {

// A body that takes memory as its bytes come, and not as its head promises.
struct GrowingBody {
  using value_type = std::string;

  class reader {
   public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>&, value_type& body)
        : body_(body) {}
    void init(const boost::optional<uint64_t>&,
              boost::beast::error_code& error) {
      error = {};
    }
    template <class Buffers>
    size_t put(const Buffers& buffers, boost::beast::error_code& error) {
      error = {};
      size_t size = 0;
      for (auto at = boost::asio::buffer_sequence_begin(buffers);
           at != boost::asio::buffer_sequence_end(buffers); ++at) {
        const boost::asio::const_buffer buffer = *at;
        body_.append(static_cast<const char*>(buffer.data()), buffer.size());
        size += buffer.size();
      }
      return size;
    }
    void finish(boost::beast::error_code& error) { error = {}; }

   private:
    value_type& body_;
  };
};

using HttpRequest = boost::beast::http::request<GrowingBody>;

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  // Others than of the type, the length and the connection.
  std::vector<std::pair<std::string, std::string>> headers;
  bool closes = false;                  // the connection, after the answer
  std::optional<uint64_t> head_length;  // what an answer to HEAD says
};

// The answer of an error, as both REST APIs have it.
HttpAnswer ErrorAnswer(int status, const std::string& message);

// One request, and the way back for its answer. Thread-safe.
class HttpExchange {
 public:
  using Send = std::function<void(HttpAnswer)>;

  HttpExchange(HttpRequest request, LargeRequest bytes,
               boost::asio::any_io_executor executor, Send send)
      : request_(std::move(request)),
        bytes_(std::move(bytes)),
        executor_(std::move(executor)),
        send_(std::move(send)) {}

  HttpRequest& request() { return request_; }
  // Where other work for the request may run.
  const boost::asio::any_io_executor& executor() const { return executor_; }

  // Answers the request; to be called once.
  void Answer(HttpAnswer answer) { send_(std::move(answer)); }
  // Has `end` called if the client goes before it has its answer, at once if it
  // is gone already.
  void OnGone(std::function<void()> end);
  // Whether nobody waits for the answer.
  bool IsGone();
  // For the connection: the client has its answer, or is gone.
  void End(bool is_answered);

 private:
  HttpRequest request_;
  const LargeRequest bytes_;  // of the request's body
  const boost::asio::any_io_executor executor_;
  const Send send_;
  std::mutex mutex_;
  bool has_ended_ = false;
  bool is_answered_ = false;
  std::vector<std::function<void()>> ends_;
};

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  using Clock = std::chrono::steady_clock;
  using Handler = std::function<void(std::shared_ptr<HttpExchange>)>;
  struct Limits {
    uint64_t most_bytes;         // of a body
    Clock::duration read;        // for a head, a body, a part of an answer
    Clock::duration keep_alive;  // between two requests
  };
  // What all connections of a port share.
  struct Shared {
    Shared(const Limits& the_limits, LargeRequests* the_large,
           Handler the_handler)
        : limits(the_limits),
          large(the_large),
          handler(std::move(the_handler)) {}

    const Limits limits;
    LargeRequests* const large;
    const Handler handler;
    std::optional<boost::asio::ssl::context> tls;
    std::atomic<int> unsent{0};  // requests that are asked or being answered
    std::atomic<bool> closed{false};  // requests that come now do not count
  };

  // A connection by TCP, or by TLS if there is a context for it.
  static std::shared_ptr<HttpConnection> Make(boost::asio::ip::tcp::socket,
                                              Shared* shared);
  virtual ~HttpConnection();

  // Begins to read. Any thread may call these.
  void Start();
  // Closes the connection, after the answer if there is a request by now.
  void Leave();
  // Ends what takes too long.
  void Look(Clock::time_point now);
  // Since when there is no request, or only a small answer that is on its way;
  // a time to come if there is one.
  Clock::time_point idle_since() const { return idle_since_; }
  bool is_closed() const { return is_closed_; }

 protected:
  using Done = std::function<void(boost::beast::error_code, size_t)>;

  HttpConnection(boost::asio::any_io_executor strand, Shared* shared);

  virtual void Handshake(std::function<void(boost::beast::error_code)>) = 0;
  virtual void ReadSome(boost::asio::mutable_buffer, Done) = 0;
  // Calls Progress after each part.
  virtual void WriteAll(const std::vector<boost::asio::const_buffer>&,
                        Done) = 0;
  virtual boost::asio::ip::tcp::socket& socket() = 0;

  // A part of an answer is sent, and the client has time to take it.
  void Progress();

 private:
  enum class State {
    kHandshake,
    kIdle,
    kHead,
    kContinue,  // the client waits to be told so
    kBody,
    kAsked,
    kAnswer,
    kLast,  // the client may read the last answer
  };

  void SetState(State state);
  void Read();
  void OnRead(boost::beast::error_code error, size_t size);
  void Parse();
  // Whether to read on: not if the request was refused, or is told to continue.
  bool TakeHead();
  bool TakeMemory();
  void Ask();
  // Answers a request that was not asked, and closes the connection.
  void Refuse(int status, const std::string& message);
  void Write(HttpAnswer answer);
  void OnWritten(boost::beast::error_code error);
  void OnLate();
  // Bytes that are sent, and that the client has not acknowledged.
  int Unacknowledged();
  void EndRequest(bool is_answered);
  void End();

  const boost::asio::any_io_executor strand_;
  Shared* const shared_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<GrowingBody>> parser_;
  std::shared_ptr<HttpExchange> exchange_;
  State state_ = State::kHandshake;
  bool reads_ = false;
  bool has_head_ = false;
  bool closes_ = false;     // after the answer
  bool is_head_ = false;    // the method is HEAD
  bool counts_ = false;     // in unsent
  LargeRequest taken_;      // what the parser has of a body
  int unacknowledged_ = 0;  // at the last progress
  std::string head_;        // of the answer that is written
  std::string body_;
  Clock::time_point ends_;  // of the state
  std::atomic<Clock::time_point>
      looked_for_;  // the same, until Look has seen it
  std::atomic<Clock::time_point> idle_since_;
  std::atomic<bool> is_closed_{false};
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_HTTP_CONNECTION_H_
