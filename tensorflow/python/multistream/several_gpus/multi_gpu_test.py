# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A v1 program with towers on several GPUs gives the results of one group per GPU."""

import contextlib
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from multistream.testing import kit

CPU = "/cpu:0"
BATCH, WIDTH = 12, 6  # rows divide by 3 GPUs
STEPS = 6
READS = 8  # read-only steps, more than a GPU has groups


class Setup:
    """The GPUs on which the programs run, and whether their branches are on streams."""

    def __init__(self, scoped: bool) -> None:
        self.scoped = scoped
        self.gpus = [f"/gpu:{i}" for i in range(len(tf.config.list_physical_devices("GPU")))]

    def branch(self, number: int) -> Any:
        """The stream of a branch; each GPU has two at least."""
        return tf.stream(number % 2) if self.scoped else contextlib.nullcontext()


def session(graph: Any) -> Any:
    """A session configured as programs for several GPUs configure theirs."""
    config = tf.ConfigProto()
    config.gpu_options.allow_growth = True
    config.gpu_options.per_process_gpu_memory_fraction = 0.4
    made = tf.Session(graph=graph, config=config)
    with graph.as_default():
        made.run(tf.global_variables_initializer())
    return made


def devices_of(made: Any, fetches: Any, feeds: Any) -> dict[str, str]:
    """The device of each op of a step, such as "GPU:1"."""
    metadata = tf.RunMetadata()
    options = tf.RunOptions(output_partition_graphs=True)
    made.run(fetches, feeds, options=options, run_metadata=metadata)
    return {
        node.name: node.device.split("device:")[-1]
        for graph in metadata.partition_graphs
        for node in graph.node
    }


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


class LeastLoaded:
    """Places variables where the fewest bytes of them are, and all else on one GPU.

    Args:
      gpu: for all else.
      loads: bytes of the variables on each device, which all towers count together.
    """

    def __init__(self, gpu: str, loads: dict[str, int]) -> None:
        self._gpu = gpu
        self._loads = loads

    def __call__(self, op: Any) -> str:
        if op.type not in ("VariableV2", "VarHandleOp"):
            return self._gpu
        chosen = min(self._loads, key=lambda name: self._loads[name])
        (variable,) = op.outputs
        self._loads[chosen] += variable.shape.num_elements() * variable.dtype.size
        return chosen


def tower(setup: Setup, x: Any, labels: Any) -> None:
    """A tower's losses, in the collection of its scope; all towers share the variables."""
    ends = []
    for k in range(2):
        with setup.branch(k), tf.variable_scope(f"branch{k}"):
            w = tf.get_variable("w", [WIDTH, 8])
            b = tf.get_variable("b", [8], initializer=tf.constant_initializer(0.125))
            hidden = tf.nn.relu(tf.matmul(x, w) + b)
            ends.append(tf.matmul(hidden, tf.get_variable("out", [8, 3])))
            tf.add_to_collection("losses", 1e-3 * tf.nn.l2_loss(w))
    errors = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=tf.add_n(ends))
    tf.add_to_collection("losses", tf.reduce_mean(errors))


def towers(setup: Setup) -> list[Any]:
    """Losses, gradients and weights of towers that share a batch out; each device has variables."""
    loads = dict.fromkeys([CPU, *setup.gpus], 0)
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(13)
        x = tf.placeholder(tf.float32, [BATCH, WIDTH])
        labels = tf.placeholder(tf.int32, [BATCH])
        with tf.device(CPU):
            parts = zip(
                tf.split(x, len(setup.gpus)), tf.split(labels, len(setup.gpus)), strict=True
            )
        losses, gradients = [], []
        for i, part in enumerate(parts):
            with (
                tf.variable_scope("model", reuse=i > 0),
                tf.name_scope(f"tower{i}") as scope,
                tf.device(LeastLoaded(setup.gpus[i], loads)),
            ):
                tower(setup, *part)
                losses.append(tf.add_n(tf.get_collection("losses", scope), name="loss"))
                gradients.append(tf.gradients(losses[-1], tf.trainable_variables()))
        variables = tf.trainable_variables()
        with tf.device(setup.gpus[0]):
            mean = [tf.reduce_mean(tf.stack(found), 0) for found in zip(*gradients, strict=True)]
            # Reference variables: reads must be done before a variable changes.
            with tf.control_dependencies([*losses, *mean]):
                train = tf.train.GradientDescentOptimizer(0.3).apply_gradients(
                    list(zip(mean, variables, strict=True))
                )
    with session(graph) as made:
        results = []
        for step in range(STEPS):
            feeds = {x: numbers(step, BATCH, WIDTH), labels: np.arange(BATCH) * (step + 1) % 3}
            reads = [made.run([*losses, *mean], feeds) for _ in range(READS)]
            results += made.run([*losses, *mean, train], feeds)[:-1]
            assert all(kit.same(found, results[-len(found) :]) for found in reads)
        placed = devices_of(made, [*losses, train], feeds)
        results += made.run(variables)
    assert [placed[loss.op.name] for loss in losses] == [f"GPU:{i}" for i in range(len(losses))]
    everywhere = {"CPU:0", *(f"GPU:{i}" for i in range(len(losses)))}
    assert {placed[v.op.name] for v in variables} == everywhere, placed
    # The comparison is meaningful only if training changes the weights.
    assert len({loss.tobytes() for loss in results[: -len(variables) : len(reads[0])]}) == STEPS
    return results


def run_towers(scoped: bool, path: str) -> None:
    """Trains; writes the results, and the steps and waits of each group."""
    setup = Setup(scoped)
    results = towers(setup)
    counts = {(s.gpu, s.group): (s.steps_started, s.waits) for s in tf.cuda.stream_stats()}
    Path(path).write_bytes(pickle.dumps((results, counts)))


def found(folder: Path, groups: str, node_level: bool) -> tuple[list[Any], Any]:
    """Results on three GPUs in a process of its own; branches have streams at node level."""
    path = folder / "results.pickle"
    kit.run_job(
        run_towers,
        node_level,
        str(path),
        first="jobs.tf.disable_v2_behavior()",
        TF_MULTI_STREAM_EMULATED_GPUS="3",
        TF_GPU_STREAM_GROUP_COUNT=groups,
        TF_NODE_LEVEL_MULTISTREAM=str(node_level).lower(),
    )
    results, counts = pickle.loads(path.read_bytes())
    return results, counts


def test_towers_on_several_gpus_give_the_bits_of_one_group(tmp_path: Path) -> None:
    """Whole steps on groups, and branches of towers on groups."""
    expected, _ = found(tmp_path, "1", node_level=False)
    for node_level in (False, True):
        results, counts = found(tmp_path, "2,3,2", node_level)
        assert kit.same(results, expected)
        assert list(counts) == [(i, j) for i, size in enumerate((2, 3, 2)) for j in range(size)]
        if node_level:
            assert all(counts[i, j][1] > 0 for i in range(3) for j in range(2)), counts
        else:
            assert all(steps > 0 for steps, _ in counts.values()), counts
