# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""For tests of programs that ask for streams in DeepRec's way, by ConfigProto."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf import rewriter_config_pb2

from multistream.testing import kit

ON, OFF = rewriter_config_pb2.RewriterConfig.ON, rewriter_config_pb2.RewriterConfig.OFF


def run(job: Callable[..., None], *arguments: object, **environment: str) -> str:
    """Runs a job, which must succeed; returns the job's stderr."""
    unset = dict.fromkeys(("TF_GPU_STREAM_GROUP_COUNT", "TF_NODE_LEVEL_MULTISTREAM"))
    done = kit.run_job(
        job,
        *arguments,
        first="jobs.tf.disable_v2_behavior()",
        **{**unset, **environment},
    )
    return str(done.stderr)


def config(streams: int | None = 2, policy: str | None = None, use: int = ON) -> Any:
    """A ConfigProto that asks for streams."""
    made = tf.ConfigProto()
    rewrite = made.graph_options.rewrite_options
    rewrite.use_multi_stream = use
    if streams is not None:
        rewrite.multi_stream_opts.multi_stream_num = streams
    if policy is not None:
        value = rewriter_config_pb2.MultiStreamPartitionPolicy.Value(policy)
        rewrite.multi_stream_opts.partition_policy = value
    return made


def waits() -> list[int]:
    """Number of each group's waits for other groups."""
    return [group.waits for group in tf.cuda.stream_stats()]


POLICIES = (
    "NO_PARTITION",
    "USER_DEFINED_PARTITION",
    "EMBEDDING_GRAPH_PARTITION",
    "FULL_GRAPH_PARTITION",
    "COST_PARTITION",
)


def _turn(i: int, streams: Sequence[int]) -> Any:
    return tf.stream(streams[i % len(streams)]) if streams else contextlib.nullcontext()


class Clicks:
    """A recommender of four embedding tables and two dense branches, in a graph of its own.

    Args:
      tables: streams of the lookups, used in turn; empty for no scopes.
      branches: streams of the two branches; empty for no scopes.
      device: device of all ops that are not tables, as for tf.device.
      table_devices: devices of the tables, used in turn.
    """

    def __init__(
        self,
        tables: Sequence[int] = (),
        branches: Sequence[int] = (),
        device: Any = None,
        table_devices: Sequence[Any] = (None,),
    ) -> None:
        self.graph = tf.Graph()
        with self.graph.as_default(), tf.device(device):
            tf.set_random_seed(1)
            self.x = tf.placeholder(tf.int64, [4, 16])
            found = []
            for i in range(4):
                with _turn(i, tables), tf.device(table_devices[i % len(table_devices)]):
                    table = tf.get_variable(f"table{i}", [50, 8])
                    found.append(tf.nn.embedding_lookup(table, self.x[i]))
            x = tf.concat(found, 1)
            ends = []
            for i in range(2):
                with _turn(i, branches):
                    y = x
                    for layer in range(3):
                        w = tf.get_variable(f"w{i}{layer}", [y.shape[1], 12])
                        y = tf.tanh(tf.matmul(y, w))
                    ends.append(tf.reduce_sum(y, 1))
            self.loss = tf.reduce_mean(tf.square(ends[0] * ends[1] - 1.0))
            self.train = tf.train.AdagradOptimizer(0.1).minimize(self.loss)
            self.start = tf.global_variables_initializer()
            self.weights = tf.trainable_variables()

    @staticmethod
    def fed(step: int) -> Any:
        """The ids of a step."""
        return (np.random.RandomState(3).randint(0, 50, [4, 16]) + step) % 50

    def trained(self, form: Any, steps: int = 20) -> list[Any]:
        """Trains in a session of its own; returns the steps' losses, then the weights."""
        with tf.Session(graph=self.graph, config=form) as session:
            session.run(self.start)
            step = session.make_callable([self.loss, self.train], [self.x])
            losses = [step(self.fed(i))[0] for i in range(steps)]
            return [*losses, *session.run(self.weights)]
