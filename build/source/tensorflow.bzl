# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rules of //build:tensorflow.bzl, for TensorFlow's own source tree.

`scripts/build_from_source.sh` lays this file where the wheel build has its own of the same names, so
that the runtime's BUILD files are the same in both. There the runtime is a part of TensorFlow: it
depends on TensorFlow's targets, and what tests it is left to the wheel build. The other file says what
the arguments are; those that only the wheel build needs are not used here.
"""

# Which repository third_party/xla is, in this tree.
load("//build:xla.bzl", "XLA")

COPTS = [
    "-Wno-deprecated-declarations",
    "-Wno-sign-compare",
]

TEST_COPTS = []

# TensorFlow's own targets for the headers that the runtime includes. Bazel
# wants only that each header comes with one of them, or with what they need.
_TENSORFLOW = [
    "//tensorflow/c:c_api",
    "//tensorflow/c/eager:c_api",
    "//tensorflow/core:core_cpu",
    "//tensorflow/core:core_cpu_internal",
    "//tensorflow/core:direct_session_internal",
    "//tensorflow/core:framework",
    "//tensorflow/core:framework_internal",
    "//tensorflow/core:lib",
    "//tensorflow/core:lib_internal",
    "//tensorflow/core:protos_all_cc",
    "//tensorflow/core/common_runtime/gpu:gpu_runtime",
    "//tensorflow/core/grappler/clusters:utils",
    "//tensorflow/core/kernels:gpu_utils",
    "//tensorflow/core/platform:stream_executor",
    "//tensorflow/core/util/autotune_maps:conv_parameters",
    "@com_google_absl//absl/container:flat_hash_map",
    "@com_google_absl//absl/container:flat_hash_set",
    "@com_google_absl//absl/functional:function_ref",
    "@com_google_absl//absl/status",
    "@com_google_absl//absl/status:statusor",
    "@com_google_absl//absl/strings",
    "@com_google_absl//absl/synchronization",
    "@local_config_cuda//cuda:cuda_headers",
    XLA + "//xla/stream_executor:executor_cache",
    XLA + "//xla/stream_executor/cuda:cuda_context",
    XLA + "//xla/stream_executor/cuda:cuda_status",
    XLA + "//xla/stream_executor/gpu:context_map",
    XLA + "//xla/stream_executor/gpu:gpu_init",
]

# What eager/context.h needs beside TensorFlow's headers.
TFMS_EAGER_CONTEXT = "//tensorflow/core/common_runtime/eager:context"

def tfms_attached(symbols, hooks):
    """How the runtime gets into TensorFlow: a list of targets."""
    return [hooks]

def tfms_with_cuda(with_cuda, without):
    """What differs where the runtime has no stream groups of CUDA GPUs: it has, here."""
    return with_cuda

def tfms_copts(copts = []):
    """The compiler options of all C++ that includes TensorFlow's headers."""
    return COPTS + ["-DGOOGLE_CUDA=1"] + copts

def tfms_cc_library(name, deps = [], copts = [], **kwargs):
    """A part of the runtime."""
    native.cc_library(
        name = name,
        copts = tfms_copts(copts),
        deps = deps + _TENSORFLOW,
        # Hooks and factories register themselves: keep objects that nobody refers to.
        alwayslink = True,
        **kwargs
    )

def tfms_cc_runtime(name, deps, exported_symbols, hdrs = [], **kwargs):
    """The runtime for programs to depend on; TensorFlow's libraries have it."""
    native.cc_library(
        name = name,
        hdrs = hdrs,
        deps = deps,
        **kwargs
    )

def tfms_cc_binary(name, deps = [], runtime = None, copts = [], linkopts = [], **kwargs):
    """A program against the wheel: none here."""

def tfms_cc_test(name, srcs = None, size = "small", deps = [], runtime = None, copts = [], linkopts = [], **kwargs):
    """A test against the wheel: none here."""

def tfms_search_test(name, **kwargs):
    """A test of --config=search: none here."""
