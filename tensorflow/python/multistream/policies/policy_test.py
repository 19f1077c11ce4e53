# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Graphs that the policies have split give the results of one stream.

A test names a job, which runs in a process of its own. The policy is that
of the process, so the results to compare come from two processes.
"""

import contextlib
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from multistream.testing import kit
from multistream.testing import program_results as programs
from multistream.testing.random_programs import SESSION_EVERY, Generator, listing

POLICIES = ("embedding", "full_graph", "cost")
TUNED_CALLS = 110  # enough calls for the policy to choose a plan
AT_ONCE = {"TF_MULTI_STREAM_MEASURE": "false"}


def save_random_programs(path: str, seeds: list[int], scoped: bool, calls: int) -> None:
    """Writes the results of random programs, and which groups have been used, to a file."""
    programs.CALLS = calls
    results: dict[int, list[list[Any]]] = {}
    for seed in seeds:
        generator = Generator(seed, session=seed % SESSION_EVERY == 0)
        program = generator.program(2, 4 + seed % 9)
        run_it = (
            programs.results_of_function if seed % SESSION_EVERY else programs.results_of_session
        )
        try:
            results[seed] = list(run_it(seed, program, scoped))
        except Exception as error:
            raise AssertionError(f"seed {seed}\n{listing(program, 2)}") from error
    Path(path).write_bytes(pickle.dumps((results, kit.groups_used())))


def results_under(
    policy: str, folder: Path, *arguments: Any, measure: bool
) -> tuple[dict[int, Any], set[int]]:
    path = folder / f"{policy}.pickle"
    environment = {"TF_MULTI_STREAM_POLICY": policy, "TF_MULTI_STREAM_MEASURE": str(measure)}
    kit.run_job(save_random_programs, str(path), *arguments, **environment)
    results, groups = pickle.loads(path.read_bytes())
    return results, groups


@pytest.mark.parametrize(
    ("seeds", "scoped", "calls", "policies"),
    [
        (range(1035, 1035 + 15 * kit.PROGRAMS), False, programs.CALLS, POLICIES),
        (range(11000, 11000 + 10 * kit.PROGRAMS), True, programs.CALLS, POLICIES),
        (range(21000, 21000 + 7 * kit.PROGRAMS), False, TUNED_CALLS, ("cost",)),
    ],
    ids=["unmarked", "marked", "until_tuned"],
)
def test_random_programs(
    tmp_path: Path, seeds: range, scoped: bool, calls: int, policies: tuple[str, ...]
) -> None:
    """The same bits, whatever the policy."""
    arguments = (tmp_path, list(seeds), scoped, calls)
    measure = calls == TUNED_CALLS
    expected, groups = results_under("none", *arguments, measure=measure)
    assert scoped or groups == {0}
    for policy in policies:
        found, groups = results_under(policy, *arguments, measure=measure)
        if policy == "full_graph":
            assert groups == set(range(kit.GROUPS))
        different = [s for s in seeds if not all(map(kit.same, expected[s], found[s]))]
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
    """Losses of some steps."""
    return [step().numpy().tobytes() for _ in range(steps)]


def groups_of_branches() -> None:
    """full_graph gives each branch of a model a group; marked nodes keep theirs."""
    losses = losses_of(tf.function(Model().step))
    assert len(set(losses)) == len(losses)
    assert kit.groups_used() == set(range(kit.GROUPS))
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
    marked_model = Model(lambda branch: kit.on(3, scoped=branch == 0))
    assert losses_of(tf.function(marked_model.step)) == losses


def test_full_graph_uses_the_groups() -> None:
    """And explicit marks win."""
    kit.run_job(groups_of_branches, TF_MULTI_STREAM_POLICY="full_graph", **AT_ONCE)


def test_a_policy_is_named_if_it_is_wrong() -> None:
    """The error says what is allowed."""
    done = kit.run_process("import tensorflow", TF_MULTI_STREAM_POLICY="fastest")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert 'TF_MULTI_STREAM_POLICY="fastest"' in last and "full_graph" in last


def test_a_policy_implies_node_level() -> None:
    """An environment that turns node level off wins, with a warning."""
    code = "import tensorflow as tf; from tensorflow.python.multistream import loader; "
    code += "print(loader.library.TFMS_IsNodeLevel())"
    unset = kit.run_process(code, TF_MULTI_STREAM_POLICY="cost", TF_NODE_LEVEL_MULTISTREAM="")
    assert unset.stdout.strip() == "1", unset.stderr[-2000:]
    off = kit.run_process(
        code,
        TF_MULTI_STREAM_POLICY="cost",
        TF_NODE_LEVEL_MULTISTREAM="false",
        TF_CPP_MIN_LOG_LEVEL="1",
    )
    assert off.stdout.strip() == "0"
    assert "TF_MULTI_STREAM_POLICY (with TF_NODE_LEVEL_MULTISTREAM=false)" in off.stderr


def auto_streams() -> None:
    """A decorated function is split, and only that."""
    plain = losses_of(tf.function(Model().step))
    assert kit.groups_used() == {0}
    above = tf.cuda.auto_stream("full_graph", always=True)(tf.function(Model().step))
    assert losses_of(above) == plain
    assert kit.groups_used() == set(range(kit.GROUPS))

    waits = total_waits()
    assert losses_of(tf.function(Model().step)) == plain
    assert total_waits() == waits

    below = tf.function(tf.cuda.auto_stream("full_graph", 2, always=True)(Model().step))
    used = [s.events for s in tf.cuda.stream_stats()]
    assert losses_of(below) == plain
    more = [s.events > n for s, n in zip(tf.cuda.stream_stats(), used, strict=True)]
    assert more == [True, True, False, False]

    # The program's own scopes override the policy.
    used = [s.events for s in tf.cuda.stream_stats()]
    scoped = Model(lambda branch: kit.on(3))
    assert losses_of(tf.function(tf.cuda.auto_stream("none")(scoped.step))) == plain
    more = [s.events > n for s, n in zip(tf.cuda.stream_stats(), used, strict=True)]
    assert more == [True, False, False, True]

    # Without `always`, some steps are split to measure the plan.
    waits = total_waits()
    assert losses_of(tf.cuda.auto_stream("full_graph")(tf.function(Model().step)), 8) == plain[:8]
    assert total_waits() == waits
    measured = tf.cuda.auto_stream("full_graph")(tf.function(Model().step))
    assert losses_of(measured, TUNED_CALLS)[:20] == plain
    assert total_waits() > waits


def total_waits() -> int:
    return sum(s.waits for s in tf.cuda.stream_stats())


def test_auto_stream_splits_a_function() -> None:
    """A split function gives the results of one stream."""
    kit.run_job(auto_streams)


def test_auto_stream_names_wrong_arguments() -> None:
    """Each error says what is allowed."""
    for arguments, error, part in (
        (("fastest",), ValueError, "policy='fastest' is not one of none, embedding, full_graph"),
        ((len,), TypeError, "@tf.cuda.auto_stream()"),
        (("cost", 0), ValueError, "groups=0"),
        (("cost", 1.5), TypeError, "groups=1.5"),
    ):
        with pytest.raises(error, match=re.escape(part)):
            tf.cuda.auto_stream(*arguments)
    with pytest.raises(TypeError, match="decorates functions"):
        tf.cuda.auto_stream()(3)

    def generator() -> Any:
        yield 1

    with pytest.raises(TypeError, match="after its call has returned"):
        tf.cuda.auto_stream()(generator)
    called = tf.function(lambda: tf.constant(1))
    called()
    with pytest.raises(ValueError, match="before its first call"):
        tf.cuda.auto_stream()(called)
    with pytest.raises(RuntimeError, match="eager code"), tf.cuda.auto_stream():
        pass


def wrong_policy_attribute() -> None:
    """A graph from elsewhere, with an invalid policy attribute."""
    with tf.Graph().as_default() as graph, tf.device(kit.GPU):
        x = tf.compat.v1.placeholder(tf.float32, [2])
        op = tf.sin(x, name="odd").op
        op._set_attr("_stream_policy", attr_value_pb2.AttrValue(s=b"fast:x"))
        with tf.compat.v1.Session(graph=graph) as session:
            try:
                session.run("odd:0", {x: [1, 2]})
            except tf.errors.InvalidArgumentError as error:
                assert 'stream policy "fast:x"' in str(error) and "odd" in str(error)
                return
    raise AssertionError("no error")


def test_a_wrong_policy_attribute_is_an_error() -> None:
    """The error names the node."""
    kit.run_job(wrong_policy_attribute)


def save_plan_of_model(path: str) -> None:
    """Writes a plan, and the model's results with the plan."""
    step = tf.cuda.auto_stream("full_graph", always=True)(tf.function(Model().step))
    losses = losses_of(step)
    with tf.cuda.save_plan(path):
        step()
    Path(path + ".pickle").write_bytes(pickle.dumps((losses, groups_of_lines(path))))

    try:
        with tf.cuda.save_plan(path + ".none"):
            pass
    except RuntimeError as error:
        assert "no step has run" in str(error)
    else:
        raise AssertionError("no error")
    assert not Path(path + ".none").exists()


def groups_of_lines(path: str) -> set[int]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return {int(line.split(":")[0]) for line in lines if not line.startswith("#")}


def use_plan_of_model(path: str) -> None:
    """The saved groups, without any other policy."""
    losses, groups = pickle.loads(Path(path + ".pickle").read_bytes())
    assert groups == set(range(kit.GROUPS))
    step = tf.function(Model().step)
    assert losses_of(step) == losses
    assert kit.groups_used() == set(range(kit.GROUPS))
    with tf.cuda.save_plan(path + ".again"):
        step()
    assert Path(path + ".again").read_text() == Path(path).read_text()


def test_a_plan_is_saved_and_used_again(tmp_path: Path) -> None:
    """TF_STREAM_FROM_FILE gives each node its group."""
    path = str(tmp_path / "model.streams")
    kit.run_job(save_plan_of_model, path)
    kit.run_job(use_plan_of_model, path, TF_STREAM_FROM_FILE=path)


def test_save_plan_needs_groups() -> None:
    """The error says what to set."""
    with pytest.raises(RuntimeError, match="TF_GPU_STREAM_GROUP_COUNT"), tf.cuda.save_plan("a"):
        pass
