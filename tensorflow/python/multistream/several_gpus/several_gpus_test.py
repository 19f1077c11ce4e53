# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Branches on the stream groups of several GPUs give the results of one stream per GPU.

A test names a job, which runs in a process of its own. What a job builds without scopes runs on
group 0 of each GPU and is the reference for the same thing with scopes.
"""

from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from multistream.testing import kit
from multistream.testing import program_results as programs
from multistream.testing.gpus import gpu, gpus, leaders, numbers, run, run_all, used
from multistream.testing.kit import on, same
from multistream.testing.random_programs import Instruction

tf1 = tf.compat.v1


def random_programs(first: int, last: int, groups: int) -> None:
    """The programs of these seeds, on the first groups of all GPUs; each GPU has a variable."""
    build_one, scope = programs.build_one, programs.on

    def build_one_on_gpu(
        instruction: Instruction, state: Any, inputs: list[Any], scoped: bool
    ) -> Any:
        with tf.device(gpu(instruction.k + instruction.inputs[0])):
            return build_one(instruction, state, inputs, scoped)

    def scope_of_few(group: int | None, scoped: bool = True, include_grad: bool = True) -> Any:
        return scope(None if group is None else group % groups, scoped, include_grad)

    programs.build_one, programs.on, programs.device_of = build_one_on_gpu, scope_of_few, gpu
    programs.groups_used = lambda: {group for _, group in used()}
    programs.GROUPS, programs.VARIABLES = groups, len(gpus())
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
    first, count = 10000 * gpu_count, 8 * kit.PROGRAMS
    gpu_counts = {"TF_MULTI_STREAM_EMULATED_GPUS": str(gpu_count)}
    run(random_programs, first, first + count, groups, **gpu_counts, **variables)


def missing_groups() -> None:
    """Groups of the first GPU that the second lacks, in a function, a call, a session."""
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


def file_for_uneven_gpus() -> None:
    """The file names groups of the second GPU that the first lacks."""

    @tf.function
    def function(x: Any) -> Any:
        with tf.device("/GPU:0"), tf.name_scope("first"):
            x = tf.tanh(x)
        with tf.device("/GPU:1"), tf.name_scope("second"):
            return tf.sin(x)

    @tf.function
    def bad(x: Any) -> Any:
        with tf.device("/GPU:0"), tf.name_scope("second"):
            return tf.tanh(x, name="bad")

    x = tf.constant(numbers(0, 64, 64))
    assert np.allclose(function(x), np.sin(np.tanh(x)), atol=1e-6)
    assert used() == {(0, 0), (0, 1), (1, 0), (1, 3)}, used()
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"second/bad.* group 3, and the"):
        bad(x)


def test_gpus_with_different_numbers_of_groups(tmp_path: Path) -> None:
    """A group that only another GPU has is an error that names the node."""
    path = tmp_path / "streams.txt"
    path.write_text("1: first/.*\n3: second/.*\n", encoding="utf-8")
    run_all(
        [
            partial(run, missing_groups, TF_GPU_STREAM_GROUP_COUNT="4,2"),
            partial(
                run,
                file_for_uneven_gpus,
                TF_GPU_STREAM_GROUP_COUNT="2,4",
                TF_STREAM_FROM_FILE=str(path),
            ),
        ]
    )


def mirrored_training(strategy: Any, scoped: bool) -> list[Any]:
    """Losses and weights of replicas whose branches are in scopes."""
    with strategy.scope():
        v, w = (tf.Variable(numbers(k, 6, 6)) for k in range(2))
        optimizer = keras.optimizers.SGD(0.1, momentum=0.5)
        optimizer.jit_compile = False  # Keras 2 has XLA compile it, and an emulated GPU is a CPU
        optimizer.build([v, w])

    def replica(x: Any) -> Any:
        context = tf.distribute.get_replica_context()
        x *= 1.0 + tf.cast(context.replica_id_in_sync_group, tf.float32)
        with tf.GradientTape() as tape:
            with on(1, scoped):
                a = tf.tanh(tf.matmul(x, v))
            with on(2, scoped):
                b = tf.sin(tf.matmul(x, w))
            with on(None, scoped):
                loss = tf.reduce_mean(tf.math.squared_difference(a * b, x))
        optimizer.apply_gradients(
            [(g, u) for g, u in zip(tape.gradient(loss, [v, w]), [v, w], strict=True)]
        )
        with on(2, scoped):
            return loss + tf.reduce_sum(context.all_reduce("SUM", a))

    @tf.function
    def step(x: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(replica, args=(x,)), axis=None)

    data = strategy.experimental_distribute_dataset(
        tf.data.Dataset.from_tensor_slices(numbers(2, 40, 6)).batch(8),
        tf.distribute.InputOptions(experimental_fetch_to_device=False),
    )
    return [*[step(x).numpy() for x in data], v.numpy(), w.numpy()]


def replicas() -> None:
    """Runs each strategy without scopes, then with scopes."""
    names = ["/gpu:0", "/gpu:1"]
    ring = tf.distribute.experimental.CommunicationOptions(
        implementation=tf.distribute.experimental.CommunicationImplementation.RING
    )
    strategies = [
        tf.distribute.MirroredStrategy(names, tf.distribute.ReductionToOneDevice()),
        # By default the strategy takes the CPU, since it does not count emulated GPUs.
        tf.distribute.MultiWorkerMirroredStrategy._from_local_devices(names, ring),
    ]
    expected = [mirrored_training(strategy, False) for strategy in strategies]
    assert used() == leaders(), used()
    for strategy, results in zip(strategies, expected, strict=True):
        assert same(mirrored_training(strategy, True), results)
        assert used() == {(i, j) for i in gpus() for j in range(3)}, used()
    first, last = expected[0][0], expected[0][4]
    assert np.isfinite(first) and first != last


def test_replicas() -> None:
    """Copies and collective ops of strategies with scopes in replicas train the same weights."""
    run(replicas, TF_GPU_STREAM_GROUP_COUNT="3")
