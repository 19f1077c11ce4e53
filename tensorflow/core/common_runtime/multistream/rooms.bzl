# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The rooms of the runtime, lowest floor first, and which may use which.

A room is a folder: a feature, or what features share. What it may use is below it, so that it can be
read, tested and changed without what is above. `hooks`, which puts the runtime into TensorFlow, may
use all of them.

                               hooks
    node_level                graph_level                cuda   emulated
                    capture: replay, variables
                      step                                    serving
    node_level/policy   capture: which, batches, record
                      ops
                     memory
                     stream
                sanitizer    trace
                      base
"""

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
    "step": _SHARED + ["capture/record"],
    "capture/variables": _SHARED,
    "capture/replay": _SHARED + ["capture/which", "capture/batches", "capture/record", "capture/variables", "step"],
    "graph_level": _SHARED + ["capture/which", "capture/batches", "capture/replay", "step"],
    "node_level/policy": ["base"],
    "node_level": _SHARED + ["capture/which", "step", "node_level/policy"],
    "cuda": _SHARED + ["capture/record", "step"],
    "emulated": _SHARED + ["capture/record", "step"],
    "serving": ["base"],
}

def users_of(room):
    """The visibility of a room's targets.

    Args:
      room: its folder.

    Returns:
      The packages that may use it: the rooms that say so here, the programs' interface and what tests
      share. A test may use what its room may, and the runtime as a whole.
    """
    rooms = [user for user in _USES if room in _USES[user]] + ["hooks", "testing", "testing/search"]
    return [_FOLDER + ":__pkg__"] + ["%s/%s:__pkg__" % (_FOLDER, user) for user in rooms if user != room]
