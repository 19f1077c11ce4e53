# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Programs written for DeepRec run: tf.stream in a v1 graph, streams asked for in a ConfigProto.

A test names a function of this file, a job, which runs in a process of its own, with one emulated
GPU and no variable that makes stream groups, unless the test sets one.
"""

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf import text_format
from google.protobuf.internal import api_implementation

from multistream.testing.deeprec import (
    OFF,
    ON,
    POLICIES,
    WX,
    WY,
    B,
    Clicks,
    Plane,
    config,
    run,
    waits,
)
from multistream.testing.kit import same

TUNED_STEPS = 100  # enough steps for the policy to choose a plan


def plane_is_found(streams_used: int) -> None:
    """Training reaches the weights that made the points, on the given number of groups."""
    *losses, wx, wy, b = Plane().trained(config(), steps=150)
    assert losses[-1] < 1e-10 < losses[0]
    np.testing.assert_allclose([wx.item(), wy.item(), b.item()], [WX, WY, B], atol=1e-4)
    assert tf.cuda.stream_group_count() == max(1, streams_used)
    assert len(waits()) == streams_used
    assert all(count > 0 for count in waits()), waits()


def plane_by_python_messages() -> None:
    assert api_implementation.Type() == "python"
    plane_is_found(2)
    read = type(config()).FromString(config(3, "COST_PARTITION").SerializeToString())
    assert read == config(3, "COST_PARTITION")


def test_message_fields_need_no_compiled_protocol_buffers() -> None:
    run(plane_by_python_messages, PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")


def test_without_a_gpu_the_program_runs_on_the_cpu_and_is_warned() -> None:
    stderr = run(plane_is_found, 0, TF_MULTI_STREAM_EMULATED_GPUS="", TF_MULTI_STREAM_SANITIZER="")
    assert stderr.count("a session asks for 2 streams of a GPU, and there is no GPU") == 1


def same_bits() -> None:
    """With streams, without scopes, and without streams; by any form of the ConfigProto."""
    plane_is_found(2)
    scoped, unscoped = Plane(), Plane(scoped=False)
    before = waits()
    expected = unscoped.trained(config())
    assert len({float(loss) for loss in expected[:20]}) == 20
    assert waits() == before
    text = """
        graph_options { rewrite_options { use_multi_stream: ON
          multi_stream_opts { multi_stream_num: 2 partition_policy: USER_DEFINED_PARTITION } } }
    """
    forms = {
        "fields": config(),
        "text": text_format.Parse(text, tf.ConfigProto()),
        "printed": text_format.Parse(text_format.MessageToString(config()), tf.ConfigProto()),
        "serialized": tf.ConfigProto.FromString(config().SerializeToString()),
    }
    for name, form in forms.items():
        before = waits()
        assert same(scoped.trained(form), expected), name
        assert all(a > b for a, b in zip(waits(), before, strict=True)), name
    # One stream, though the process has two, in the same graph with its scopes.
    before = waits()
    for name, form in {
        "no config": None,
        "empty": tf.ConfigProto(),
        "off": config(use=OFF),
    }.items():
        assert same(scoped.trained(form), expected), name
        assert waits() == before, name
    assert same(scoped.trained(config()), expected)
    assert waits()[1] > before[1]


def test_training_finds_the_plane_with_the_bits_of_one_stream() -> None:
    """Only the ConfigProto asks for streams; a session without one, or with OFF, has one stream."""
    assert "there is no GPU" not in run(same_bits)


def nested_and_colocated() -> None:
    """The innermost scope counts, and colocation with an op takes its stream."""
    graph = tf.Graph()
    with graph.as_default():
        with tf.stream(0):
            a = tf.placeholder(tf.float32, [None, 3], "a")
            with tf.stream(1):
                b = tf.sin(a, name="b")
                with tf.stream(2):
                    c = tf.exp(b, name="c")
                d = tf.tanh(b, name="d")
            e = tf.cos(a, name="e")
        with tf.colocate_with(b):
            f = tf.multiply(e, tf.constant([0.5, 2.0, 3.0], name="half"), name="f")
        with tf.stream(0), tf.colocate_with(c.op):
            g = tf.square(d, name="g")
        out = tf.add_n([a, b, c, d, e, f, g], name="out")
        (gradient,) = tf.gradients(out, a)
    groups = {row.node: row.group for row in tf.cuda.stream_groups_of(graph)}
    expected = {"a": 0, "b": 1, "c": 2, "d": 1, "e": 0, "f": 1, "half": 1, "g": 2, "out": None}
    assert {name: groups[name] for name in expected} == expected
    x = np.random.RandomState(1).randn(4, 3).astype(np.float32)
    results = []
    for form in (config(3), config(1, use=OFF)):
        with tf.Session(graph=graph, config=form) as session:
            results.append(session.run([out, c, f, g, gradient], {a: x}))
        if form.graph_options.rewrite_options.use_multi_stream == ON:
            after = waits()
            assert all(count > 0 for count in after), after
    assert waits() == after
    assert same(*results)
    np.testing.assert_allclose(results[0][1], np.exp(np.sin(x)), rtol=1e-5)
    np.testing.assert_allclose(results[0][2], np.cos(x) * [0.5, 2.0, 3.0], rtol=1e-5)


def test_scopes_nest_and_colocation_takes_the_stream() -> None:
    run(nested_and_colocated)


# Policies.


def trained(clicks: Clicks, form: Any) -> list[Any]:
    """Trains in a session of its own; returns the steps' losses, then the weights."""
    with tf.Session(graph=clicks.graph, config=form) as session:
        session.run(clicks.start)
        step = session.make_callable([clicks.loss, clicks.train], [clicks.x])
        losses = [step(clicks.fed(i))[0] for i in range(TUNED_STEPS)]
        return [*losses, *session.run(clicks.weights)]


def policies() -> None:
    """Each policy, of a model with scopes and of one without."""
    unmarked, marked = Clicks(), Clicks(tables=(0, 1, 2), branches=(1, 2))
    expected = trained(unmarked, config(3))
    assert expected[TUNED_STEPS - 1] < 0.5 * expected[0]
    for policy in POLICIES:
        before = waits()
        assert same(trained(unmarked, config(3, policy)), expected), policy
        grown = [a - b for a, b in zip(waits(), before, strict=True)]
        if policy in POLICIES[:2]:
            assert grown == [0, 0, 0], (policy, grown)
        elif policy != "COST_PARTITION":  # COST_PARTITION may find no gain at once
            assert all(count > 0 for count in grown), (policy, grown)
        before = waits()
        assert same(trained(marked, config(3, policy)), expected), policy
        assert all(a > b + TUNED_STEPS for a, b in zip(waits(), before, strict=True)), policy


def test_every_policy_gives_the_same_bits() -> None:
    """Policies that split use the groups; the others leave all nodes on one group."""
    run(policies)
