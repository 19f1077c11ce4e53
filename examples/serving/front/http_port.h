// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Which HTTP connections are there? For one above the limit the one is closed
// that has had no request for longest, or the new one if all have a request.

#ifndef EXAMPLES_SERVING_FRONT_HTTP_PORT_H_
#define EXAMPLES_SERVING_FRONT_HTTP_PORT_H_

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "examples/serving/front/http_connection.h"

namespace front {

class HttpPort {
 public:
  // `large` must live longer.
  HttpPort(const HttpConnection::Limits& limits, LargeRequests* large,
           size_t most_connections, HttpConnection::Handler handler);

  // Uses TLS from now on. Returns why it cannot, else nothing.
  std::string UseTls(const std::string& key, const std::string& certificate);
  // Accepts the connections of sockets that listen, on threads of its own.
  void Start(const std::vector<int>& listeners);

  // Requests that come from now on are not counted by `unsent`.
  void Close() { shared_.closed = true; }
  // How many requests are asked, or have an answer that is not sent.
  int unsent() const { return shared_.unsent; }

 private:
  struct Listener {
    explicit Listener(boost::asio::io_context* io)
        : acceptor(*io), later(*io) {}
    boost::asio::ip::tcp::acceptor acceptor;
    boost::asio::steady_timer later;  // where there is no file descriptor left
  };

  void Accept(Listener* listener);
  void Add(boost::asio::ip::tcp::socket socket);
  // Needs the mutex. False if all connections have a request.
  bool MakeRoom();
  [[noreturn]] void LookForLate();

  const size_t most_connections_;
  HttpConnection::Shared shared_;
  boost::asio::io_context io_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::mutex mutex_;
  // Those that leave have lost their place to others.
  std::set<std::shared_ptr<HttpConnection>> connections_, leaving_;
};

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_HTTP_PORT_H_
