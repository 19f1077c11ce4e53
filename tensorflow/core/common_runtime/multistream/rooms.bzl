# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rooms of the runtime, lowest floor first, and which may use which.

A file is in its room's library by being in the folder, a test is run by being called *_test.cc: BUILD
files say only what differs from that.

A room is a folder: a feature, or what features share. What it may use is below it, so that it can be
read, tested and changed without what is above. `hooks`, which puts the runtime into TensorFlow, may
use all of them.

                               hooks
    node_level                graph_level                cuda   emulated
                    capture: pieces
                    capture: replay, variables                serving
                      step
                        capture: fuse
    node_level/policy   capture: which, batches, record
                      ops
                     memory
                     stream
                sanitizer    trace
                      base
"""

load("//build:tensorflow.bzl", "tfms_cc_library", "tfms_cc_test", "tfms_search_test")

_FOLDER = "//tensorflow/core/common_runtime/multistream"

_SHARED = ["base", "sanitizer", "trace", "stream", "memory", "ops"]

_USES = {
    "base": [],
    "sanitizer": ["base"],
    "trace": [],
    "stream": ["base", "sanitizer", "trace"],
    "memory": ["base", "sanitizer", "stream"],
    "ops": ["base", "sanitizer", "trace", "stream", "memory"],
    "capture/which": ["base"],
    "capture/batches": ["base", "capture/which"],
    "capture/record": _SHARED,
    "capture/fuse": ["capture/record"],
    "step": _SHARED + ["capture/record"],
    "capture/variables": _SHARED,
    "capture/replay": _SHARED + ["capture/which", "capture/batches", "capture/record", "capture/variables", "step"],
    "capture/pieces": _SHARED + ["capture/which", "capture/batches", "capture/record", "capture/replay", "step"],
    "graph_level": _SHARED + ["capture/which", "capture/batches", "capture/pieces", "capture/replay", "step"],
    "node_level/policy": ["base"],
    "node_level": _SHARED + ["capture/which", "step", "node_level/policy"],
    "cuda": _SHARED + ["capture/fuse", "capture/record", "step"],
    "emulated": _SHARED + ["capture/fuse", "capture/record", "step"],
    "serving": ["base", "memory", "ops", "capture/which", "capture/batches", "step"],
}

def _users_of(room):
    """The visibility of a room's targets: the rooms that use it, the programs' interface, tests' parts.

    Args:
      room: its folder.
    """
    rooms = [user for user in _USES if room in _USES[user]] + ["hooks", "testing", "testing/search"]
    return [_FOLDER + ":__pkg__"] + ["%s/%s:__pkg__" % (_FOLDER, user) for user in rooms if user != room]

def room(
        name,
        exclude = [],
        deps = [],
        copts = [],
        fixtures = [],
        tests = {},
        tsan_tests = [],
        runtime_tests = {}):
    """A room: a library of the folder's files, with the rooms of `_USES` below it, and its tests.

    Test code is what is called *_test.cc (a test by itself; *_search_test.cc one of --config=search),
    *_test_library.cc, *_fixture.h or .cc, and fake_*.

    Args:
      name: the folder's last name, and the library's.
      exclude: files that are in targets of their own, or in none.
      deps: of the library, beside the rooms below.
      copts: of the library, beside the usual ones.
      fixtures: what tests include, beside what its name tells.
      tests: attributes of tests that have others than the usual ones.
      tsan_tests: those to run also under ThreadSanitizer.
      runtime_tests: those that link the whole runtime: the environment of each.
    """
    room = native.package_name()[len(_FOLDER) - 1:]
    shared = fixtures + native.glob(
        ["*_fixture.h", "*_fixture.cc", "fake_*.h", "fake_*.cc"],
        exclude = exclude + ["*_test_library.cc"],
        allow_empty = True,
    )
    made = {file[:-len(".cc")]: {} for file in native.glob(["*_test.cc"], exclude = exclude, allow_empty = True)}
    made.update({test: {"env": env} for test, env in runtime_tests.items()})
    made.update({
        test: dict(made.get(test, {}), **attributes)
        for test, attributes in tests.items()
        if test + ".cc" not in exclude
    })
    not_library = exclude + shared + ["*_test.cc", "*_test_library.cc"]
    tfms_cc_library(
        name = name,
        srcs = native.glob(["*.cc"], exclude = not_library, allow_empty = True),
        hdrs = native.glob(["*.h"], exclude = not_library),
        copts = copts,
        visibility = _users_of(room),
        deps = ["%s/%s" % (_FOLDER, below) for below in _USES.get(room, _USES.keys())] + deps,
    )
    tfms_cc_library(
        name = "fixtures",
        testonly = True,
        srcs = [file for file in shared if file.endswith(".cc")],
        hdrs = [file for file in shared if file.endswith(".h")],
        visibility = [_FOLDER + ":__subpackages__"],
        deps = [":" + name, _FOLDER + "/testing"],
    )
    for test, attributes in made.items():
        of_test = attributes.pop("deps", []) + [":fixtures"]
        if test in runtime_tests:
            of_test.append(_FOLDER + ":runtime")
        if test.endswith("_search_test"):
            tfms_search_test(name = test, deps = of_test + [_FOLDER + "/testing/search:late"], **attributes)
        else:
            tfms_cc_test(
                name = test,
                tags = ["tsan"] if test in tsan_tests else [],
                deps = of_test,
                **attributes
            )
