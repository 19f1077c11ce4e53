# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""The rooms of the runtime, lowest floor first, and which may use which.

A room is a folder. What it may use is below it, so that it can be read, tested and changed without
what is above. `attach`, which puts the runtime into TensorFlow, may use all of them.

                       attach
    executor       cuda        emulated
         step
    plan    memory
             stream
        config     sanitizer    trace
    policy                     serving
                util
"""

_FOLDER = "//tensorflow/core/common_runtime/multistream"

_USES = {
    "util": [],
    "policy": ["util"],
    "config": ["util", "policy"],
    "sanitizer": ["util"],
    "trace": [],
    "stream": ["util", "config", "sanitizer", "trace"],
    "memory": ["util", "config", "sanitizer", "stream"],
    "plan": ["util", "policy", "config"],
    "step": ["util", "config", "sanitizer", "trace", "stream", "memory", "plan"],
    "executor": ["util", "policy", "config", "trace", "stream", "plan", "step"],
    "cuda": ["util", "config", "stream", "memory", "step"],
    "emulated": ["util", "config", "trace", "stream", "memory", "step"],
    "serving": ["util", "config"],
}

def users_of(room):
    """The visibility of a room's targets.

    Args:
      room: its folder.

    Returns:
      The packages that may use it: the rooms that say so here, the programs' interface and what tests
      share. A test may use what its room may, and the runtime as a whole.
    """
    rooms = [user for user in _USES if room in _USES[user]] + ["attach", "testing", "testing/search"]
    return [_FOLDER + ":__pkg__"] + ["%s/%s:__pkg__" % (_FOLDER, user) for user in rooms if user != room]
