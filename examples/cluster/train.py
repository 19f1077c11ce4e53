# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Train a recommender on workers that share parameter servers, each worker with stream groups.

The same program runs on every machine; TF_CONFIG says who it is there, as compose.yaml shows. A
parameter server keeps variables in its memory and needs no GPU. Each worker reads batches of its
own, runs the towers of the model on stream groups of its GPU, and updates the shared variables.
"""

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

STEPS = 300  # of all workers together
USERS, ITEMS, WIDTH, BATCH = 200, 100, 16, 256


def batches(seed: int) -> Iterator[tuple[Any, Any, Any]]:
    """Users, items and ratings that two hidden tables explain."""
    hidden = np.random.RandomState(0)
    of_users, of_items = hidden.randn(USERS, 4), hidden.randn(ITEMS, 4)
    random = np.random.RandomState(seed)
    while True:
        users, items = random.randint(USERS, size=BATCH), random.randint(ITEMS, size=BATCH)
        yield users, items, (of_users[users] * of_items[items]).sum(1) > 0


def tower(ids: Any, rows: int, name: str) -> Any:
    """An embedding, and two layers."""
    start = tf.random_normal_initializer(stddev=0.5, seed=1)
    table = tf.get_variable(f"{name}_table", [rows, WIDTH], None, start, use_resource=True)
    hidden = tf.nn.embedding_lookup(table, ids)
    for i in range(2):
        weights = tf.get_variable(f"{name}_{i}", [WIDTH, WIDTH], None, start, use_resource=True)
        hidden = tf.tanh(hidden @ weights)
    return hidden


def main() -> None:
    """Serves, or trains."""
    config = json.loads(os.environ["TF_CONFIG"])
    cluster = tf.train.ClusterSpec(config["cluster"])
    job, task = config["task"]["type"], config["task"]["index"]
    server = tf.train.Server(cluster, job_name=job, task_index=task)
    if job == "ps":
        server.join()  # until it is stopped

    worker = f"/job:worker/task:{task}"
    setter = tf.train.replica_device_setter(
        cluster=cluster, worker_device=f"{worker}/GPU:0", ps_device="/job:ps/CPU:0"
    )
    with tf.Graph().as_default() as graph, tf.device(setter):
        users, items = (tf.placeholder(tf.int32, [None]) for _ in range(2))
        liked = tf.placeholder(tf.float32, [None])
        with tf.stream(1):
            of_users = tower(users, USERS, "user")
        with tf.stream(2):
            of_items = tower(items, ITEMS, "item")
        logits = tf.reduce_sum(of_users * of_items, axis=1)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=liked, logits=logits)
        loss = tf.reduce_mean(losses)
        step = tf.train.get_or_create_global_step()
        train = tf.train.AdagradOptimizer(0.3).minimize(loss, global_step=step)

    # A worker talks to the parameter servers, not to other workers, and outlives those.
    only = tf.ConfigProto(device_filters=["/job:ps", worker])
    found = []
    with (
        graph.as_default(),
        tf.train.MonitoredTrainingSession(
            server.target,
            is_chief=task == 0,
            hooks=[tf.train.StopAtStepHook(last_step=STEPS)],
            config=only,
        ) as session,
    ):
        print(f"worker {task}: trains", flush=True)
        for batch in batches(seed=1 + task):
            if session.should_stop():
                break
            feeds = dict(zip((users, items, liked), batch, strict=True))
            found.append(session.run([loss, train], feeds)[0])

    groups = [s.group for s in tf.cuda.stream_stats() if s.peak_bytes_in_use > 0]
    first, last = np.mean(found[:10]), np.mean(found[-10:])
    print(f"worker {task}: {len(found)} steps on groups {groups}, loss {first:.3f} -> {last:.3f}")


if __name__ == "__main__":
    main()
