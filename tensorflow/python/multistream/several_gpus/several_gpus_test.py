# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Branches on the stream groups of several GPUs give the results of one stream per GPU.

What a job builds without scopes runs on group 0 of each GPU and is the reference for the same thing
with scopes.
"""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from multistream.testing import kit
from multistream.testing import program_results as programs
from multistream.testing.gpus import gpu, gpus, run, used
from multistream.testing.kit import on
from multistream.testing.random_programs import Instruction

tf1 = tf.compat.v1


def spread_programs() -> None:
    """Makes the instructions of programs run on all GPUs, each of which has a variable."""
    build_one = programs.build_one

    def build_one_on_gpu(
        instruction: Instruction, state: Any, inputs: list[Any], scoped: bool
    ) -> Any:
        with tf.device(gpu(instruction.k + instruction.inputs[0])):
            return build_one(instruction, state, inputs, scoped)

    programs.build_one, programs.device_of = build_one_on_gpu, gpu
    programs.VARIABLES = len(gpus())


def random_programs(first: int, last: int, groups: int) -> None:
    scope = programs.on
    spread_programs()

    def scope_of_few(group: int | None, scoped: bool = True, include_grad: bool = True) -> Any:
        return scope(None if group is None else group % groups, scoped, include_grad)

    programs.on, programs.GROUPS = scope_of_few, groups
    programs.groups_used = lambda: {group for _, group in used()}
    programs.compare_programs(first, last)
    assert used() == {(i, j) for i in gpus() for j in range(groups)}


@pytest.mark.parametrize(
    ("gpu_count", "groups", "variables"),
    [
        (2, 3, {"TF_GPU_STREAM_GROUP_COUNT": "3"}),
        (
            3,
            2,
            {
                "TF_GPU_STREAM_GROUP_COUNT": "2,4,3",
                "TF_MULTI_STREAM_ALLOW_FORWARD_PROPAGATION": "true",
                "TF_REDUCE_STREAM_WAIT": "false",
            },
        ),
    ],
)
def test_random_programs(gpu_count: int, groups: int, variables: dict[str, str]) -> None:
    """Tensors cross GPUs and groups: as variables, gradients, and in branches and loops."""
    first, count = 10000 * gpu_count, 4 * kit.PROGRAMS
    gpu_counts = {"TF_MULTI_STREAM_EMULATED_GPUS": str(gpu_count)}
    run(random_programs, first, first + count, groups, **gpu_counts, **variables)


def whole_graphs(first: int, last: int, path: str) -> None:
    """Programs without scopes, twice: the calls in them run on other groups than their callers."""
    spread_programs()
    found = []
    for seed in range(first, last):
        program = programs.program_of(seed)
        left, right = (programs.results(seed, program, False) for _ in range(2))
        assert all(map(programs.same, left, right)), f"seed {seed}"
        found += left
    started = [s.steps_started for s in tf.cuda.stream_stats()]
    assert all(started) or tf.cuda.stream_group_count() == 1, started
    Path(path).write_bytes(pickle.dumps(found))


def test_random_programs_at_graph_level_give_the_bits_of_one_group(tmp_path: Path) -> None:
    """Also a tensor that comes back from another GPU, to another group than it left (40003)."""
    found = []
    for groups in ("1", "2,3,2"):
        path = tmp_path / groups
        run(
            whole_graphs,
            40000,
            40008,
            str(path),
            TF_MULTI_STREAM_EMULATED_GPUS="3",
            TF_GPU_STREAM_GROUP_COUNT=groups,
            TF_NODE_LEVEL_MULTISTREAM="false",
        )
        found.append(pickle.loads(path.read_bytes()))
    assert all(map(programs.same, *found)) and len(found[0]) == len(found[1])


@kit.in_process(run, TF_GPU_STREAM_GROUP_COUNT="4,2")
def test_gpus_with_different_numbers_of_groups() -> None:
    """A group that only another GPU has is an error that names the node."""
    assert [tf.cuda.stream_group_count(i) for i in gpus()] == [4, 2]
    x = tf.constant([1.0, 2.0])

    @tf.function
    def inner(x: Any) -> Any:
        with tf.device("/GPU:1"):
            return tf.tanh(x, name="bad")

    @tf.function
    def direct(x: Any) -> Any:
        with tf.device("/GPU:0"), on(3):
            y = tf.sin(x)
        with tf.device("/GPU:1"), on(3):
            return tf.tanh(y, name="bad")

    @tf.function
    def called(x: Any) -> Any:
        with tf.device("/GPU:0"), on(3):
            return inner(tf.sin(x))

    @tf.function
    def other(x: Any) -> Any:
        for i, group in ((0, 3), (1, 1), (0, 1), (1, 0)):
            with tf.device(gpu(i)), on(group):
                x = tf.sin(x)
        return x

    wanted = r"Node \S*node \S*bad\S* \(Tanh\) is in stream group 3, and the GPU has 2 \("
    expected = np.sin(np.sin(np.sin(np.sin(x))))
    for function in (direct, called):
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
                function(x)
            assert np.allclose(other(x), expected)

    with tf.Graph().as_default() as graph:
        p = tf1.placeholder(tf.float32, [2])
        with tf.device("/GPU:0"), on(3):
            good = tf.sin(p)
        with tf.device("/GPU:1"), on(3):
            bad = tf.tanh(good, name="bad")
    with tf1.Session(graph=graph) as session:
        for _ in range(2):
            with pytest.raises(tf.errors.InvalidArgumentError, match=wanted):
                session.run(bad, {p: x.numpy()})
            assert np.allclose(session.run(good, {p: x.numpy()}), np.sin(x))
    assert used() <= {(0, 0), (0, 1), (0, 3), (1, 0), (1, 1)}


@kit.in_process(run, TF_GPU_STREAM_GROUP_COUNT="2", TF_NODE_LEVEL_MULTISTREAM="false")
def test_what_another_gpu_sends_and_nothing_uses() -> None:
    """The copy is complete as it arrives, so that its memory is free at once."""
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    with tf.device("/GPU:0"):
        v = tf.Variable([1.0, 2.0, 3.0])

    @tf.function(autograph=False)
    def step(x: Any) -> Any:
        with tf.device("/GPU:0"):
            doubled = x * 2.0
            with tf.device("/GPU:1"):
                v.read_value()
                tf.reduce_sum(v)
            return doubled

    for _ in range(8):
        assert step(tf.constant([1.0, 2.0])).numpy().tolist() == [2.0, 4.0]
