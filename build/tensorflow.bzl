# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules for C++ that builds against TensorFlow's wheel.

    tfms_cc_library   a part of the runtime, compiled against TensorFlow's headers
    tfms_cc_runtime   the runtime itself: a shared library to be loaded before TensorFlow's
    tfms_cc_binary    a program; `runtime` makes it load the runtime first
    tfms_cc_test      a GoogleTest; likewise
"""

load("@tensorflow//:stock.bzl", "STOCK")

# Also how the precompiled header is compiled.
COPTS = [
    "-Wall",
    # TensorFlow's own sources still use what its headers call deprecated.
    "-Wno-deprecated-declarations",
    "-Wno-sign-compare",
]

# build/BUILD.bazel's precompiled headers, for all but the sanitizers' builds.
_PRECOMPILED = "tensorflow_headers"
_PRECOMPILED_FOR_TESTS = "tensorflow_test_headers"

# --config=search puts the runtime's locks and atomics into a scheduler's hands: before each source
# comes the header that does so, after the precompiled one.
_SEARCH = "//tensorflow/core/common_runtime/multistream/testing/search"
_SEAM = "tensorflow/core/common_runtime/multistream/testing/search/seam.h"

# Of tests, whose code takes longer to optimize than to run.
TEST_COPTS = [
    "-O0",
    # It needs an optimizer.
    "-U_FORTIFY_SOURCE",
]

def tfms_copts(copts = []):
    """The compiler options of all C++ that includes TensorFlow's headers, but of tests.

    What changes how headers are read keeps a target from the precompiled one.
    """
    return COPTS + _include(_PRECOMPILED) + copts

def _include(precompiled, copts = []):
    return select({
        "//build:every_header_by_itself": [],
        "//conditions:default": copts + ["-Winvalid-pch", "-include", "$(BINDIR)/build/%s/%s.h" % (precompiled, precompiled)],
    }) + select({
        "//build:search": ["-include", _SEAM],
        "//conditions:default": [],
    })

def _headers(precompiled = _PRECOMPILED):
    return ["@tensorflow//:headers"] + select({
        "//build:every_header_by_itself": [],
        "//conditions:default": ["//build:" + precompiled],
    }) + select({
        "//build:search": [_SEARCH + ":seam"],
        "//conditions:default": [],
    })

# Position in a link decides which library's function wins, so every library
# named stays, whether or not the linker sees a use of it.
_KEEP_ALL = ["-Wl,--no-as-needed"]

_MISSING_SYMBOLS = ["//tensorflow/core/common_runtime/multistream/base:missing_symbols"]

_TENSORFLOW_LIBRARIES = [
    "@tensorflow//:cc",
    "@tensorflow//:framework",
]

# What eager/context.h needs beside TensorFlow's headers.
TFMS_EAGER_CONTEXT = "//third_party/farmhash"

def tfms_attached(symbols, hooks):
    """How the runtime gets into TensorFlow, a list of targets.

    `symbols` defines functions in TensorFlow's place; with --config=source TensorFlow calls `hooks`.
    """
    return select({
        "//build:source": [hooks],
        "//conditions:default": [symbols],
    })

def tfms_with_cuda(with_cuda, without):
    """One of both: 2.13, whose StreamExecutor is another, has stream groups of emulated GPUs only."""
    return with_cuda if STOCK["version"] >= "2.14" else without

def tfms_cc_library(name, deps = [], copts = [], **kwargs):
    """A static library, as cc_library, with TensorFlow's headers. Its users, not it, link TensorFlow."""
    native.cc_library(
        name = name,
        copts = tfms_copts(copts),
        deps = deps + _headers(),
        # Factories register themselves: keep objects that nobody refers to.
        alwayslink = True,
        linkstatic = True,
        **kwargs
    )

def tfms_cc_runtime(name, deps, exported_symbols, hdrs = [], **kwargs):
    """The runtime: lib<name>.so for the wheel, and <name> for programs to depend on.

    The shared library finds TensorFlow's beside itself ($ORIGIN) and needs both of them. The version
    script `exported_symbols` lists all that it exports; `hdrs` are public headers.
    """
    shared = "lib%s.so" % name
    libraries = [
        "@tensorflow//:lib/libtensorflow_cc.so.2",
        "@tensorflow//:lib/libtensorflow_framework.so.2",
    ]
    native.cc_binary(
        name = shared,
        additional_linker_inputs = [exported_symbols] + libraries,
        linkopts = _KEEP_ALL + ["$(execpath %s)" % library for library in libraries] + [
            "-Wl,--version-script=$(execpath %s)" % exported_symbols,
            "-Wl,-rpath,'$$ORIGIN'",
            "-Wl,-soname,%s" % shared,
            "-Wl,-z,defs",
        ],
        linkshared = True,
        deps = deps + _MISSING_SYMBOLS,
        **kwargs
    )
    native.cc_import(
        name = name + "_import",
        shared_library = ":" + shared,
    )
    native.cc_library(
        name = name,
        hdrs = hdrs,
        deps = [":" + name + "_import"],
        **kwargs
    )

def tfms_cc_binary(name, deps = [], runtime = None, copts = [], linkopts = [], **kwargs):
    """A program, as cc_binary; `runtime` names a tfms_cc_runtime to be loaded before TensorFlow."""
    native.cc_binary(
        name = name,
        copts = tfms_copts(copts),
        linkopts = _KEEP_ALL + linkopts,
        deps = _linked(deps, runtime),
        **kwargs
    )

def tfms_cc_test(name, srcs = None, size = "small", deps = [], runtime = None, copts = [], linkopts = [], **kwargs):
    """A test with GoogleTest's own main, of <name>.cc; otherwise as tfms_cc_binary and cc_test."""
    native.cc_test(
        name = name,
        size = size,
        srcs = srcs or [name + ".cc"],
        copts = COPTS + _include(_PRECOMPILED_FOR_TESTS, TEST_COPTS) + copts,
        linkopts = _KEEP_ALL + linkopts + ["-lgtest_main", "-lgtest", "-lpthread"],
        linkstatic = True,
        deps = _linked(deps, runtime, _PRECOMPILED_FOR_TESTS) + select({
            "//build:tsan": ["//tensorflow/core/common_runtime/multistream/testing:tsan_locks"],
            "//conditions:default": [],
        }),
        **kwargs
    )

def tfms_search_test(name, **kwargs):
    """A test of --config=search, which other builds leave out (.bazelrc)."""
    tfms_cc_test(
        name = name,
        tags = ["search"],
        **kwargs
    )

def _linked(deps, runtime, precompiled = _PRECOMPILED):
    before = [runtime] if runtime else []

    # Before TensorFlow's libraries, whose symbols the linker else takes for its own.
    scheduler = select({
        "//build:search": [_SEARCH + ":scheduler"],
        "//conditions:default": [],
    })
    return deps + scheduler + _MISSING_SYMBOLS + before + _TENSORFLOW_LIBRARIES + _headers(precompiled)
