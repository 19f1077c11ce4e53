# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Memory of stream groups: each group's share, and what happens when a group has no more."""

import textwrap

import pytest

from multistream.testing import kit

HELPERS = """
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("GPU")[0],
    [tf.config.LogicalDeviceConfiguration(memory_limit=256)])

x = tf.constant([[1.0, 2.0], [3.0, 4.0]])

@tf.function
def f(x):
    with tf.device(GPU):
        return tf.linalg.matmul(tf.tanh(x), x)

@tf.function
def tiles(row, megabytes):
    with tf.device(GPU):
        row = tf.tanh(row)
        with tf.cuda.stream_scope(tf.cuda.get_stream(2)):
            return tf.reduce_sum(tf.tile(row, tf.stack([megabytes, 1])))

row = tf.ones([1, 1 << 18])  # 1 MiB
fill = lambda megabytes: tiles(row, tf.constant(megabytes))
one = fill(1).numpy()

def needs(group, megabytes):
    with tf.cuda.stream_group(group):
        return fill(megabytes).numpy()

# The error of a call that finds no memory.
def no_memory(function, *arguments):
    try:
        function(*arguments)
    except tf.errors.ResourceExhaustedError as error:
        return str(error)
    return "no error"

def in_use():
    return [s.bytes_in_use for s in tf.cuda.stream_stats()]

def settled(before):
    # Less if `before` still had what a stream has released since.
    return eventually(lambda: all(now <= then for now, then in zip(in_use(), before)))
"""


def run(code: str, **environment: str) -> None:
    """Runs code after HELPERS in a process with four groups, and 256 MiB in all."""
    kit.run_checks(HELPERS + textwrap.dedent(code), groups=4, **environment)


def test_a_group_without_memory_fails_alone() -> None:
    """The error names the group and its share; others go on, and the step's memory is freed."""
    run(
        r"""
        import re
        expected = f(x).numpy()
        for group in range(4):  # the first step of a group leaves scratch memory on a GPU
            with tf.cuda.stream_group(group):
                f(x)
        before = in_use()
        check(np.isclose(needs(2, 50), 50 * one), "its share")
        check(settled(before), f"memory {in_use()} {before}")

        def tenant(i):
            def calls():
                with tf.cuda.stream_group(i):
                    for _ in range(STEPS):
                        check((f(x).numpy() == expected).all(), f"group {i}")
            return calls

        def greedy():
            for _ in range(3):
                text = no_memory(needs, 2, 150)  # the other quarters are free
                # The row's copy, and tanh's output unless it reused the copy's memory.
                # It does if the copy has released it by then, as in stock TensorFlow.
                own = r"Stream group 2 of GPU 0 had no 150.00MiB: [12].00MiB in use,"
                check(re.search(own + " of at most 64.00MiB", text), text)
                check("group 1" not in text, text)
                check(needs(2, 1) == one, "small again")

        run_threads([tenant(1), greedy, tenant(3), tenant(2)])
        check(settled(before), f"memory {in_use()} {before}")
        check([s.steps_failed for s in tf.cuda.stream_stats()] == [0, 0, 3, 0], "failed")
    """,
        TF_MULTI_STREAM_CAPTURE="off",
    )  # recordings have memory of their own


def test_a_node_without_memory_fails_its_step() -> None:
    """At node level, too, the error names the node's group, and the next step runs."""
    run(
        """
        before = in_use()
        for _ in range(3):
            text = no_memory(fill, 1 << 12)
            check("Stream group 2 of GPU 0 had no 4.00GiB" in text, text)
            check("group 0" not in text, text)
            check(fill(1).numpy() == one, "again")
        check(settled(before), f"memory {in_use()} {before}")
        """,
        TF_NODE_LEVEL_MULTISTREAM="true",
    )


RECORDED = """
SIZE = 3 << 20  # 12 MiB

@tf.function(autograph=False)
def recorded(x):
    with tf.device(GPU):
        return tf.reduce_sum(tf.exp(x) * x + tf.tanh(x))

# All of its values at once.
@tf.function(autograph=False)
def sum_of(value, count):
    with tf.device(GPU):
        values = [tf.fill([SIZE], value + i) for i in range(count)]
        with tf.control_dependencies(values):
            return tf.add_n([tf.reduce_max(v) for v in values])

with tf.device(GPU):
    large = tf.fill([SIZE], 0.5)
    expected = recorded(large).numpy()

def use(group):
    with tf.cuda.stream_group(group), tf.device(GPU):
        for _ in range(20):
            check(recorded(large).numpy() == expected, f"group {group}")

def greedy(group, count):
    with tf.cuda.stream_group(group), tf.device(GPU):
        total = sum_of(tf.constant(1.0), count).numpy()
        check(total == count * (count + 1) / 2, f"{count} values: {total}")

def recordings():
    return [s.recordings for s in tf.cuda.stream_stats()]
"""


def test_recordings_are_given_back_to_a_step_that_needs_the_memory() -> None:
    run(
        RECORDED
        + """
use(2)
use(3)
check(recordings() == [0, 0, 1, 1], f"recorded {recordings()}")
check(tf.cuda.stream_stats()[2].recording_bytes > 20 << 20, f"{tf.cuda.stream_stats()[2]}")
greedy(2, 3)
check(recordings() == [0, 0, 0, 1], f"the group's recordings are given back: {recordings()}")
use(2)
use(3)
check(recordings() == [0, 0, 0, 1], f"others are left: {recordings()}")
why = "its recording was dropped, as its stream group ran out of memory"
check(any(c.end == why for c in tf.cuda.capture_report().counts), "the reason")
check(no_memory(greedy, 3, 8) != "no error", "no error")
check(recordings() == [0, 0, 0, 0], "all was tried")
use(3)
""",
        TF_MULTI_STREAM_CAPTURE="auto",
    )


def test_recordings_of_all_groups_are_given_back_to_a_pool() -> None:
    run(
        RECORDED
        + """
for group in range(4): use(group)
check(recordings() == [1, 1, 1, 1], f"recorded {recordings()}")
greedy(1, 14)
check(recordings() == [0, 0, 0, 0], f"given back {recordings()}")
for group in range(4): use(group)
""",
        TF_MULTI_STREAM_CAPTURE="auto",
        TF_GPU_STREAM_GROUP_SHARE_MEM_POOL="true",
    )


@pytest.mark.parametrize(
    "switch", ["TF_GPU_STREAM_GROUP_SHARE_MEM_POOL", "TF_GPU_STREAM_AWARE_BFC"]
)
def test_a_pool_gives_memory_to_who_needs_it(switch: str) -> None:
    """One group may use nearly all memory; the next group reuses the memory after a wait."""
    run(
        """
        for group in (2, 0, 3, 2):
            check(np.isclose(needs(group, 200), 200 * one), f"group {group}")
        stats = tf.cuda.stream_stats()
        check(all(s.bytes_limit == s.bytes_reserved == 256 << 20 for s in stats), "limit")
        check(sum(s.waits for s in stats) >= 3, f"waits {stats}")
        check([s.peak_bytes_in_use >> 20 for s in stats][2] >= 200, "peak")
        text = no_memory(needs, 1, 300)
        check("Stream group 1 of GPU 0 had no 300.00MiB" in text, text)
        check("of at most 256.00MiB by all groups together" in text, text)
        check(np.isclose(needs(1, 200), 200 * one), "after the error")
        """,
        **{switch: "true", "TF_FORCE_GPU_ALLOW_GROWTH": "false"},
    )


def test_a_pool_under_load_is_never_shared_by_two() -> None:
    """Many threads make tensors of all sizes: results are right, and the memory is freed."""
    run(
        """
        sizes = [1, 3, 7, 12, 20, 31]
        expected = {n: fill(n).numpy() for n in sizes}
        before = in_use()

        def client(thread):
            for step in range(STEPS // 4):
                n = sizes[(thread + step) % len(sizes)]
                check(fill(n).numpy() == expected[n], f"{n} MiB")

        run_clients(client)
        check(settled(before), f"memory {in_use()} {before}")
        """,
        TF_GPU_STREAM_AWARE_BFC="true",
        TF_FORCE_GPU_ALLOW_GROWTH="true",
        TF_NODE_LEVEL_MULTISTREAM="true",
    )


def test_a_stream_aware_pool_stays_near_what_one_stream_needs() -> None:
    """Calls in turn on four groups take at most 1.1 times the memory of one stream's peak."""
    program = """
@tf.function
def keeps_all(x):
    with tf.device(GPU):
        kept = [x]
        for _ in range(12): kept.append(tf.tanh(kept[-1]) * 1.5)
        return tf.reduce_sum(tf.concat(kept, 0))

x = tf.random.stateless_normal([1024, 1024], seed=(1, 2))
results = {keeps_all(x).numpy() for _ in range(20)}
check(len(results) == 1, f"results {results}")
stats = tf.cuda.stream_stats()
check(len(stats) <= 1 or all(s.steps_started >= 5 for s in stats), f"groups {stats}")
print("result", float(results.pop()))
print("reserved", stats[0].bytes_reserved if POOL else sum(s.bytes_reserved for s in stats))
# A GPU with one group is TensorFlow's own device.
print("peak", stats[0].peak_bytes_in_use if stats
      else tf.config.experimental.get_memory_info("GPU:0")["peak"])
"""

    def figures(groups: int, pool: bool) -> dict[str, float]:
        variables = {"TF_FORCE_GPU_ALLOW_GROWTH": "true", "TF_MULTI_STREAM_CAPTURE": "off"}
        if pool:
            variables["TF_GPU_STREAM_AWARE_BFC"] = "true"
        out = kit.run_checks(f"POOL = {pool}\n" + program, groups=groups, **variables)
        lines = (line.split(" ") for line in out.splitlines())
        return {line[0]: float(line[1]) for line in lines if line[0] in "result reserved peak"}

    one, even, aware = figures(1, False), figures(4, False), figures(4, True)
    assert one["result"] == even["result"] == aware["result"]
    assert aware["reserved"] <= 1.1 * one["peak"]
    assert even["reserved"] >= 3 * one["peak"]


def test_groups_have_pinned_memory_of_their_own() -> None:
    """Feeds of a session go through its group's pinned memory, if the variable asks for it."""
    code = """
with tf.Graph().as_default(), tf.device(GPU):
    fed = tf1.placeholder(tf.float32, [256, 256])
    out = tf.linalg.matmul(tf.tanh(fed), fed)
    with tf1.Session() as session:
        for group in (1, 3):
            with tf.cuda.stream_group(group):
                value = np.random.RandomState(group).randn(256, 256).astype(np.float32)
                session.run(out, {fed: value})
peaks = [s.peak_host_bytes_in_use for s in tf.cuda.stream_stats()]
check([p > 0 for p in peaks] == OWN, f"peaks {peaks}")
check(eventually(lambda: not any(s.host_bytes_in_use for s in tf.cuda.stream_stats())), "in use")
"""
    kit.run_checks("OWN = [False] * 4\n" + code)
    kit.run_checks("OWN = [False, True, False, True]\n" + code, TF_PER_STREAM_HOST_ALLOCATOR="true")


def test_groups_have_priorities_and_contexts() -> None:
    """The statistics show each group's priority, and the contexts, which groups take in turn."""
    kit.run_checks(
        """
        tf.constant(1.0)
        check([s.priority for s in tf.cuda.stream_stats()] == [-1, 0, 0, -2], "priorities")
        check([s.executor for s in tf.cuda.stream_stats()] == [0, 1, 2, 3], "executors")
        check([s.context for s in tf.cuda.stream_stats()] == [0, 1, 2, 0], "contexts")
        """,
        TF_GPU_STREAM_GROUP_PRIORITIES="-1,0,0,-2",
        TF_GPU_CONTEXT_COUNT="3",
    )
