// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/http_port.h"

#include <sys/socket.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/strand.hpp>
#include <chrono>
#include <thread>
#include <utility>

namespace front {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kThreads = 4;
constexpr std::chrono::milliseconds kBetweenLooks(50);  // for late clients
constexpr std::chrono::milliseconds kLaterAgain(20);

}  // namespace

HttpPort::HttpPort(const HttpConnection::Limits& limits, LargeRequests* large,
                   size_t most_connections, HttpConnection::Handler handler)
    : most_connections_(most_connections),
      shared_(limits, large, std::move(handler)),
      io_(kThreads) {}

std::string HttpPort::UseTls(const std::string& key,
                             const std::string& certificate) {
  error_code error;
  shared_.tls.emplace(asio::ssl::context::tls_server);
  shared_.tls->set_options(asio::ssl::context::no_tlsv1 |
                           asio::ssl::context::no_tlsv1_1);
  shared_.tls->use_certificate_chain_file(certificate, error);
  if (!error) {
    shared_.tls->use_private_key_file(key, asio::ssl::context::pem, error);
  }
  return error ? error.message() : "";
}

void HttpPort::Start(const std::vector<int>& listeners) {
  for (const int socket : listeners) {
    sockaddr_storage address = {};
    socklen_t size = sizeof address;
    getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
    auto listener = std::make_unique<Listener>(&io_);
    listener->acceptor.assign(address.ss_family == AF_INET6
                                  ? asio::ip::tcp::v6()
                                  : asio::ip::tcp::v4(),
                              socket);
    Accept(listener.get());
    listeners_.push_back(std::move(listener));
  }
  for (int i = 0; i < kThreads; ++i) {
    std::thread([this] {
      const auto work = asio::make_work_guard(io_);
      io_.run();
    }).detach();
  }
  std::thread([this] { LookForLate(); }).detach();
}

void HttpPort::Accept(Listener* listener) {
  listener->acceptor.async_accept(
      asio::make_strand(io_),
      [this, listener](error_code error, asio::ip::tcp::socket socket) {
        if (!error) {
          Add(std::move(socket));
        } else if (error != asio::error::connection_aborted) {
          listener->later.expires_after(kLaterAgain);
          listener->later.async_wait(
              [this, listener](error_code) { Accept(listener); });
          return;
        }
        Accept(listener);
      });
}

void HttpPort::Add(asio::ip::tcp::socket socket) {
  error_code ignored;
  // Or the body of an answer would wait for the client to acknowledge the head.
  socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  const auto added = HttpConnection::Make(std::move(socket), &shared_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (connections_.size() >= most_connections_ && !MakeRoom()) return;
    connections_.insert(added);
  }
  added->Start();
}

bool HttpPort::MakeRoom() {
  // A client that does not read its answer may be slow to leave.
  if (leaving_.size() > most_connections_) return false;
  auto oldest = HttpConnection::Clock::now();
  std::shared_ptr<HttpConnection> leaves;
  for (const auto& connection : connections_) {
    if (connection->idle_since() < oldest) {
      oldest = connection->idle_since();
      leaves = connection;
    }
  }
  if (leaves == nullptr) return false;
  connections_.erase(leaves);
  leaves->Leave();
  leaving_.insert(std::move(leaves));
  return true;
}

void HttpPort::LookForLate() {
  for (;;) {
    std::this_thread::sleep_for(kBetweenLooks);
    const auto now = HttpConnection::Clock::now();
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto* const connections : {&connections_, &leaving_}) {
      for (auto at = connections->begin(); at != connections->end();) {
        if ((*at)->is_closed()) {
          at = connections->erase(at);
        } else {
          (*at++)->Look(now);
        }
      }
    }
  }
}

}  // namespace front
