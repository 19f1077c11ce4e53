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

}  // namespace

int Listen(const std::string& host, int* port, std::string* error) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int failed = getaddrinfo(
          host.c_str(), std::to_string(*port).c_str(), &hints, &found)) {
    *error = gai_strerror(failed);
    return -1;
  }
  const int socket =
      ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  const bool listens =
      socket >= 0 &&
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
      bind(socket, found->ai_addr, found->ai_addrlen) == 0 &&
      listen(socket, kBacklog) == 0;
  if (!listens) *error = strerror(errno);
  freeaddrinfo(found);
  if (!listens) return -1;
  *port = PortOf(socket);
  return socket;
}

void Accept(int listener, size_t most,
            grpc::experimental::ExternalConnectionAcceptor* acceptor) {
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.fd = listener;
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  size_t open = 0;
  for (;;) {
    epoll_event events[64];
    const int count = epoll_wait(poll, events, 64, -1);
    bool connects = false;
    for (int i = 0; i < count; ++i) {
      if (events[i].data.fd == listener) {
        connects = true;
      } else {  // shut down; gRPC may not have closed its own yet
        epoll_ctl(poll, EPOLL_CTL_DEL, events[i].data.fd, nullptr);
        close(events[i].data.fd);
        --open;
      }
    }
    if (!connects) continue;
    const int socket =
        accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
          errno == ENOMEM) {
        std::this_thread::sleep_for(kLaterAgain);
      }
      continue;
    }
    const int duplicate = open < most ? fcntl(socket, F_DUPFD_CLOEXEC, 0) : -1;
    if (duplicate < 0) {
      close(socket);
      continue;
    }
    ++open;
    event.events = EPOLLHUP;
    event.data.fd = duplicate;
    epoll_ctl(poll, EPOLL_CTL_ADD, duplicate, &event);
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters
        connection;
    connection.listener_fd = listener;
    connection.fd = socket;
    acceptor->HandleNewConnection(&connection);
  }
}

}  // namespace front
