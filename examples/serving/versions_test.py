# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Versions are swapped under load: no call fails, and no answer is of neither version."""

import contextlib
import gc
import pathlib
import threading
import types
import weakref
from collections.abc import Callable
from typing import Any

import grpc
import model_versions
import numpy as np
import pytest
import tensorflow as tf
from call_queue import CallQueue
from kserve_messages import MESSAGES, SERVICE
from loaded_model import LoadedModel
from model_config import MOST_VERSION, ModelConfig
from model_versions import Model, State
from server_metrics import ServerMetrics
from serving_error import ServingError
from serving_kit import (
    FOREVER,
    FRONT,
    REST_PREDICT,
    VARIABLE_BYTES,
    Saved,
    Server,
    failure,
    request,
    slow,
    until,
)
from tensorflow.python.multistream.serving.served_models import Devices
from tensorflow_serving.apis import get_model_status_pb2, predict_pb2, prediction_log_pb2

THREADS = 4
SWAPS = 4


def state(server: Server, version: int) -> int | None:
    """State of a version, if the server knows it."""
    asked = get_model_status_pb2.GetModelStatusRequest()
    asked.model_spec.name = "toy"
    found = server.models.GetModelStatus(asked, timeout=20).model_version_status
    return next((int(status.state) for status in found if status.version == version), None)


@pytest.mark.parametrize("option", ["", "--lock-free", f"--front={FRONT}"])
def test_swap_under_load_fails_no_call_and_a_version_stays_until_its_last_call_has_ended(
    saved: Saved, serve: Any, tmp_path: pathlib.Path, option: str
) -> None:
    options = ["--poll-seconds=0.1", *[option] * bool(option)]
    with serve(*options, TF_MULTI_STREAM_CAPTURE="auto" if option else "off") as server:
        swap_and_hold(saved, server, tmp_path / "toy", bool(option))


def swap_and_hold(saved: Saved, server: Server, toy: pathlib.Path, lock_free: bool) -> None:
    answers: list[bytes] = []
    failed: list[str] = []
    assert server.by_version("calls_total") == {1: 0}  # warming up is no call
    recordings: list[float] = []
    stopped = threading.Event()

    def call_on(by_rest: bool) -> None:
        while not stopped.is_set():
            try:
                if by_rest:
                    _, answer = server.rest(REST_PREDICT, {"instances": saved.x.tolist()})
                    answers.append(np.float32(answer["predictions"]).tobytes())
                else:
                    answers.append(server.predict(saved.x).tobytes())
            except Exception as error:
                failed.append(str(error))

    threads = [threading.Thread(target=call_on, args=(i == 0,)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    until(lambda: len(answers) > 50)
    for version in range(2, 2 + SWAPS):  # by turns the contents of version 2 and of version 1
        saved.copy(toy, 2 - version % 2, first=version)
        until(lambda version=version: state(server, version) == State.AVAILABLE)
        until(lambda version=version: state(server, version - 1) == State.END)
        seen = len(answers)
        until(lambda seen=seen: len(answers) > seen + 50)
        recordings.append(server.total("model_server_group_recordings"))
    stopped.set()
    for thread in threads:
        thread.join()
    assert failed == []
    assert max(recordings) <= recordings[0]  # a dropped version's are gone
    assert set(answers) == {saved.answers[y].tobytes() for y in ("y1", "y2")}
    saved.check(server, 1)
    assert server.calls("Predict", "OK") >= len(answers)
    assert server.calls("Predict", "INTERNAL") == 0

    # Calls by tf.cuda.serving_callable run to their end.
    call = server.predictions.Predict.future(slow(200_000 if lock_free else FOREVER))
    until(server.running)
    saved.copy(toy, 1, first=2 + SWAPS)
    until(lambda: state(server, 1 + SWAPS) == State.UNLOADING)
    assert not call.done()
    computed = server.by_version("calls_total")
    assert computed.keys() == {1 + SWAPS, 2 + SWAPS} and computed[1 + SWAPS] > 50
    assert set(server.by_version("variable_bytes").values()) == {VARIABLE_BYTES}
    if lock_free:
        assert call.result().outputs["y"]
    else:
        call.cancel()
    until(lambda: state(server, 1 + SWAPS) == State.END, 30)
    for name in ("calls_total", "variable_bytes"):
        assert server.by_version(name).keys() == {2 + SWAPS}


def test_each_call_counts_once_for_the_version_that_computed_it(
    either_server: Server, saved: Saved
) -> None:
    """By each API; with --front also for what Python answers."""
    server = either_server
    rows = saved.x.tolist()
    infer = {"name": "x", "datatype": "FP32", "shape": [16, 8], "data": rows}

    def predict(number: str, filtered: bool = False) -> None:
        asked = request(x=saved.x)
        if number:
            asked.model_spec.version.value = int(number)
        asked.output_filter.extend(["y"] * filtered)
        server.predictions.Predict(asked, timeout=20)

    def by_infer(number: str) -> None:
        asked = MESSAGES["ModelInferRequest"](model_name="toy", model_version=number)
        given = asked.inputs.add(name="x", datatype="FP32", shape=saved.x.shape)
        given.contents.fp32_contents.extend(saved.x.ravel())
        method = server.channel.unary_unary(
            f"/{SERVICE}/ModelInfer", lambda message: message.SerializeToString()
        )
        assert method(asked, timeout=20)

    def by_rest(number: str, path: str, body: Any) -> None:
        version = f"/versions/{number}" if number else ""
        status, answer = server.rest(path.format(version), body)
        assert status == 200, answer

    ways: dict[str, Callable[[str], None]] = {
        "Predict": predict,
        "Predict, filtered": lambda number: predict(number, filtered=True),
        "ModelInfer": by_infer,
        "REST": lambda number: by_rest(number, "/v1/models/toy{}:predict", {"instances": rows}),
        "REST by Python": lambda number: by_rest(
            number, "/v1/models/t%6fy{}:predict", {"inputs": rows}
        ),
        "infer": lambda number: by_rest(number, "/v2/models/toy{}/infer", {"inputs": [infer]}),
    }
    until(server.idle)
    other = server.by_version("calls_total", "other")
    counts = server.by_version("calls_total")
    for name, call in ways.items():
        for number, version in (("", 2), ("1", 1), ("2", 2)):
            call(number)
            counts[version] += 1
            assert server.by_version("calls_total") == counts, (name, number)
    assert server.by_version("calls_total", "other") == other


def test_calls_that_fail_count_and_calls_that_are_refused_do_not(
    either_server: Server, saved: Saved
) -> None:
    server = either_server
    until(server.idle)
    counts = server.by_version("calls_total")
    unequal = {"a": [[1.0, 2.0]] * 2, "b": [1, 2, 3]}
    fails = request(signature="pair", a=np.float32(unequal["a"]), b=np.int32(unequal["b"]))
    filtered = predict_pb2.PredictRequest()
    filtered.CopyFrom(fails)
    filtered.output_filter.append("sum")
    for asked in (fails, filtered):
        code, _ = failure(lambda asked=asked: server.predictions.Predict(asked, timeout=20))
        assert code == grpc.StatusCode.INVALID_ARGUMENT
    body = {"signature_name": "pair", "inputs": unequal}
    assert server.rest(REST_PREDICT, body)[0] == 400
    counts[2] += 3
    assert server.by_version("calls_total") == counts

    unknown = request(x=saved.x)
    unknown.model_spec.version.value = 3
    for asked in (
        request(x=saved.x[:, :3]),
        request(x=saved.x.astype(np.float64)),
        request(z=saved.x),
        request(signature="none", x=saved.x),
        unknown,
    ):
        failure(lambda asked=asked: server.predictions.Predict(asked, timeout=20))
    assert server.rest(REST_PREDICT, {"instances": [[1.0]]})[0] == 400
    assert server.by_version("calls_total") == counts


@pytest.mark.parametrize("lock_free", [False, True])
def test_dropped_model_leaves_nothing_behind(saved: Saved, lock_free: bool) -> None:
    model = LoadedModel(saved.folder / "1", Devices(["/CPU:0"]), lock_free)
    model.warm_up()
    assert model.signature("")({"x": saved.x})["y"].shape == (16, 4)
    kept = [weakref.ref(model._models[0]), weakref.ref(model._models[0].signatures["slow"].graph)]
    del model
    gc.collect()
    assert [found() for found in kept] == [None, None]


def test_folder_whose_number_is_no_int64_is_ignored_and_said_once(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (1, MOST_VERSION, MOST_VERSION + 1, 20261130123456789012):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "saved_model.pb").touch()
    loaded = types.SimpleNamespace(signatures={})
    model = Model(ModelConfig("toy", tmp_path, latest=None), lambda name, folder: loaded)
    for _ in range(3):
        model.poll()
    assert model.served() == [1, MOST_VERSION]
    said = sorted(record.getMessage() for record in caplog.records if "is no version" in record.msg)
    assert len(said) == 2 and f"{tmp_path / str(MOST_VERSION + 1)} is no version" in said[1]


@pytest.mark.parametrize("options", [(), (f"--front={FRONT}",)], ids=["", "front"])
def test_largest_version_is_served_by_each_api(
    saved: Saved, serve: Any, tmp_path: pathlib.Path, options: tuple[str, ...]
) -> None:
    saved.copy(tmp_path / "toy", 2, first=MOST_VERSION)
    with serve(*options) as server:
        saved.check(server, 2)
        asked = request(x=saved.x)
        asked.model_spec.version.value = MOST_VERSION
        answer = server.predictions.Predict(asked, timeout=20)
        assert answer.model_spec.version.value == MOST_VERSION
        assert state(server, MOST_VERSION) == State.AVAILABLE
        body = {"instances": saved.x.tolist()}
        for number in (f"{MOST_VERSION}", f"000{MOST_VERSION}"):
            status, found = server.rest(f"/v1/models/toy/versions/{number}:predict", body)
            assert status == 200 and saved.right(2, found["predictions"])
            assert server.rest(f"/v2/models/toy/versions/{number}/ready")[0] == 200
        status, found = server.rest(f"/v1/models/toy/versions/{MOST_VERSION + 1}:predict", body)
        assert status == 404 and f"0 to {MOST_VERSION}" in found["error"]


class Measured(tf.Module):
    """Variables of 60 + 56 + 32,000 + 4 + 24 + 10 bytes, and what is no variable."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = tf.Variable(tf.zeros([3, 5]))
        self.same = self.weights
        self.steps = tf.Variable(tf.zeros([7], tf.int64))
        self.embedding = tf.Variable(tf.zeros([1000, 16], tf.float16))
        self.layers = [{"scale": tf.Variable(1.0)}]
        self.grows = tf.Variable(tf.zeros([2, 3]), shape=[None, 3])
        self.unused = tf.Variable(tf.zeros([10], tf.bool))
        self.text = tf.Variable(["a", "b"])
        self.constant = tf.constant([1.0, 2.0, 3.0])
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(["a"], [1.0]), -1.0
        )

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def serving_default(self, ids: Any) -> Any:
        """Uses most of them."""
        found = tf.gather(self.embedding, ids)
        return {
            "y": tf.cast(found, tf.float32) * self.layers[0]["scale"],
            "grows": self.grows + self.constant * self.table.lookup(self.text[:1]),
            "steps": tf.reduce_sum(self.steps) + tf.cast(self.weights[0, 0], tf.int64),
        }


@pytest.mark.parametrize("devices", [1, 2])
def test_variables_are_measured_to_the_byte(tmp_path: pathlib.Path, devices: int) -> None:
    model = Measured()
    tf.saved_model.save(model, str(tmp_path), signatures=model.serving_default)
    loaded = LoadedModel(tmp_path, Devices(["/CPU:0"] * devices))
    assert loaded.variable_bytes == devices * (60 + 56 + 32_000 + 4 + 24 + 10)


def test_recorded_requests_warm_a_version_up(saved: Saved, tmp_path: pathlib.Path) -> None:
    folder = saved.copy(tmp_path / "toy", 1) / "1"
    file = folder / "assets.extra" / "tf_serving_warmup_requests"
    file.parent.mkdir()
    for name, fails in (("x", False), ("z", True)):
        log = prediction_log_pb2.PredictionLog()
        log.predict_log.request.CopyFrom(request(**{name: saved.x}))
        with tf.io.TFRecordWriter(str(file)) as writer:
            writer.write(log.SerializeToString())
        model = LoadedModel(folder, Devices(["/CPU:0"]))
        with pytest.raises(ServingError, match="'z'") if fails else contextlib.nullcontext():
            model.warm_up()


class Folder:
    """A model with versions in a folder that load at once, or fail."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        self.broken: set[int] = set()
        self.loads: list[int] = []
        self.model = Model(ModelConfig("toy", path), self._load)

    def poll(self, *versions: int) -> list[int]:
        """Adds versions, and looks for them; what is served then."""
        for version in versions:
            (self.path / str(version)).mkdir()
            (self.path / str(version) / "saved_model.pb").write_text("")
        self.model.poll()
        return list(self.model.served())

    def _load(self, _: str, folder: pathlib.Path) -> Any:
        self.loads.append(int(folder.name))
        if int(folder.name) in self.broken:
            raise ValueError("broken")
        return types.SimpleNamespace(front_calls=lambda: 10, variable_bytes=8)


@pytest.fixture
def folder(tmp_path: pathlib.Path) -> Folder:
    return Folder(tmp_path)


def test_the_newest_versions_are_served(folder: Folder) -> None:
    folder.model.config = ModelConfig("toy", folder.path, latest=2)
    for name in ("011", "temporary", "12"):  # without a SavedModel
        (folder.path / name).mkdir()
    assert folder.poll(1, 2, 10) == [2, 10]
    with pytest.raises(ServingError, match="version 1 of model 'toy' is not served; 2, 10 is"):
        folder.model.acquire(1)


def test_version_that_does_not_load_is_a_metric(folder: Folder) -> None:
    folder.poll(1)
    folder.broken = {2}
    folder.poll(2)
    metrics = ServerMetrics(CallQueue(1, 1), [folder.model])
    text = metrics.text().decode()
    assert 'model_server_version_served{model="toy",version="1"} 1.0' in text
    assert 'model_server_version_failed{model="toy",version="2"} 1.0' in text
    folder.broken = set()
    folder.poll(3)
    text = metrics.text().decode()
    assert 'model_server_version_served{model="toy",version="3"} 1.0' in text
    assert 'served{model="toy",version="1"}' not in text


def test_version_has_figures_while_it_is_in_memory_and_counts_anew_when_loaded_again(
    folder: Folder,
) -> None:
    folder.poll(1)
    calls = [folder.model.acquire(1) for _ in range(3)]
    folder.model.release(calls.pop(), computed=True)
    folder.model.release(calls.pop())
    assert folder.model.figures() == [(1, 11, 8)]
    folder.poll(2)
    assert folder.model.figures() == [(1, 11, 8), (2, 10, 8)]
    folder.model.release(calls.pop(), computed=True)
    assert folder.model.figures() == [(2, 10, 8)]
    (folder.path / "2").rename(folder.path / "withdrawn")
    assert folder.poll() == [1]
    assert folder.model.figures() == [(1, 10, 8)]


def test_version_that_does_not_load_leaves_the_old_one(folder: Folder) -> None:
    folder.poll(1)
    folder.broken = {2}
    folder.poll(2)
    assert folder.poll() == [1]
    assert folder.loads == [1, 2]  # not again while it is as it was
    failed = folder.model.statuses()[0]
    assert (failed.number, failed.state, failed.error) == (2, State.END, "ValueError: broken")
    folder.broken = set()
    (folder.path / "2" / "more").write_text("the rest of the copy")
    assert folder.poll() == [2]


def test_removed_version_goes_back_to_the_one_before(folder: Folder) -> None:
    folder.poll(1, 2)
    (folder.path / "2").rename(folder.path / "withdrawn")
    assert folder.poll() == [1]
    (folder.path / "1").rename(folder.path / "moved")
    assert folder.poll() == [1]  # an empty folder ends nothing


def test_few_ended_versions_are_remembered(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "collect", lambda: 0)
    for version in range(1, 50):
        folder.poll(version)
    assert len(folder.model.statuses()) == model_versions._MOST_ENDED + 1
