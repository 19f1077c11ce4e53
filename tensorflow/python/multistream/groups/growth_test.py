# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps and sessions that come and go leave the process's memory and threads where they were.

TFMS_TEST_SESSIONS and TFMS_TEST_SESSION_STEPS scale the test up, to 1,000 sessions of 1,000 steps,
say; with TFMS_TEST_GROUPS=1 the steps are stock TensorFlow's. The test measures the bytes that
malloc has handed out and not got back, without fragmentation. The first part of the sessions is
a warm-up: threads cache freed memory, and pools grow to their largest. The limit is below 1 kB a
step and 100 kB a session.
"""

import os
from pathlib import Path

import pytest

from multistream.testing import kit

pytestmark = pytest.mark.usefixtures("fresh_processes")

SESSIONS = int(os.environ.get("TFMS_TEST_SESSIONS", "40"))
SESSION_STEPS = int(os.environ.get("TFMS_TEST_SESSION_STEPS", "40"))
SOAK = str(Path(__file__).resolve().parents[4] / "benchmarks" / "soak")  # watches the same figures

HELPERS = """
import ctypes, gc
from watcher import heap_in_use

# What may stay, in bytes: TensorFlow keeps some hundred for each session.
AT_MOST, OF_SESSION, OF_STEP = 1_500_000, 1_000, 2
RESIDENT_AT_MOST = 20_000_000  # with what is not malloc's, and fragments
libc = ctypes.CDLL(None)

def measure(when):
    gc.collect()
    libc.malloc_trim(0)
    in_use = heap_in_use()
    with open("/proc/self/statm") as statm:
        rss = int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")
    threads = len(os.listdir("/proc/self/task"))
    print(f"{when}: {in_use / 1e6:.3f} MB in use, {rss / 1e6:.1f} MB resident, {threads} threads",
          flush=True)
    return in_use, rss, threads

def new_graph(scoped):
    with tf.Graph().as_default() as graph, tf.device(GPU):
        x = tf1.placeholder(tf.float32, [None, 16], "x")
        w = tf1.get_variable("w", initializer=np.full((16, 16), 0.01, np.float32),
                             use_resource=True)
        branches = []
        for i in range(3):
            with tf.cuda.stream_scope(tf.cuda.get_stream(i)) if scoped else tf.device(GPU):
                branches.append(tf.tanh(x @ tf.constant(np.full((16, 16), 0.1 * i, np.float32))))
        tf.reduce_sum(tf.add_n(branches) @ w, axis=1, name="y")
        w.assign_add(tf.ones([16, 16]) * 1e-6, name="change")
        tf1.global_variables_initializer()
        return graph

# A session of one graph or another, with or without its own threads; steps of many shapes from two
# threads, and changes of a variable. Some end with an error.
def run_session(i, steps, scoped):
    config = tf1.ConfigProto()
    if i % 4 == 1:
        config.session_inter_op_thread_pool.add(num_threads=3)
    with tf1.Session(graph=new_graph(scoped), config=config) as session:
        session.run("init")
        def client(seed):
            def calls():
                for j in range(steps // 2):
                    x = np.ones((1 + (seed + j) % 37, 16), np.float32)
                    if j % 16 == 15:
                        session.run("change")
                    elif j % 16 == 14:
                        try:
                            session.run("y:0", {"x:0": x[:, :3]})
                        except (ValueError, tf.errors.InvalidArgumentError):
                            pass
                    else:
                        session.run("y:0", {"x:0": x})
            return calls
        run_threads([client(7 * i), client(7 * i + 3)])

warm_up = max(SESSIONS // 4, 20)
for i in range(warm_up):
    run_session(i, SESSION_STEPS, SCOPED)
before, rss_before, threads_before = measure(f"after {warm_up} sessions")
for i in range(SESSIONS):
    run_session(i, SESSION_STEPS, SCOPED)
    if i % max(SESSIONS // 10, 20) == 0:
        measure(f"after {i} more")
after, rss_after, threads_after = measure(f"after {SESSIONS} more of {SESSION_STEPS} steps")
grown = after - before
allowed = AT_MOST + SESSIONS * (OF_SESSION + SESSION_STEPS * OF_STEP)
print(f"grown by {grown}, allowed {allowed}")
check(grown <= allowed, f"grown by {grown}, of which {allowed} are allowed")
resident = rss_after - rss_before
check(resident <= RESIDENT_AT_MOST, f"resident memory has grown by {resident}")
check(threads_after <= threads_before + 4, f"{threads_before} to {threads_after} threads")
"""


@pytest.mark.parametrize("scoped", [False, True], ids=["graph_level", "node_level"])
def test_sessions_and_steps_leave_memory_and_threads_where_they_were(scoped: bool) -> None:
    values = (
        f"import sys; sys.path.insert(0, {SOAK!r})\n"
        f"SESSIONS, SESSION_STEPS, SCOPED = {SESSIONS}, {SESSION_STEPS}, {scoped}\n"
    )
    figures = kit.run_checks(
        values + HELPERS,
        groups=int(os.environ.get("TFMS_TEST_GROUPS", "4")),
        limit=3600 if SESSIONS > 500 else 600,
        TF_MULTI_STREAM_SANITIZER="off",
        TF_NODE_LEVEL_MULTISTREAM=str(scoped),
        TF_SEGMENT_OWN_CONST="true",
        MALLOC_ARENA_MAX="4",
    )
    print(figures)
