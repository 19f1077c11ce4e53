// Copyright 2026 The Multi-Stream TensorFlow Authors.
// SPDX-License-Identifier: Apache-2.0
// The same for tests, which are compiled with other options.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include "build/tensorflow_headers.h"
#include "tensorflow/cc/framework/scope.h"
