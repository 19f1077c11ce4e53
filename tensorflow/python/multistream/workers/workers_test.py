# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps that reach a worker through TensorFlow's distributed runtime run on its stream groups.

The results are those of a worker without groups. A test names jobs, each of which runs in a
process of its own; together they are a cluster on this machine.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from google.protobuf import text_format

from multistream.testing import kit
from multistream.testing.cluster import (
    GRAPH_LEVEL,
    NODE_LEVEL,
    ONE_STREAM,
    Spec,
    Task,
    line_of,
    make_server,
    make_spec,
    numbers,
    run_all,
    serve_until_the_client_ends,
    until,
)
from multistream.testing.deeprec import OFF, POLICIES, Clicks, config, waits
from multistream.testing.kit import groups_used, run_job, run_threads, same
from multistream.testing.layers import FEEDS, Layers


def steps_that_work() -> list[int]:
    """Number of steps that each group has run without an error."""
    return [s.steps_started for s in tf.cuda.stream_stats()]


# One worker, with sessions in the worker's process.


def run_queries(layers: Layers, expected: dict[Any, list[Any]]) -> None:
    """Eight clients of sessions get the right results, from every group."""

    def client(k: int) -> None:
        for i in range(40):
            j = (k + i) % len(FEEDS)
            for session, results in expected.items():
                assert same([session.run(layers.y, {layers.x: FEEDS[j]})], [results[j]])

    before = steps_that_work()
    run_threads([lambda k=k: client(k) for k in range(8)])
    ran = [a - b for a, b in zip(steps_that_work(), before, strict=True)]
    assert sum(ran) >= len(expected) * 8 * 40 and min(ran) > 0, ran


def queries_of_a_server() -> None:
    layers = Layers()
    server = tf.train.Server.create_local_server()
    with tf.Session(server.target, graph=layers.graph) as session:
        session.run(layers.start)
        expected = [session.run(layers.y, {layers.x: feed}) for feed in FEEDS]

        run_queries(layers, {session: expected})


def test_queries_of_a_server_run_on_every_group() -> None:
    run_job(queries_of_a_server, **GRAPH_LEVEL)


def own_devices(server: Any, kind: str) -> Any:
    """A session's configuration, by which it has devices of its own.

    With other variables than the server's ("isolated"), or with other names ("cluster").
    """
    config = tf.ConfigProto(isolate_session_state=kind == "isolated")
    if kind == "cluster":
        address = server.target.removeprefix("grpc://")
        config.cluster_def.CopyFrom(tf.train.ClusterSpec({"other": [address]}).as_cluster_def())
    return config


def sessions_with_devices_of_their_own(kind: str) -> None:
    layers = Layers()
    server = tf.train.Server.create_local_server()
    config = own_devices(server, kind)
    with layers.graph.as_default():
        scale = [tf.assign(w, w * 2.0) for w in layers.weights]
    count = 2 if kind == "isolated" else 1
    sessions = [tf.Session(server.target, graph=layers.graph, config=config) for _ in range(count)]
    expected = {}
    for i, session in enumerate(sessions):
        session.run(layers.start)
        for _ in range(i):
            session.run(scale)
        expected[session] = [session.run(layers.y, {layers.x: feed}) for feed in FEEDS]
    assert count == 1 or not same(*expected.values())  # each session has its own
    run_queries(layers, expected)
    for session in sessions:
        losses = [session.run([layers.loss, layers.train], {layers.x: FEEDS[0]})[0] for _ in "123"]
        assert losses[-1] < losses[0]
        session.close()


@pytest.mark.parametrize("kind", ["isolated", "cluster"])
def test_sessions_whose_devices_are_their_own_run_on_every_group(kind: str) -> None:
    run_job(sessions_with_devices_of_their_own, kind, **GRAPH_LEVEL)


def training_on_a_server(scoped: bool, kind: str = "") -> None:
    results = []
    for marked in (scoped, False):
        layers = Layers(marked)
        server = tf.train.Server.create_local_server()
        config = own_devices(server, kind)
        with tf.Session(server.target, graph=layers.graph, config=config) as session:
            session.run(layers.start)
            feeds = {layers.x: FEEDS[0]}
            losses = [session.run([layers.loss, layers.train], feeds)[0] for _ in range(10)]
            assert losses[-1] < losses[0]
            results.append([*losses, *session.run(layers.weights)])
    assert same(*results)
    assert not scoped or {1, 2} <= groups_used()


@pytest.mark.parametrize("policy", ["", "cost", "full_graph"])
def test_training_on_a_server_gives_what_one_stream_gives(policy: str) -> None:
    run_job(training_on_a_server, not policy, **NODE_LEVEL, TF_MULTI_STREAM_POLICY=policy)


@pytest.mark.parametrize("kind", ["isolated", "cluster"])
def test_training_of_a_session_whose_devices_are_its_own(kind: str) -> None:
    run_job(training_on_a_server, True, kind, **NODE_LEVEL)


def training_asked_for_in_the_servers_config() -> None:
    text = """graph_options { rewrite_options { use_multi_stream: ON
        multi_stream_opts { multi_stream_num: 3 partition_policy: USER_DEFINED_PARTITION } } }"""
    layers = Layers(scoped=True)
    server = tf.train.Server.create_local_server(text_format.Parse(text, tf.ConfigProto()))
    with tf.Session(server.target, graph=layers.graph) as session:
        session.run(layers.start)
        session.run(layers.train, {layers.x: FEEDS[0]})
    assert {1, 2} <= groups_used()


def test_the_config_of_a_server_asks_for_streams() -> None:
    unset = dict.fromkeys(("TF_GPU_STREAM_GROUP_COUNT", "TF_NODE_LEVEL_MULTISTREAM"))
    run_job(training_asked_for_in_the_servers_config, **unset)


# Workers and a parameter server.


STEPS = 6


def worker_device(spec: Spec, task: int) -> Any:
    """Puts variables on the parameter server, and all else on a worker's GPU."""
    return tf.train.replica_device_setter(
        cluster=tf.train.ClusterSpec(spec),
        worker_device=f"/job:worker/task:{task}/device:GPU:0",
        ps_device="/job:ps/device:CPU:0",
    )


def take_turns(
    server: Any, spec: Spec, task: int, folder: Path, model: Any, feeds: Sequence[Any]
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
        until(ready.exists)
    with (
        model.graph.as_default(),
        tf.train.MonitoredTrainingSession(server.target, is_chief=task == 0) as session,
    ):
        ready.touch()
        until(lambda: session.run(step) >= len(feeds) * task)
        losses = []
        for feed in feeds:
            losses.append(session.run([model.loss, model.train], {model.x: feed})[0])
            session.run(advance)
        until(lambda: session.run(step) >= len(feeds) * workers)
        weights = session.run(model.weights)
        (folder / f"worker{task}").touch()
        # If a worker ended now, its part of the cluster would end, too.
        until(lambda: all((folder / f"worker{i}").exists() for i in range(workers)))
    return [*losses, *weights]


def train_in_turn(spec: Spec, task: int, folder: str, scoped: bool) -> None:
    """A worker that makes STEPS steps after those of the worker before it."""
    server = make_server(spec, "worker", task)
    layers = Layers(scoped, worker_device(spec, task))
    found = take_turns(server, spec, task, Path(folder), layers, [FEEDS[task]] * STEPS)
    if task == 0:
        print("weights", *(w.tobytes().hex() for w in found[STEPS:]))
    assert not scoped or {1, 2} <= groups_used()


def weights_trained(folder: Path, scoped: bool, **variables: str) -> list[str]:
    """Weights trained by a parameter server and two workers, of which the chief is last."""
    folder.mkdir()
    spec = make_spec(ps=1, worker=2)
    tasks: list[Task] = [(serve_until_the_client_ends, (spec, "ps", 0, str(folder)), variables)]
    tasks += [(train_in_turn, (spec, i, str(folder), scoped), variables) for i in (1, 0)]
    printed = run_all(tasks, folder)[-1]
    line: str = line_of(printed, "weights")
    return line.split()


def test_a_parameter_server_and_workers_train_what_they_train_without_groups(
    tmp_path: Path,
) -> None:
    expected = weights_trained(tmp_path / "one", False, **ONE_STREAM)
    assert len(expected) == 5
    assert weights_trained(tmp_path / "nodes", True, **NODE_LEVEL) == expected
    assert weights_trained(tmp_path / "graph", False, **GRAPH_LEVEL) == expected


# Programs for DeepRec. The branches are marked, and a policy may use group 1 for the rest.


NO_STREAMS = "no streams"


def serve_each(specs: dict[str, Spec], folder: str) -> None:
    """The parameter server of several clusters."""
    servers = [make_server(spec, "ps", 0) for spec in specs.values()]
    until((Path(folder) / "ended").exists, seconds=300)
    del servers


def train_with_each_policy(
    specs: dict[str, Spec], task: int, folder: str, steps: int, measure: bool
) -> None:
    """A worker of a cluster for each policy; half of the tables are on the GPU of each worker."""
    tf.disable_v2_behavior()
    gpus = [f"/job:worker/task:{i}/device:GPU:0" for i in range(2)]
    forms = {name: config(use=OFF) if name == NO_STREAMS else config(4, name) for name in specs}
    # The first server determines the number of streams of the whole process.
    servers = {name: make_server(specs[name], "worker", task, forms[name]) for name in specs}
    found: dict[str, list[Any]] = {}
    waited: dict[str, list[int]] = {}
    # NO_STREAMS first: a variable's first change waits for the reads of all earlier sessions.
    for policy, spec in reversed(specs.items()):
        clicks = Clicks(branches=(2, 3), device=worker_device(spec, task), table_devices=gpus)
        signs = Path(folder) / policy
        signs.mkdir(exist_ok=True)
        before = waits()
        feeds = [clicks.fed(i) for i in range(steps)]
        found[policy] = take_turns(servers[policy], spec, task, signs, clicks, feeds)
        waited[policy] = [b - a for a, b in zip(before, waits(), strict=True)]
    expected = found.pop(NO_STREAMS)
    assert expected[steps - 1] < expected[0]
    assert not any(waited.pop(NO_STREAMS))
    for policy, results in found.items():
        assert same(results, expected), policy
        leader, free, *marked = waited[policy]
        assert min(leader, *marked) > steps, waited
        if policy in POLICIES[:2]:  # these policies do not move unmarked nodes
            assert free == 0, waited
        elif policy != "COST_PARTITION" or not measure:  # COST_PARTITION may find no gain
            assert free > 0, waited


@pytest.mark.parametrize(
    ("policies", "measure", "steps"),
    [(POLICIES, False, 6), (POLICIES[2:], True, 60)],
    ids=["at once", "measured"],
)
def test_programs_for_deeprec_train_what_one_stream_trains_with_each_policy(
    policies: Sequence[str], measure: bool, steps: int, tmp_path: Path
) -> None:
    specs = {name: make_spec(ps=1, worker=2) for name in (*policies, NO_STREAMS)}
    variables = {
        "TF_GPU_STREAM_GROUP_COUNT": "",
        "TF_NODE_LEVEL_MULTISTREAM": "",
        "TF_MULTI_STREAM_MEASURE": str(measure),
    }
    tasks: list[Task] = [(serve_each, (specs, str(tmp_path)), variables)]
    for i in (1, 0):
        arguments = (specs, i, str(tmp_path), steps, measure)
        tasks.append((train_with_each_policy, arguments, variables))
    run_all(tasks, tmp_path)


def across_workers(spec: Spec, folder: str) -> None:
    """Tensors go from the groups of one worker's GPU to another worker's groups and back."""
    server = make_server(spec, "worker", 0)
    graph = tf.Graph()
    with graph.as_default():
        with tf.device("/job:worker/task:0/device:GPU:0"):
            x = tf.placeholder(tf.float32, [None, 32])
            w = tf.get_variable("w", initializer=numbers(1, 32, 32), use_resource=True)
            here = tf.tanh(x @ w)
        with tf.device("/job:worker/task:1/device:GPU:0"):
            v = tf.get_variable("v", initializer=numbers(2, 32, 32), use_resource=True)
            there = tf.sin(here @ v)
            rows = tf.shape(there)[0]
        with tf.device("/job:worker/task:0/device:GPU:0"):
            back = tf.reduce_sum(there * here, 1) + tf.cast(rows, tf.float32)
        start = tf.global_variables_initializer()
    with tf.Session(server.target, graph=graph) as session:
        session.run(start)
        expected = [session.run(back, {x: feed}) for feed in FEEDS]
        for feed, result in zip(FEEDS, expected, strict=True):
            a = np.tanh(feed @ numbers(1, 32, 32))
            right = (np.sin(a @ numbers(2, 32, 32)) * a).sum(1) + len(feed)
            np.testing.assert_allclose(result, right, rtol=1e-4)

        def client(k: int) -> None:
            for i in range(20):
                j = (k + i) % len(FEEDS)
                assert same([session.run(back, {x: FEEDS[j]})], [expected[j]])

        run_threads([lambda k=k: client(k) for k in range(6)])
    assert len(groups_used()) == kit.GROUPS


def test_tensors_between_the_groups_of_two_workers(tmp_path: Path) -> None:
    spec = make_spec(worker=2)
    other: Task = (serve_until_the_client_ends, (spec, "worker", 1, str(tmp_path)), GRAPH_LEVEL)
    run_all([other, (across_workers, (spec, str(tmp_path)), GRAPH_LEVEL)], tmp_path)
