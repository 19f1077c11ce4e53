# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the repository @tensorflow from TensorFlow's stock wheel.

    @tensorflow//:headers      the wheel's headers, with the include paths that they need
    @tensorflow//:framework    libtensorflow_framework.so.2
    @tensorflow//:cc           libtensorflow_cc.so.2
    @tensorflow//:tensorflow   all three
    @tensorflow//:wheel        the stock wheel's file
    @tensorflow//:patched      the Python files that the series changes, changed
    @tensorflow//:stock.bzl    STOCK: the wheel's version and tag, and a Python to run build tools
"""

_TOOLS = [
    "build_error.py",
    "elf.py",
    "interface_library.py",
    "patch_series.py",
    "releases.py",
    "stock_wheel.py",
]

_LIBRARIES = ["libtensorflow_cc", "libtensorflow_framework"]

def _tensorflow_repository_impl(repository_ctx):
    # Asking for a label's path makes the repository depend on the file, so ask
    # for all of them before the long work: Bazel starts over after each.
    release = repository_ctx.os.environ.get("TFMS_RELEASE", "") or repository_ctx.attr.release
    series = repository_ctx.path(Label("//patches:%s/series" % release))
    tools = {tool: repository_ctx.path(Label("//build:" + tool)) for tool in _TOOLS}
    for line in repository_ctx.read(series).splitlines():
        folder, _, name = line.split("#")[0].strip().rpartition("/")
        owner = folder[len("../"):] or release  # A patch of another release is ../2.21.0/NAME.
        if name and series.dirname.dirname.get_child(owner).get_child(name).exists:
            repository_ctx.path(Label("//patches:%s/%s" % (owner, name)))

    python = repository_ctx.which("python3")
    if not python:
        fail("python3 is not on the PATH. Install it: apt-get install python3 python3-pip.")

    repository_ctx.report_progress("getting TensorFlow's stock wheel")
    tag = repository_ctx.os.environ.get("TFMS_PYTHON", "")
    result = repository_ctx.execute(
        [python, tools["stock_wheel.py"], "prepare"] +
        ["--python=" + tag, "--release=" + release, "--patches=%s" % series.dirname, "--out=."],
        timeout = 3600,
    )
    if result.return_code:
        fail("\n\n" + result.stderr)

    # Beside the libraries: Bazel tells a program to look for those there.
    for library in _LIBRARIES:
        result = repository_ctx.execute([
            python,
            tools["interface_library.py"],
            "--library=lib/%s.so.2" % library,
            "--out=lib/%s.ifso" % library,
        ])
        if result.return_code:
            fail("\n\n" + result.stderr)

    stock = repository_ctx.read("stock.json")
    repository_ctx.file("stock.bzl", "STOCK = " + stock, executable = False)
    repository_ctx.symlink(repository_ctx.attr._build_file, "BUILD.bazel")

tensorflow_repository = repository_rule(
    implementation = _tensorflow_repository_impl,
    attrs = {
        "release": attr.string(
            mandatory = True,
            doc = "The release to build from, unless TFMS_RELEASE names another.",
        ),
        "_build_file": attr.label(default = "//third_party:tensorflow.BUILD"),
    },
    environ = [
        "HOME",
        "PATH",
        "TFMS_CACHE",
        "TFMS_PYTHON",
        "TFMS_RELEASE",
        "XDG_CACHE_HOME",
    ],
    doc = "TensorFlow's stock wheel, verified, unpacked and patched.",
)
