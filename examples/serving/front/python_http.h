// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0

// Has the HTTP server in Python answer a request, by a connection of its own.

#ifndef EXAMPLES_SERVING_FRONT_PYTHON_HTTP_H_
#define EXAMPLES_SERVING_FRONT_PYTHON_HTTP_H_

#include <memory>
#include <string>

#include "examples/serving/front/http_connection.h"

namespace front {

// `socket` is the file that the server listens on. `sampled` tells it whether
// the request is of the share of samples (samples.h): "1", "0", or nothing.
void AskPython(std::shared_ptr<HttpExchange> exchange,
               const std::string& socket, const std::string& sampled);

}  // namespace front

#endif  // EXAMPLES_SERVING_FRONT_PYTHON_HTTP_H_
