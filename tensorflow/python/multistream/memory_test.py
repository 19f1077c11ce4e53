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
"""Memory of stream groups: what happens when a group has none.

Each test runs in a process of its own, with the helpers of pinned_test.py.
"""

import textwrap

from multistream import pinned_test as base

HELPERS = """
@tf.function
def tiles(row, megabytes):
    with tf.device(GPU):
        row = tf.tanh(row)
        with tf.cuda.stream_scope(tf.cuda.get_stream(2)):
            return tf.reduce_sum(tf.tile(row, tf.stack([megabytes, 1])))

row = tf.ones([1, 1 << 18])  # 1 MiB
fill = lambda megabytes: tiles(row, tf.constant(megabytes))

def in_use():
    return [s.bytes_in_use for s in tf.cuda.stream_stats()]

def settled(before):
    # Less if `before` still had what a stream has let go of since.
    return eventually(lambda: all(now <= then for now, then in zip(in_use(), before)))
"""


def run(code: str, **environment: str) -> None:
    """Runs code after HELPERS in a process with four groups."""
    base.run(HELPERS + textwrap.dedent(code), **environment)


def test_a_group_without_memory_fails_alone() -> None:
    """The error names the group, others go on, and the step's memory comes back."""
    run("""
        one = fill(1).numpy()
        expected = f(x).numpy()
        before = in_use()
        limit = tf.cuda.stream_stats()[2].bytes_limit
        check(0 < limit < 1 << 31, f"limit {limit}")

        def tenant(i):
            def calls():
                with tf.cuda.stream_group(i):
                    for _ in range(STEPS):
                        check((f(x).numpy() == expected).all(), f"group {i}")
            return calls

        def greedy():
            with tf.cuda.stream_group(2):
                for _ in range(3):
                    try:
                        fill(1 << 12)
                        check(False, "no error")
                    except tf.errors.ResourceExhaustedError as error:
                        text = str(error)
                        check("Stream group 2 of GPU 0 had no 4.00GiB: 1.00MiB" in text, text)
                        check("of at most" in text and "group 1" not in text, text)
                    check(fill(1).numpy() == one, "small again")

        run_threads([tenant(1), greedy, tenant(3), tenant(2)])
        check(settled(before), f"memory {in_use()} {before}")
        check([s.steps_failed for s in tf.cuda.stream_stats()] == [0, 0, 3, 0], "failed")
    """)


def test_a_node_without_memory_fails_its_step() -> None:
    """At node level, too, the error names the node's group, and the next step runs."""
    run(
        """
        one = fill(1).numpy()
        before = in_use()
        for _ in range(3):
            try:
                fill(1 << 12)
                check(False, "no error")
            except tf.errors.ResourceExhaustedError as error:
                text = str(error)
                check("Stream group 2 of GPU 0 had no 4.00GiB" in text, text)
                check("group 0" not in text, text)
            check(fill(1).numpy() == one, "again")
        check(settled(before), f"memory {in_use()} {before}")
        """,
        TF_NODE_LEVEL_MULTISTREAM="true",
    )
