# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A server on two GPUs has all models on both, and each call runs on the one with the fewest."""

import collections
import json
import pathlib
import re
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import serving_kit
import tensorflow as tf
from kserve_messages import MESSAGES
from serving_kit import (
    FRONT,
    REST_PREDICT,
    VARIABLE_BYTES,
    Saved,
    Server,
    request,
    run_here,
    slow,
    until,
)
from tensorflow_serving.apis import get_model_status_pb2

TWO = {"TF_MULTI_STREAM_EMULATED_GPUS": "2", "TF_GPU_STREAM_GROUP_COUNT": "2,3"}
FAILS = 7  # a version that does not load on the second GPU
BEFORE = f"""
import gc, weakref
import tensorflow as tf
from tensorflow.python.eager import context
load = tf.saved_model.load
def load_or_fail(folder, **more):
    if folder.endswith("/{FAILS}") and context.context().device_name.endswith("GPU:1"):
        raise ValueError("no room")
    loaded = load(folder, **more)
    if folder.endswith("/{FAILS}"):
        graph = loaded.signatures["slow"].graph
        weakref.finalize(graph, print, "the first GPU has dropped it", flush=True)
    return loaded
tf.saved_model.load = load_or_fail
gc.disable()  # garbage is collected where the server says so
"""


@pytest.fixture(
    scope="module",
    params=[
        ("--device=/GPU:0,/GPU:1",),
        ("--device=all-gpus", f"--front={FRONT}", "--max-batch=4", "--poll-seconds=0.1"),
    ],
    ids=["", "front"],
)
def on_two(
    request: pytest.FixtureRequest, saved: Saved, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, pathlib.Path]]:
    """A server of version 1 on two GPUs, and the model's folder."""
    folder = tmp_path_factory.mktemp("two")
    toy = saved.copy(folder / "toy", 1)
    options = (f"--model=toy={toy}", "--poll-seconds=0.1", *request.param)
    with serving_kit.serving(*options, log=folder / "log", before=BEFORE, **TWO) as server:
        yield server, toy


def figures(server: Server, field: str) -> dict[tuple[int, int], float]:
    """A figure of each stream group, by GPU and group."""
    found = server.metric(f"model_server_group_{field}")
    return {
        (int(gpu), int(group)): figure
        for labels, figure in found.items()
        for gpu, group in [re.findall(r'"(\d+)"', labels)]
    }


class Steps:
    """How many steps each GPU was given since this was made."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._before = self._now()

    def _now(self) -> collections.Counter[int]:
        found: collections.Counter[int] = collections.Counter()
        for (gpu, _), count in figures(self._server, "steps_started_total").items():
            found[gpu] += int(count)
        return found

    def __call__(self) -> list[int]:
        now = self._now()
        return [now[gpu] - self._before[gpu] for gpu in range(2)]


def test_every_group_of_both_gpus_is_warm(on_two: tuple[Server, pathlib.Path]) -> None:
    started = figures(on_two[0], "steps_started_total")
    assert sorted(started) == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)]
    assert min(started.values()) >= 3
    assert "no warm-up" not in on_two[0].text()
    assert "serving_default, do not share steps" not in on_two[0].text()


def test_variables_of_both_gpus_are_a_versions_memory(on_two: tuple[Server, pathlib.Path]) -> None:
    assert on_two[0].by_version("variable_bytes") == {1: 2 * VARIABLE_BYTES}


def test_calls_of_each_api_are_spread_over_both_gpus(
    saved: Saved, on_two: tuple[Server, pathlib.Path]
) -> None:
    server, _ = on_two
    until(server.idle)
    infer = {
        "inputs": [
            {"name": "x", "datatype": "FP32", "shape": [16, 8], "data": saved.x.ravel().tolist()}
        ]
    }
    typed = MESSAGES["ModelInferRequest"](model_name="toy")
    given = typed.inputs.add(name="x", datatype="FP32", shape=[16, 8])
    given.contents.fp32_contents.extend(saved.x.ravel().tolist())
    method = server.channel.unary_unary(
        "/inference.GRPCInferenceService/ModelInfer",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=MESSAGES["ModelInferResponse"].FromString,
    )

    def by_infer() -> Any:
        (output,) = method(typed, timeout=20).outputs
        return np.float32(output.contents.fp32_contents).reshape(output.shape)

    def by_rest_infer() -> Any:
        _, answer = server.rest("/v2/models/toy/infer", infer)
        return np.float32(answer["outputs"][0]["data"]).reshape(16, 4)

    for call in (
        lambda: server.predict(saved.x),
        lambda: server.rest(REST_PREDICT, {"inputs": saved.x.tolist()})[1]["outputs"],
        by_infer,
        by_rest_infer,
    ):
        steps = Steps(server)
        for _ in range(4):
            assert saved.right(1, call())
        assert steps() == [2, 2]


def test_a_slow_call_does_not_hold_up_others(
    saved: Saved, on_two: tuple[Server, pathlib.Path]
) -> None:
    server, _ = on_two
    until(server.idle)
    steps = Steps(server)
    call = server.predictions.Predict.future(slow(100_000), timeout=60)
    until(lambda: sum(steps()) == 1)
    busy = steps().index(1)
    for turn in range(5):
        saved.check(server, 1)
        status, _ = server.rest(REST_PREDICT, {"inputs": saved.x.tolist()})
        assert status == 200
        assert not call.done(), turn
    assert steps()[busy] == 1
    assert steps()[1 - busy] == 10
    assert call.result().outputs["y"]


def test_a_version_that_one_gpu_does_not_load_leaves_nothing(
    saved: Saved, on_two: tuple[Server, pathlib.Path]
) -> None:
    server, toy = on_two
    saved.copy(toy, 2, first=FAILS)
    asked = get_model_status_pb2.GetModelStatusRequest()
    asked.model_spec.name = "toy"
    asked.model_spec.version.value = FAILS
    until(lambda: f"toy version {FAILS} was not loaded" in server.text())
    (said,) = server.models.GetModelStatus(asked, timeout=20).model_version_status
    assert said.status.error_message == "RuntimeError: on /GPU:1: ValueError: no room"
    saved.check(server, 1)
    until(lambda: "the first GPU has dropped it" in server.text())


def test_versions_are_swapped_on_both_gpus_under_load(
    saved: Saved, on_two: tuple[Server, pathlib.Path]
) -> None:
    server, toy = on_two
    wrong: list[Any] = []
    ended = threading.Event()

    def client() -> None:
        while not ended.is_set():
            answer = server.predict(saved.x)
            if not saved.right(1, answer) and not saved.right(2, answer):
                wrong.append(answer)

    clients = [threading.Thread(target=client, daemon=True) for _ in range(4)]
    for each in clients:
        each.start()
    for number in (10, 11):
        saved.copy(toy, 2 if number == 10 else 1, first=number)
        until(lambda n=number: f"toy version {n} is served" in server.text(), 60)
    until(lambda: "toy version 10 is dropped" in server.text())
    ended.set()
    for each in clients:
        each.join(20)
    assert not wrong
    until(server.idle)
    steps = Steps(server)
    for _ in range(4):
        saved.check(server, 1)
    assert steps() == [2, 2]


def test_calls_that_share_steps_have_one_gpu(
    saved: Saved, on_two: tuple[Server, pathlib.Path]
) -> None:
    server, _ = on_two
    if "--max-batch=4" not in server.options:
        pytest.skip("calls share steps only with a front")
    until(server.idle)
    steps = Steps(server)
    asked = [request(x=saved.x[i : i + 1]) for i in range(16)]
    calls = [server.predictions.Predict.future(each, timeout=20) for each in asked * 8]
    for i, call in enumerate(calls):
        answer = tf.make_ndarray(call.result().outputs["y"])
        np.testing.assert_allclose(answer, saved.answers["y1"][i % 16 : i % 16 + 1], atol=1e-5)
    both = steps()
    assert min(both) > 0
    assert sum(both) < len(calls)


PROGRAM = """
import json, model_server, server_options
from device_names import devices_of
def said(*given):
    try: return devices_of(given)
    except OSError as error: return str(error)
cases = [[], ["/GPU:1"], ["gpu:1"], ["/GPU:1,/device:GPU:0"], ["/GPU:1", "/GPU:0"], ["all-gpus"],
         ["/CPU:0"], ["/GPU:2"], ["/GPU:0,/GPU:1,/GPU:2"], ["/XPU:0"], [""], ["/GPU:0,"],
         ["all-gpus,/GPU:0"], ["/GPU:1,/GPU:1"], ["/GPU:1", "/gpu:01"], ["/GPU:0,/CPU:0"]]
made = []
def stop(options, devices, served):
    made.append([list(devices.names), served._batching.steps])
    raise OSError("enough")
model_server._loaded_models = stop
def end(*arguments):
    sys.argv[1:] = arguments
    try: model_server.main()
    except SystemExit as error: return str(error.code)
ends = [end("--model=m=/tmp", "--front=/bin/true", "--max-batch=4", "--batch-steps=3", *more)
        for more in (["--device=all-gpus"], ["--device=/GPU:1"], ["--device=/GPU:7"],
                     ["--device=all-gpus", "--groups=m=1-2"],
                     ["--device=/GPU:1", "--groups=m=1-2"])]
print("SAID", json.dumps([{",".join(c) + f"#{len(c)}": said(*c) for c in cases}, made, ends]))
"""


def test_wrong_devices_are_named_with_what_there_is() -> None:
    done = run_here(PROGRAM, 60, **TWO)
    assert done.returncode == 0, done.stderr
    said, made, ends = json.loads(done.stdout.partition("SAID ")[2])
    there = "which has /CPU:0, /GPU:0, /GPU:1. Give one of these, several GPUs separated by commas"

    def unknown(name: str) -> str:
        return (
            f"--device {name!r} is not a device of this process, {there}, or all-gpus alone for "
            "all GPUs that there are."
        )

    twice = "--device /GPU:1 is given twice. Give each device once."
    mixed = "--device /GPU:0,/CPU:0 has a CPU beside GPUs. Give GPUs alone, or a CPU alone."
    assert said == {
        "#0": ["/GPU:0"],
        "/GPU:1#1": ["/GPU:1"],
        "gpu:1#1": ["/GPU:1"],
        "/GPU:1,/device:GPU:0#1": ["/GPU:1", "/GPU:0"],
        "/GPU:1,/GPU:0#2": ["/GPU:1", "/GPU:0"],
        "all-gpus#1": ["/GPU:0", "/GPU:1"],
        "/CPU:0#1": ["/CPU:0"],
        "/GPU:2#1": unknown("/GPU:2"),
        "/GPU:0,/GPU:1,/GPU:2#1": unknown("/GPU:2"),
        "/XPU:0#1": unknown("/XPU:0"),
        "#1": unknown(""),
        "/GPU:0,#1": unknown(""),
        "all-gpus,/GPU:0#1": unknown("all-gpus"),
        "/GPU:1,/GPU:1#1": twice,
        "/GPU:1,/gpu:01#2": twice,
        "/GPU:0,/CPU:0#1": mixed,
    }
    # --batch-steps is for each GPU.
    assert made == [[["/GPU:0", "/GPU:1"], 6], [["/GPU:1"], 3], [["/GPU:1"], 3]]
    lacks = "--groups m: there is no stream group 2 on /GPU:0, which has 2"
    assert ends == [
        f"model_server.py: {end}"
        for end in ("enough", "enough", unknown("/GPU:7"), lacks, "enough")
    ]
