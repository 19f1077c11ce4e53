# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps with different variables do not wait for each other, and steps with the same ones do."""

import pytest

from multistream.testing import kit

HELPERS = """
def waits():
    # How often the streams of the leader and of group 1 have been made to wait.
    stats = tf.cuda.stream_stats()
    return np.array([stats[0].waits, stats[1].waits])

def apart(*calls):
    # Now and then a group takes another's free memory, and waits for that.
    added = [waits_of(*calls) for _ in range(5)]
    check([(0, 0)] * len(calls) in added, f"other variables: {added}")

def in_order(change, read):
    for _ in range(3):
        (leaders, _), (_, groups) = waits_of(change, read)
        check(groups > 0, "a read waits for the change before it")
        check(leaders > 0, "a change waits for the read before it")

def waits_of(*calls):
    # For each call in turn, the waits that it adds.
    added = []
    for call in calls:
        before = waits()
        call()
        added.append(tuple(int(n) for n in waits() - before))
    return added

with tf.device(GPU):
    trained = tf.Variable(tf.zeros([64]))
    served = tf.Variable(tf.ones([64]))
    on_device = tf.ones([64]) + 0.0

@tf.function
def train():
    with tf.device(GPU):
        trained.assign_add(tf.ones([64]))

@tf.function
def serve(x):
    with tf.device(GPU):
        return tf.tanh(served) * x

@tf.function
def evaluate(x):
    with tf.device(GPU):
        return tf.reduce_sum(trained) + x

def on_group_1(f, x=np.float32(2)):
    with tf.cuda.stream_group(1):
        return f(tf.constant(x) if isinstance(x, np.float32) else x).numpy()
"""


@pytest.mark.parametrize("capture", ["off", "auto"])
def test_functions_wait_for_their_variables_only(capture: str) -> None:
    """Whether or not their steps are captured; a tensor of the leader's is waited for."""
    kit.run_checks(
        HELPERS
        + """
serves = lambda: on_group_1(serve)
evaluates = lambda: on_group_1(evaluate)
for _ in range(6):  # captured by then, if at all
    train(); serves(); evaluates()
train()  # waits for its readers
apart(train, serves, train, serves, serves, train)
evaluates()
in_order(train, evaluates)
steps = int(trained[0].numpy())
train()
check(evaluates() == 64 * (steps + 1) + 2, "the last value is read")
served.assign(3 * served)
check(abs(serves() - 2 * np.tanh(3)).max() < 1e-5, "the last value is served")

on_group_1(serve, on_device)  # traces
train()
added = waits_of(lambda: on_group_1(serve, on_device))
check(added[0][1] >= 1, f"a tensor of the leader's: {added}")
""",
        TF_MULTI_STREAM_CAPTURE=capture,
    )


def test_sessions_wait_for_their_variables_only() -> None:
    """Resource variables of two graphs in one process; a reference variable is waited for."""
    kit.run_checks(
        HELPERS
        + """
def session(use_resource):
    with tf.Graph().as_default(), tf.device(GPU):
        v = tf1.Variable(tf.zeros([64]), use_resource=use_resource)
        change, read = v.assign_add(tf.ones([64])).op, tf.tanh(v)
        made = tf1.Session()
        made.run(v.initializer)
    def reads():
        with tf.cuda.stream_group(1):
            return made.run(read)
    return lambda: made.run(change), reads

change, reads = session(True)
other, reads_other = session(True)
for _ in range(3):
    change(); reads(); other(); reads_other()
other()  # waits for its readers
apart(other, reads, other, reads, reads, other)
reads()
in_order(change, reads)

change, reads = session(False)
for n in range(4):
    change()
    check(abs(reads() - np.tanh(n + 1)).max() < 1e-5, "a reference variable")
"""
    )
