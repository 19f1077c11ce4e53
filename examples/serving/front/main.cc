// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// The ports of the model server, for gRPC and REST, in a process of its own:
// gRPC's C++ library and the one that is inside TensorFlow cannot be in one
// process.
// Started by grpc_front.py, which gives sockets and limits as --name=value, and
// commands through the control socket:
//
//   drain                 refuse calls from now on
//   close                 end all calls
//   stats                 say the figures, as a line of JSON
//   models NAME,NAME,...  the models from now on, for the figures
//   batch MODEL SIGNATURE ROWS MICROSECONDS BATCHES
//                         calls of the signature share batches of at most ROWS
//                         rows, wait MICROSECONDS for others, and at most
//                         BATCHES of their batches run at once
//   share MODEL BATCHES CALLS PRIORITY
//                         at most BATCHES of the model run at once, and at most
//                         CALLS of the model's calls wait; lines of the highest
//                         PRIORITY go first
//   sample MODEL SHARE    Python answers the share, 0 to 1, of the calls
//   trace 1               Python answers calls that their clients trace; 0: not
//   version JSON          the dtypes of a version's signatures, or that there
//                         is no such version (served_signatures.h)
//
// The first line that is said there is "listening PORT REST_PORT FRAMES", with
// the number of front_frames.h, or "error TEXT". The process ends when the
// control socket is closed.

#include <absl/synchronization/mutex.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "examples/serving/front/acceptor.h"
#include "examples/serving/front/call_queue.h"
#include "examples/serving/front/http_port.h"
#include "examples/serving/front/lanes.h"
#include "examples/serving/front/rest_calls.h"
#include "examples/serving/front/served_call.h"
#include "tensorflow/core/common_runtime/multistream/serving/front_frames.h"

namespace front {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(20);  // for late calls
// The longest that an HTTP connection is open between two requests.
constexpr std::chrono::seconds kKeepAlive(30);

std::vector<std::string> Split(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> parts;
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

// --name=value, each of which grpc_front.py gives.
class Options {
 public:
  Options(int count, char** arguments) {
    for (int i = 1; i < count; ++i) {
      const std::string argument = arguments[i];
      const size_t equals = argument.find('=');
      if (argument.rfind("--", 0) != 0 || equals == std::string::npos) {
        Wrong(argument);
      }
      values_[argument.substr(2, equals - 2)] = argument.substr(equals + 1);
    }
  }

  const std::string& Text(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) Wrong("without --" + name);
    return found->second;
  }
  double Number(const std::string& name) const {
    const std::string& text = Text(name);
    char* end = nullptr;
    const double number = strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(number >= 0)) {
      Wrong("--" + name + "=" + text);
    }
    return number;
  }
  int Whole(const std::string& name) const {
    return static_cast<int>(Number(name));
  }
  std::vector<std::string> List(const std::string& name) const {
    return Split(Text(name));
  }
  std::vector<double> Numbers(const std::string& name) const {
    std::vector<double> numbers;
    for (const std::string& part : List(name)) {
      numbers.push_back(strtod(part.c_str(), nullptr));
    }
    return numbers;
  }

 private:
  [[noreturn]] static void Wrong(const std::string& what) {
    fprintf(stderr,
            "front: wrong argument: %s. model_server.py starts this program.\n",
            what.c_str());
    exit(2);
  }

  std::map<std::string, std::string> values_;
};

std::string Read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::shared_ptr<grpc::ServerCredentials> Credentials(const Options& options) {
  if (options.Text("tls-key").empty()) {
    return grpc::InsecureServerCredentials();
  }
  grpc::SslServerCredentialsOptions ssl;
  ssl.pem_key_cert_pairs.push_back(
      {Read(options.Text("tls-key")), Read(options.Text("tls-certificate"))});
  return grpc::SslServerCredentials(ssl);
}

// gRPC would say of an external acceptor's credentials that all is well.
bool CanListen(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
  int port = 0;
  grpc::CallbackGenericService refuses;
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&refuses);
  builder.AddListeningPort("127.0.0.1:0", credentials, &port);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  return server != nullptr && port != 0;
}

// What grpc_front.py says and hears.
class Control {
 public:
  explicit Control(int socket) : in_(fdopen(socket, "r")), socket_(socket) {}

  // False when the other end is closed.
  bool Read(std::string* line) {
    line->clear();
    for (int c = fgetc(in_); c != EOF; c = fgetc(in_)) {
      if (c == '\n') return true;
      line->push_back(static_cast<char>(c));
    }
    return false;
  }
  void Say(const std::string& line) {
    const std::string text = line + "\n";
    size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t more =
          write(socket_, text.data() + sent, text.size() - sent);
      if (more <= 0) _exit(1);
      sent += more;
    }
  }

 private:
  FILE* const in_;
  const int socket_;
};

void SetBatching(std::istringstream command, CallQueue* queue) {
  std::string model, signature;
  Batching batching;
  int64_t microseconds = 0;
  command >> model >> signature >> batching.most_rows >> microseconds >>
      batching.most_running;
  if (!command) return;
  batching.wait = std::chrono::microseconds(microseconds);
  queue->SetBatching(model, signature, batching);
}

void SetShare(std::istringstream command, CallQueue* queue) {
  std::string model;
  Share share;
  command >> model >> share.most_running >> share.most_waiting >>
      share.priority;
  if (command) queue->SetShare(model, share);
}

void SetSample(std::istringstream command, Samples* samples) {
  std::string model;
  double share = 0;
  command >> model >> share;
  if (command) samples->SetShare(model, share);
}

// Ends the process if it cannot listen.
std::vector<int> ListenOrEnd(const std::string& what, const std::string& host,
                             int* port, Control* control) {
  std::string error;
  std::vector<int> listeners = Listen(host, port, &error);
  if (listeners.empty()) {
    control->Say("error " + what + " cannot listen on " +
                 (host.find(':') == host.npos ? host : "[" + host + "]") + ":" +
                 std::to_string(*port) + ": " + error);
    _exit(1);
  }
  return listeners;
}

[[noreturn]] void Main(const Options& options) {
  Control control(options.Whole("control"));
  int port = options.Whole("port"), rest_port = options.Whole("rest-port");
  const std::vector<int> listeners =
      ListenOrEnd("gRPC", options.Text("host"), &port, &control);
  const std::vector<int> rest_listeners =
      ListenOrEnd("REST", options.Text("host"), &rest_port, &control);

  // Objects of this function live as long as the process.
  grpc::ChannelArguments python_arguments;
  python_arguments.SetMaxReceiveMessageSize(-1);
  python_arguments.SetMaxSendMessageSize(-1);
  grpc::GenericStub python(grpc::CreateCustomChannel(
      options.Text("python"), grpc::InsecureChannelCredentials(),
      python_arguments));
  const int most_bytes = options.Whole("most-bytes");
  std::vector<int> sockets;
  for (const double socket : options.Numbers("lanes")) {
    sockets.push_back(static_cast<int>(socket));
  }
  Lanes lanes(sockets);
  LargeRequests large(static_cast<uint64_t>(most_bytes));
  CallQueue queue({lanes.size(), static_cast<size_t>(options.Whole("queue")),
                   options.Number("call-timeout")},
                  &large,
                  Metrics(options.Numbers("seconds"), options.List("models")),
                  [&lanes](size_t lane, CallQueue::Batch batch) {
                    lanes.Send(lane, std::move(batch));
                  });
  Samples samples;
  Service service(&queue, &samples, &python, static_cast<size_t>(most_bytes));
  ServedSignatures signatures;
  RestCalls rest_calls(&queue, &samples, &signatures,
                       options.Text("python-rest"),
                       static_cast<uint64_t>(most_bytes));
  HttpPort http(
      {static_cast<uint64_t>(most_bytes),
       std::chrono::milliseconds(options.Whole("read-timeout-ms")), kKeepAlive},
      &large, static_cast<size_t>(options.Whole("max-connections")),
      [&rest_calls](std::shared_ptr<HttpExchange> exchange) {
        rest_calls.Handle(std::move(exchange));
      });

  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&service);
  builder.SetMaxReceiveMessageSize(most_bytes);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.AddChannelArgument("grpc.per_message_decompression", 0);  // inflate.h
  builder.SetMaxSendMessageSize(-1);
  builder.AddChannelArgument("grpc.server_handshake_timeout_ms",
                             options.Whole("read-timeout-ms"));
  builder.AddChannelArgument("grpc.max_concurrent_streams",
                             options.Whole("most-streams"));
  builder.AddChannelArgument("grpc.max_connection_idle_ms",
                             options.Whole("idle-ms"));
  const auto credentials = Credentials(options);
  if (!options.Text("tls-key").empty()) {
    if (!CanListen(credentials)) {
      control.Say("error gRPC does not take --tls-key and --tls-certificate");
      _exit(1);
    }
    const std::string why =
        http.UseTls(options.Text("tls-key"), options.Text("tls-certificate"));
    if (!why.empty()) {
      control.Say("error REST does not take --tls-key and --tls-certificate: " +
                  why);
      _exit(1);
    }
  }
  const auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      credentials);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    control.Say("error gRPC does not start");
    _exit(1);
  }

  std::vector<std::thread> threads;
  for (size_t number = 0; number < lanes.size(); ++number) {
    threads.emplace_back([&queue, lane = lanes.lane(number)] {
      lane->Serve(&queue);
      _exit(1);  // the engine has ended, and clients see closed connections
    });
  }
  threads.emplace_back([&lanes] { lanes.SendLarge(); });
  threads.emplace_back([&queue] { queue.RunWaiting(); });
  threads.emplace_back([&queue] {
    for (;;) {
      std::this_thread::sleep_for(kBetweenLooks);
      queue.EndLateCalls();
    }
  });
  threads.emplace_back([&] {
    Accept(listeners, static_cast<size_t>(options.Whole("max-connections")),
           acceptor.get());
  });
  http.Start(rest_listeners);
  control.Say("listening " + std::to_string(port) + " " +
              std::to_string(rest_port) + " " +
              std::to_string(tensorflow::multistream::kFrontFrames));
  for (std::string line; control.Read(&line);) {
    std::istringstream command(line);
    std::string word;
    command >> word;
    if (word == "batch") {
      SetBatching(std::move(command), &queue);
    } else if (word == "share") {
      SetShare(std::move(command), &queue);
    } else if (word == "sample") {
      SetSample(std::move(command), &samples);
    } else if (word == "trace") {
      int traced = 0;
      command >> traced;
      samples.SetTraced(traced != 0);
    } else if (word == "version") {
      signatures.Set(line.substr(line.find(' ')));
    } else if (word == "models") {
      std::string names;
      command >> names;
      queue.SetModels(Split(names));
    } else if (word == "drain") {
      queue.Drain();
    } else if (word == "close") {
      queue.Close();
      service.Close();
      http.Close();
    } else if (word == "stats") {
      control.Say(
          "{\"unsent\": " + std::to_string(service.unsent() + http.unsent()) +
          ", " + queue.Json() + "}");
    }
  }
  _exit(0);
}

}  // namespace
}  // namespace front

int main(int count, char** arguments) {
  // The server in Python says when to end; a signal to both ends it alone.
  signal(SIGINT, SIG_IGN);
  signal(SIGTERM, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  // Debian's Abseil would end the process where two mutexes are locked in two
  // orders, as gRPC may do, and looks for it at each lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  front::Main(front::Options(count, arguments));
}
