# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the repository @system_grpc: the system's gRPC for C++, linked statically.

    @system_grpc//:grpc    grpc++ and protobuf-lite, as pkg-config says

What links it runs on machines that have no gRPC. It must not share a process with TensorFlow, which has
a gRPC and an Abseil of its own.
"""

# Of the C library, which stays shared.
_SHARED = ["-lpthread", "-ldl", "-lm", "-lrt", "-latomic"]

# libsystemd, which has no static library. gRPC itself does not call it.
_LEFT_OUT = ["-lsystemd"]

_BUILD = """
cc_library(
    name = "grpc",
    linkopts = [
        "-Wl,-Bstatic",
        "-Wl,--start-group",
        {libraries}
        "-Wl,--end-group",
        "-Wl,-Bdynamic",
        "-lpthread",
        "-ldl",
        "-lm",
        "-lrt",
    ],
    visibility = ["//visibility:public"],
)
"""

def _system_grpc_impl(repository_ctx):
    result = repository_ctx.execute(
        ["pkg-config", "--static", "--libs-only-l", "grpc++", "protobuf-lite"],
    )
    if result.return_code:
        fail("\n\nThe system has no gRPC for C++ to build the model server's front with. Install it:\n" +
             "apt-get install pkgconf libgrpc++-dev libprotobuf-dev rapidjson-dev libboost-dev\n" +
             result.stderr)
    libraries = []
    for word in result.stdout.strip().split(" "):
        if word.startswith("-l") and word not in _SHARED + _LEFT_OUT + libraries:
            libraries.append(word)
    repository_ctx.file("BUILD.bazel", _BUILD.format(
        libraries = "\n        ".join(["\"%s\"," % word for word in libraries]),
    ))

system_grpc = repository_rule(
    implementation = _system_grpc_impl,
    environ = ["PATH", "PKG_CONFIG_PATH"],
    local = True,
    configure = True,
)
