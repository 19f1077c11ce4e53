# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A program as DeepRec's users write it: the session's configuration asks for streams.

    python examples/deeprec_program.py
    TF_MULTI_STREAM_EMULATED_GPUS=1 python examples/deeprec_program.py    # without a GPU

No other variable needs to be set. The same graph also runs with use_multi_stream OFF, on
one stream: the results must be the same bits.
"""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.core.protobuf import rewriter_config_pb2

tf.disable_v2_behavior()

STREAMS = 3
ROWS, BATCH, WIDTH = 1000, 64, 32


def config(use_multi_stream: int) -> tf.ConfigProto:
    """A session's configuration with DeepRec's fields."""
    made = tf.ConfigProto(allow_soft_placement=True)
    rewrite = made.graph_options.rewrite_options
    rewrite.use_multi_stream = use_multi_stream
    rewrite.multi_stream_opts.multi_stream_num = STREAMS
    # The runtime could choose: EMBEDDING_GRAPH_PARTITION, FULL_GRAPH_PARTITION.
    rewrite.multi_stream_opts.partition_policy = rewriter_config_pb2.USER_DEFINED_PARTITION
    return made


random = np.random.default_rng(1)
user_ids, item_ids = random.integers(0, ROWS, [2, BATCH])
tables = random.normal(size=[2, ROWS, WIDTH]).astype(np.float32)
labels = random.normal(size=[BATCH]).astype(np.float32)

with tf.Graph().as_default() as graph, tf.device("/GPU:0"):
    users, items = (tf.placeholder(tf.int64, [BATCH]) for _ in range(2))
    with tf.stream(1):  # a number from 0 to STREAMS - 1
        user_table = tf.Variable(tables[0], use_resource=True)
        user = tf.nn.embedding_lookup(user_table, users)
    with tf.stream(2):
        item_table = tf.Variable(tables[1], use_resource=True)
        item = tf.nn.embedding_lookup(item_table, items)
    score = tf.reduce_sum(user * item, axis=1)
    loss = tf.reduce_mean(tf.squared_difference(score, labels))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    initialize = tf.global_variables_initializer()


def losses(use_multi_stream: int) -> list[float]:
    """Trains in a session of its own; returns the loss of each step."""
    with tf.Session(graph=graph, config=config(use_multi_stream)) as session:
        session.run(initialize)
        feeds = {users: user_ids, items: item_ids}
        return [session.run([loss, train], feeds)[0] for _ in range(20)]


# First the session that asks for streams: they are made once per process.
several = losses(rewriter_config_pb2.RewriterConfig.ON)
used = [stats.group for stats in tf.cuda.stream_stats() if stats.peak_bytes_in_use]
one = losses(rewriter_config_pb2.RewriterConfig.OFF)
print(f"streams used: {used}; loss {several[0]:.6f} -> {several[-1]:.6f}")
print("the losses are those of one stream:", several == one)
assert several == one
