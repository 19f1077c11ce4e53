# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A `fork()`ed child that does not use the GPU never waits for stream groups.

Only the forking thread exists in the child. Here other threads of the parent run
steps on all groups all the time, so that locks of the runtime are held when children are made.
TFMS_TEST_FORKS is how many children each part makes.
"""

import os

import pytest

from multistream.testing import kit

pytestmark = pytest.mark.usefixtures("fresh_processes")

FORKS = int(os.environ.get("TFMS_TEST_FORKS", "8"))

HELPERS = f"""
import faulthandler, gc, multiprocessing, signal, subprocess, sys

# What children collect is what this test makes: to look at all of TensorFlow's modules, too, takes
# each of them a second.
gc.freeze()
FORKS = {FORKS}
LIMIT = 120  # seconds, of which a child that does not stand still needs few
# A child that stands still shows its stack, and dies.
faulthandler.register(signal.SIGALRM, all_threads=True, chain=True)
x0 = np.ones((32, 64), np.float32)

def new_session():
    with tf.Graph().as_default() as graph, tf.device(GPU):
        x = y = tf1.placeholder(tf.float32, [None, 64])
        for i in range(6):
            y = tf.tanh(y @ tf.constant(np.full((64, 64), 0.01 * (i + 1), np.float32)))
        session = tf1.Session(graph=graph)
        return session, lambda: session.run(y, {{x: x0}})

@tf.function
def f(a):
    with tf.device(GPU):
        return tf.tanh(a @ a)

a = tf.constant(x0 @ x0.T)
# TensorFlow draws an id for each eager call, graph and device under a lock of its own, which stays
# locked in a child that is made then, with stock TensorFlow, too: a child that makes a graph or a
# device is made while no eager call runs.
eager_calls = threading.Lock()
def call_eagerly():
    with eager_calls:
        f(a)

stop = threading.Event()
def until_stopped(step):
    while not stop.is_set():
        step()
session_at_rest, step_at_rest = new_session()
for _ in range(8):
    step_at_rest()
busy_session, busy_step = new_session()
busy = [threading.Thread(target=until_stopped, args=(step,))
        for step in [busy_step] * 4 + [call_eagerly, tf.cuda.stream_stats]]
for thread in busy: thread.start()

def in_children(what, child, times=FORKS):
    for i in range(times):
        if wrong:
            return
        time.sleep(0.0007 * (i % 8))
        pid = os.fork()
        if pid == 0:
            signal.alarm(LIMIT)
            try:
                child()
                os._exit(0)
            except SystemExit:
                raise
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        check(status == 0, f"{{what}}: status {{status}}")
"""

END = """
stop.set()
for thread in busy: thread.join()
check(len(tf.cuda.stream_stats()) == 4, "the parent's groups")
check((step_at_rest() == busy_step()).all(), "the parent's steps")
"""


# A server may fork its workers after it has loaded TensorFlow: they have groups of their own.
BEFORE_THE_GROUPS = """
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    with tf.device(GPU):
        y = tf.function(lambda: tf.tanh(tf.ones([4])) * 2)()
    os.write(write, repr((y.numpy().tolist(), len(tf.cuda.stream_stats()))).encode())
    os._exit(0)
os.close(write)
expected = (np.tanh(np.ones(4, np.float32)) * 2).tolist()
values, groups = eval(os.read(read, 1000))
check(np.allclose(values, expected), f"{values}")
check(groups == 4, f"{groups} groups")
check(os.waitpid(pid, 0)[1] == 0, "status")
"""

# Children of `os.fork` and `multiprocessing`, and of `subprocess` with a preexec_fn.
WITHOUT_TENSORFLOW = """
in_children("os._exit", lambda: None)
# At the child's exit, atexit functions run, modules are torn down, sessions deleted.
in_children("sys.exit", lambda: sys.exit(0), max(FORKS // 5, 4))

def preexec():
    signal.alarm(LIMIT)
    os.setsid()
    gc.collect()

for _ in range(FORKS):
    done = subprocess.run(["true"], preexec_fn=preexec, check=False)
    check(done.returncode == 0, f"preexec_fn: {done.returncode}")

# Workers of a data loader, which use only NumPy.
def load(seed):
    data = np.random.RandomState(seed).randn(64, 64)
    return float((data @ data.T).sum())

expected = [load(seed) for seed in range(20)]
for _ in range(max(FORKS // 8, 2)):
    with multiprocessing.get_context("fork").Pool(4) as pool:
        loaded = pool.map_async(load, range(20))
        check(loaded.get(LIMIT) == expected, "what the workers load")
"""

# A child has no stream groups, and reports this at once.
WITHOUT_A_GPU = """
from tensorflow.python.multistream.scopes import streams

def ask():
    assert tf.cuda.stream_stats() == []
    assert tf.cuda.stream_group_count() == 4
    tf.cuda.synchronize()

in_children("questions", ask)

def build():
    with tf.Graph().as_default(), tf.cuda.stream_scope():
        tf.constant(1.0)

# Another thread of the parent was choosing a scope's group at the fork, holding its lock.
with streams._turns_lock, eager_calls:
    in_children("a scope", build, 4)

with tf.device(GPU):
    tensors = [tf.Variable(tf.ones([1000])) for _ in range(10)]

def let_go():
    global session_at_rest, step_at_rest
    session_at_rest.close()
    del session_at_rest, step_at_rest
    tensors.clear()
    gc.collect()

in_children("letting go", let_go)
graph = tf.Graph()

def is_told():
    try:
        tf1.Session(graph=graph)
    except tf.errors.FailedPreconditionError as e:
        assert "fork()ed child" in str(e) and "device_count" in str(e), e
    else:
        raise AssertionError("no error")

in_children("a session", is_told)

def makes_one_without():
    tf1.Session(graph=tf.Graph(), config=tf1.ConfigProto(device_count={"GPU": 0}))

with eager_calls:
    in_children("a session without a GPU", makes_one_without, FORKS // 4)
"""


def test_children_do_not_wait_for_groups_of_the_parent() -> None:
    """Those made before the groups, those that use no TensorFlow, and those that use no GPU."""
    kit.run_checks(BEFORE_THE_GROUPS + HELPERS + WITHOUT_TENSORFLOW + WITHOUT_A_GPU + END, groups=4)
