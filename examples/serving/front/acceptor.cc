// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

#include "examples/serving/front/acceptor.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

namespace front {
namespace {

constexpr int kBacklog = 1024;
// Where the system lacks file descriptors or memory for a connection.
constexpr std::chrono::milliseconds kLaterAgain(20);

int PortOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof address;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return 0;
  }
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

void SetPort(sockaddr* address, int port) {
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  }
}

}  // namespace

std::vector<int> Listen(const std::string& host, int* port,
                        std::string* error) {
  std::vector<int> sockets;
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* addresses = nullptr;
  if (const int failed = getaddrinfo(
          host.c_str(), std::to_string(*port).c_str(), &hints, &addresses)) {
    *error = gai_strerror(failed);
    return sockets;
  }
  for (const addrinfo* at = addresses; at != nullptr; at = at->ai_next) {
    const int socket =
        ::socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (socket < 0) continue;  // as where there is no IPv6
    SetPort(at->ai_addr, *port);
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (at->ai_family == AF_INET6) {  // IPv4 has a socket of its own
      setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    if (bind(socket, at->ai_addr, at->ai_addrlen) == 0 &&
        listen(socket, kBacklog) == 0) {
      *port = PortOf(socket);
      sockets.push_back(socket);
      continue;
    }
    const int why = errno;
    close(socket);
    if (why == EADDRNOTAVAIL) continue;  // a name may have unused addresses
    // Another process has the port: not half a server.
    for (const int other : sockets) close(other);
    sockets.clear();
    *error = strerror(why);
    break;
  }
  freeaddrinfo(addresses);
  if (sockets.empty() && error->empty()) *error = strerror(EADDRNOTAVAIL);
  return sockets;
}

namespace {

// Returns whether there is a connection more; `room`: whether there may be.
bool AcceptOne(int listener, int poll, bool room,
               grpc::experimental::ExternalConnectionAcceptor* acceptor) {
  const int socket =
      accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) {
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
        errno == ENOMEM) {
      std::this_thread::sleep_for(kLaterAgain);
    }
    return false;
  }
  const int duplicate = room ? fcntl(socket, F_DUPFD_CLOEXEC, 0) : -1;
  epoll_event event = {};
  event.events = EPOLLHUP;
  event.data.fd = duplicate;
  if (duplicate < 0 || epoll_ctl(poll, EPOLL_CTL_ADD, duplicate, &event) != 0) {
    if (duplicate >= 0) close(duplicate);
    close(socket);
    return false;
  }
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
      connection;
  connection.listener_fd = listener;
  connection.fd = socket;
  acceptor->HandleNewConnection(&connection);
  return true;
}

}  // namespace

void Accept(const std::vector<int>& listeners, size_t most,
            grpc::experimental::ExternalConnectionAcceptor* acceptor) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  for (const int listener : listeners) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.fd = listener;
    epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  }
  size_t open = 0;
  for (;;) {
    epoll_event events[64];
    const int count = epoll_wait(poll, events, 64, -1);
    for (int i = 0; i < count; ++i) {
      const int ready = events[i].data.fd;
      if (std::find(listeners.begin(), listeners.end(), ready) !=
          listeners.end()) {
        open += AcceptOne(ready, poll, open < most, acceptor);
      } else {  // shut down; gRPC may not have closed its own yet
        epoll_ctl(poll, EPOLL_CTL_DEL, ready, nullptr);
        close(ready);
        --open;
      }
    }
  }
}

}  // namespace front
