# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Graphs that the policies have split give the results of one stream.

The policy is that of the process, so the results to compare come from two processes.
"""

import contextlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from multistream.testing import kit
from multistream.testing import program_results as programs

POLICIES = ("embedding", "full_graph", "cost")
TUNED_CALLS = 110  # enough calls for the policy to choose a plan


@pytest.mark.parametrize(
    ("first", "count", "scoped", "calls", "policies"),
    [
        (1039, 4, False, programs.CALLS, POLICIES),
        (11000, 3, True, programs.CALLS, POLICIES),
        (21000, 2, False, TUNED_CALLS, ("cost",)),
    ],
    ids=["unmarked", "marked", "until_tuned"],
)
def test_random_programs(
    tmp_path: Path, first: int, count: int, scoped: bool, calls: int, policies: tuple[str, ...]
) -> None:
    """The same bits, whatever the policy."""
    seeds = range(first, first + count * kit.PROGRAMS)
    found = {}
    for policy in ("none", *policies):
        path = tmp_path / f"{policy}.pickle"
        kit.run_job(
            programs.save_results,
            str(path),
            seeds,
            scoped,
            calls,
            TF_MULTI_STREAM_POLICY=policy,
            TF_MULTI_STREAM_MEASURE=str(calls == TUNED_CALLS),
        )
        found[policy], stats = pickle.loads(path.read_bytes())
        groups = {s.group for s in stats if s.peak_bytes_in_use > 0}
        assert policy != "none" or scoped or groups == {0}
        assert policy != "full_graph" or groups == set(range(kit.GROUPS))
        different = programs.differing(found["none"], found[policy])
        assert not different, f"under {policy}, these differ: {different}"


class Model:
    """A model of branches that is trained.

    Args:
      scope: makes the context of the branch of a number.
    """

    def __init__(
        self, scope: Callable[[int], Any] = lambda branch: contextlib.nullcontext()
    ) -> None:
        random = np.random.RandomState(0)
        with tf.device(kit.GPU):
            self.layers = [
                [tf.Variable(random.randn(16, 16).astype(np.float32) / 4) for _ in range(4)]
                for _ in range(kit.GROUPS)
            ]
            self.x = tf.constant(random.randn(8, 16).astype(np.float32))
        self._scope = scope

    def step(self) -> Any:
        """Changes the variables, and returns the loss."""
        with tf.device(kit.GPU):
            with tf.GradientTape() as tape:
                ends = []
                for branch, weights in enumerate(self.layers):
                    y = self.x
                    with self._scope(branch):
                        for w in weights:
                            y = tf.tanh(tf.matmul(y, w))
                    ends.append(y)
                loss = tf.reduce_mean(tf.add_n(ends) ** 2)
            variables = [w for weights in self.layers for w in weights]
            for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
                variable.assign_sub(0.1 * gradient)
            return loss


def losses_of(step: Callable[[], Any], steps: int = 20) -> list[bytes]:
    return [step().numpy().tobytes() for _ in range(steps)]


@kit.in_process(TF_MULTI_STREAM_POLICY="full_graph")
def test_the_table_shows_a_policy_and_marks_win() -> None:
    """Nodes that are not marked get groups; marked nodes keep theirs."""
    graph = tf.Graph()
    with graph.as_default(), tf.device(kit.GPU):
        x = tf.compat.v1.placeholder(tf.float32, [4, 4])
        with tf.cuda.stream_scope(tf.cuda.get_stream(2)):
            marked = tf.tanh(x, name="marked")
        tf.add(tf.sin(tf.cos(x, name="a"), name="b"), marked, name="sum")
    rows = {row.node: row for row in tf.cuda.stream_groups_of(graph)}
    assert (rows["marked"].group, rows["marked"].why) == (2, "scope")
    assert rows["b"].group == rows["a"].group != 2
    assert rows["a"].why == "policy"


def groups_of(step: Callable[[], Any], expected: list[bytes]) -> list[int]:
    """The groups that have recorded events in some steps, whose losses must be as expected."""
    before = [s.events for s in tf.cuda.stream_stats()]
    assert losses_of(step, len(expected)) == expected
    after = [s.events for s in tf.cuda.stream_stats()]
    return [i for i, (old, new) in enumerate(zip(before, after, strict=True)) if new > old]


@kit.in_process()
def test_auto_stream_splits_a_function() -> None:
    plain = losses_of(tf.function(Model().step))
    assert kit.groups_used() == {0}
    above = tf.cuda.auto_stream("full_graph", always=True)(tf.function(Model().step))
    assert groups_of(above, plain) == [0, 1, 2, 3]
    waits = total_waits()
    groups_of(tf.function(Model().step), plain)
    assert total_waits() == waits

    below = tf.function(tf.cuda.auto_stream("full_graph", 2, always=True)(Model().step))
    assert groups_of(below, plain) == [0, 1]
    # The program's own scopes override the policy.
    scoped = Model(lambda branch: kit.on(3))
    assert groups_of(tf.function(tf.cuda.auto_stream("none")(scoped.step)), plain) == [0, 3]

    # Without `always`, some steps are split to measure the plan.
    waits = total_waits()
    groups_of(tf.cuda.auto_stream("full_graph")(tf.function(Model().step)), plain[:8])
    assert total_waits() == waits
    measured = tf.cuda.auto_stream("full_graph")(tf.function(Model().step))
    assert losses_of(measured, TUNED_CALLS)[:20] == plain
    assert total_waits() > waits


def total_waits() -> int:
    return sum(s.waits for s in tf.cuda.stream_stats())


def generator() -> Any:
    yield 1


def a_called_function() -> Any:
    function = tf.function(lambda: tf.constant(1))
    function()
    return function


@pytest.mark.parametrize(
    ("wrong_use", "error", "message"),
    [
        (lambda: tf.cuda.auto_stream("fast"), ValueError, "policy='fast'.* none, embedding, full"),
        (lambda: tf.cuda.auto_stream(len), TypeError, r"@tf.cuda.auto_stream\(\)"),
        (lambda: tf.cuda.auto_stream("cost", 0), ValueError, "groups=0"),
        (lambda: tf.cuda.auto_stream()(3), TypeError, "decorates functions"),
        (lambda: tf.cuda.auto_stream()(generator), TypeError, "after its call has returned"),
        (lambda: tf.cuda.auto_stream()(a_called_function()), ValueError, "before its first call"),
        (lambda: tf.cuda.auto_stream().__enter__(), RuntimeError, "eager code"),
        (lambda: tf.cuda.save_plan("a").__enter__(), RuntimeError, "TF_GPU_STREAM_GROUP_COUNT"),
    ],
)
def test_wrong_uses_are_named(wrong_use: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        wrong_use()


@kit.in_process()
def test_a_wrong_policy_attribute_is_an_error() -> None:
    with tf.Graph().as_default() as graph, tf.device(kit.GPU):
        x = tf.compat.v1.placeholder(tf.float32, [2])
        op = tf.sin(x, name="odd").op
        op._set_attr("_stream_policy", attr_value_pb2.AttrValue(s=b"fast:x"))
        with (
            tf.compat.v1.Session(graph=graph) as session,
            pytest.raises(tf.errors.InvalidArgumentError, match='(?s)(?=.*odd).*policy "fast:x"'),
        ):
            session.run("odd:0", {x: [1, 2]})


def save_plan_of_model(path: str) -> None:
    """Writes a plan, and the model's results with the plan."""
    step = tf.cuda.auto_stream("full_graph", always=True)(tf.function(Model().step))
    losses = losses_of(step)
    with tf.cuda.save_plan(path):
        step()
    Path(path + ".pickle").write_bytes(pickle.dumps(losses))
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    groups = {int(line.split(":")[0]) for line in lines if not line.startswith("#")}
    assert groups == set(range(kit.GROUPS))
    with pytest.raises(RuntimeError, match="no step has run"), tf.cuda.save_plan(path + ".none"):
        pass
    assert not Path(path + ".none").exists()


def use_plan_of_model(path: str) -> None:
    """The saved groups, without any other policy."""
    step = tf.function(Model().step)
    assert losses_of(step) == pickle.loads(Path(path + ".pickle").read_bytes())
    assert kit.groups_used() == set(range(kit.GROUPS))
    with tf.cuda.save_plan(path + ".again"):
        step()
    assert Path(path + ".again").read_text() == Path(path).read_text()


def test_a_plan_is_saved_and_used_again(tmp_path: Path) -> None:
    """TF_STREAM_FROM_FILE gives each node its group."""
    path = str(tmp_path / "model.streams")
    kit.run_job(save_plan_of_model, path)
    kit.run_job(use_plan_of_model, path, TF_STREAM_FROM_FILE=path)
