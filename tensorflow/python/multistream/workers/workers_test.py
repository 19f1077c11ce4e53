# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps that reach a worker through TensorFlow's distributed runtime run on its stream groups.

The results are those of a worker without groups. A test names jobs, each of which runs in a
process of its own; together they are a cluster on this machine.
"""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tensorflow.compat.v1 as tf

from multistream.testing import cluster
from multistream.testing.deeprec import OFF, POLICIES, Clicks, config, waits
from multistream.testing.kit import in_process, run_threads, same


def sessions_on(server: Any, layers: cluster.Layers, kind: str) -> list[Any]:
    """Sessions with the server's devices, or with devices of their own.

    Their own have other variables than the server's ("isolated"), or other names ("cluster").
    """
    config = tf.ConfigProto(isolate_session_state=kind == "isolated")
    if kind == "cluster":
        address = server.target.removeprefix("grpc://")
        config.cluster_def.CopyFrom(tf.train.ClusterSpec({"other": [address]}).as_cluster_def())
    count = 2 if kind == "isolated" else 1
    return [tf.Session(server.target, graph=layers.graph, config=config) for _ in range(count)]


@pytest.mark.parametrize("kind", ["", "isolated", "cluster"])
@in_process(**cluster.GRAPH_LEVEL)
def test_queries_of_a_server_run_on_every_group(kind: str) -> None:
    """Eight clients of sessions get the right results, from every group."""
    layers = cluster.Layers()
    server = tf.train.Server.create_local_server()
    with layers.graph.as_default():
        scale = [tf.assign(w, w * 2.0) for w in layers.weights]
    expected = {}
    for i, session in enumerate(sessions_on(server, layers, kind)):
        session.run(layers.start)
        for _ in range(i):
            session.run(scale)
        expected[session] = [session.run(layers.y, {layers.x: feed}) for feed in cluster.FEEDS]
    assert len(expected) == 1 or not same(*expected.values())  # each session has its own variables

    def client(k: int) -> None:
        for i in range(40):
            j = (k + i) % len(cluster.FEEDS)
            for session, results in expected.items():
                assert same([session.run(layers.y, {layers.x: cluster.FEEDS[j]})], [results[j]])

    before = [s.steps_started for s in tf.cuda.stream_stats()]
    run_threads([partial(client, k) for k in range(8)])
    ran = [s.steps_started - b for s, b in zip(tf.cuda.stream_stats(), before, strict=True)]
    assert sum(ran) >= len(expected) * 8 * 40 and min(ran) > 0, ran


def take_turns(
    server: Any, spec: cluster.Spec, task: int, folder: Path, model: Any, feeds: Sequence[Any]
) -> list[Any]:
    """Makes a step for each of the feeds, after the steps of the worker before this one.

    Returns:
      Losses of this worker's steps, and the weights after those of all workers.
    """
    with model.graph.as_default(), tf.device("/job:ps/task:0/device:CPU:0"):
        step = tf.train.get_or_create_global_step()
        advance = tf.assign_add(step, 1)
    workers = len(spec["worker"])
    ready = folder / "chief"
    if task > 0:  # otherwise it would look for variables now, and again after 30 seconds
        cluster.until(ready.exists)
    with (
        model.graph.as_default(),
        tf.train.MonitoredTrainingSession(server.target, is_chief=task == 0) as session,
    ):
        ready.touch()
        cluster.until(lambda: session.run(step) >= len(feeds) * task)
        losses = []
        for feed in feeds:
            losses.append(session.run([model.loss, model.train], {model.x: feed})[0])
            session.run(advance)
        cluster.until(lambda: session.run(step) >= len(feeds) * workers)
        weights = session.run(model.weights)
        (folder / f"worker{task}").touch()
        # If a worker ended now, its part of the cluster would end, too.
        cluster.until(lambda: all((folder / f"worker{i}").exists() for i in range(workers)))
    return [*losses, *weights]


# Programs for DeepRec. The branches are marked, and a policy may use group 1 for the rest.


NO_STREAMS = "no streams"
MARKS, COST = POLICIES[1], POLICIES[-1]
STEPS = 6


def serve_each(specs: dict[str, cluster.Spec], folder: str) -> None:
    """The parameter server of several clusters."""
    servers = [cluster.make_server(spec, "ps", 0) for spec in specs.values()]
    cluster.until((Path(folder) / "ended").exists, seconds=300)
    del servers


def train_with_each_policy(specs: dict[str, cluster.Spec], task: int, folder: str) -> None:
    """A worker of a cluster for each policy; half of the tables are on the GPU of each worker."""
    tf.disable_v2_behavior()
    gpus = [f"/job:worker/task:{i}/device:GPU:0" for i in range(2)]
    forms = {name: config(use=OFF) if name == NO_STREAMS else config(4, name) for name in specs}
    # The first server determines the number of streams of the whole process.
    servers = {
        name: cluster.make_server(specs[name], "worker", task, forms[name]) for name in specs
    }
    found: dict[str, list[Any]] = {}
    waited: dict[str, list[int]] = {}
    # NO_STREAMS first: a variable's first change waits for the reads of all earlier sessions.
    for policy, spec in reversed(specs.items()):
        clicks = Clicks(
            branches=(2, 3), device=cluster.worker_device(spec, task), table_devices=gpus
        )
        signs = Path(folder) / policy
        signs.mkdir(exist_ok=True)
        before = waits()
        feeds = [clicks.fed(i) for i in range(STEPS)]
        found[policy] = take_turns(servers[policy], spec, task, signs, clicks, feeds)
        waited[policy] = [b - a for a, b in zip(before, waits(), strict=True)]
    expected = found.pop(NO_STREAMS)
    assert expected[STEPS - 1] < expected[0]
    assert not any(waited.pop(NO_STREAMS))
    for policy, results in found.items():
        assert same(results, expected), policy
        leader, free, *marked = waited[policy]
        assert min(leader, *marked) > STEPS, waited
        assert (free > 0) == (policy == COST), waited  # only COST moves unmarked nodes


def test_programs_for_deeprec_train_what_one_stream_trains(tmp_path: Path) -> None:
    specs = {name: cluster.make_spec(ps=1, worker=2) for name in (MARKS, COST, NO_STREAMS)}
    variables = {
        "TF_GPU_STREAM_GROUP_COUNT": "",
        "TF_NODE_LEVEL_MULTISTREAM": "",
        "TF_MULTI_STREAM_MEASURE": "false",
    }
    tasks: list[cluster.Task] = [(serve_each, (specs, str(tmp_path)), variables)]
    for i in (1, 0):
        tasks.append((train_with_each_policy, (specs, i, str(tmp_path)), variables))
    cluster.run_all(tasks, tmp_path)
