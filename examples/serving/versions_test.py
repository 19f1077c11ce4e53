# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Versions are swapped under load: no call fails, and no answer is of neither version."""

from __future__ import annotations

import contextlib
import functools
import gc
import pathlib
import threading
import types
import weakref
from collections.abc import Iterator
from typing import Any

import model_versions
import numpy as np
import pytest
import tensorflow as tf
from conftest import Saved
from loaded_model import LoadedModel
from model_versions import Model, State
from serving_error import ServingError
from serving_kit import Server, request, serving, slow, until
from tensorflow_serving.apis import get_model_status_pb2, prediction_log_pb2

THREADS = 4
SWAPS = 4


def states(server: Server) -> dict[int, int]:
    """State of each version that the server knows."""
    asked = get_model_status_pb2.GetModelStatusRequest()
    asked.model_spec.name = "toy"
    found = server.models.GetModelStatus(asked, timeout=20).model_version_status
    return {status.version: status.state for status in found}


def in_state(server: Server, version: int, state: State) -> bool:
    return bool(states(server).get(version) == state)


class Load:
    """Threads that call by gRPC and REST until they are told to stop."""

    def __init__(self, server: Server, saved: Saved) -> None:
        self.answers: list[bytes] = []
        self.failed: list[str] = []
        self._server, self._x = server, saved.answers["x"]
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(i,)) for i in range(THREADS)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def has(self, count: int) -> bool:
        return len(self.answers) > count

    def _call(self, number: int) -> None:
        body = {"instances": self._x.tolist()}
        while not self._stopped.is_set():
            try:
                if number == 0:
                    status, answer = self._server.rest("/v1/models/toy:predict", body)
                    assert status == 200, answer
                    self.answers.append(np.float32(answer["predictions"]).tobytes())
                else:
                    self.answers.append(self._server.predict(self._x).tobytes())
            except Exception as error:
                self.failed.append(str(error))


@pytest.fixture(scope="module", params=["cancelled", "lock-free"])
def swapping(
    saved: Saved, tmp_path_factory: pytest.TempPathFactory, request: Any
) -> Iterator[tuple[Server, pathlib.Path]]:
    folder = tmp_path_factory.mktemp("swapping")
    toy = saved.copy(folder / "toy", 1)
    options = [f"--model=toy={toy}", "--poll-seconds=0.1"]
    options += ["--lock-free"] * (request.param == "lock-free")
    capture = "auto" if request.param == "lock-free" else "off"
    with serving(*options, log=folder / "log", TF_MULTI_STREAM_CAPTURE=capture) as server:
        yield server, toy
        assert "Traceback" not in server.text()


def test_swap_under_load_fails_no_call(swapping: tuple[Server, pathlib.Path], saved: Saved) -> None:
    server, toy = swapping
    recordings: list[float] = []
    with Load(server, saved) as load:
        until(lambda: len(load.answers) > 50)
        assert set(load.answers) == {saved.answers["y1"].tobytes()}
        for version in range(2, 2 + SWAPS):  # by turns the contents of version 2 and of version 1
            part = saved.copy(toy.parent / f"part{version}", 2 - version % 2)
            (part / str(2 - version % 2)).rename(toy / str(version))
            until(functools.partial(in_state, server, version, State.AVAILABLE))
            until(functools.partial(in_state, server, version - 1, State.END))
            seen = len(load.answers)
            until(functools.partial(load.has, seen + 50))
            recordings.append(server.total("model_server_group_recordings"))
    assert load.failed == []
    assert max(recordings) <= recordings[0]  # a dropped version's are gone
    assert set(load.answers) == {saved.answers[y].tobytes() for y in ("y1", "y2")}
    last = "y1" if SWAPS % 2 == 0 else "y2"
    assert server.predict(saved.answers["x"]).tobytes() == saved.answers[last].tobytes()
    assert server.calls("Predict", "OK") >= len(load.answers)
    assert server.calls("Predict", "INTERNAL") == 0


def test_replaced_version_stays_until_its_last_call_has_ended(
    swapping: tuple[Server, pathlib.Path], saved: Saved
) -> None:
    server, toy = swapping
    old = max(states(server))
    # Calls by tf.cuda.serving_callable run to their end.
    lock_free = "--lock-free" in server.options
    call = server.predictions.Predict.future(slow(200_000 if lock_free else 2_000_000_000))
    until(lambda: server.total("model_server_calls_running"))
    part = saved.copy(toy.parent / "next", 1)
    (part / "1").rename(toy / str(old + 1))
    until(lambda: states(server).get(old) == State.UNLOADING)
    assert not call.done()
    if lock_free:
        assert call.result().outputs["y"]
    else:
        call.cancel()
    until(lambda: states(server).get(old) == State.END, 30)


@pytest.mark.parametrize("lock_free", [False, True])
def test_dropped_model_leaves_nothing_behind(saved: Saved, lock_free: bool) -> None:
    model = LoadedModel(saved.folder / "1", "/CPU:0", lock_free)
    model.warm_up()
    arrays = {"x": saved.answers["x"]}
    assert model.signature("")(arrays)["y"].shape == (16, 4)
    kept = [weakref.ref(model._model), weakref.ref(model._model.signatures["slow"].graph)]
    del model
    gc.collect()
    assert [found() for found in kept] == [None, None]


def test_recorded_requests_warm_a_version_up(saved: Saved, tmp_path: pathlib.Path) -> None:
    folder = saved.copy(tmp_path / "toy", 1) / "1"
    file = folder / "assets.extra" / "tf_serving_warmup_requests"
    file.parent.mkdir()
    for inputs, fails in (({"x": saved.answers["x"]}, False), ({"z": saved.answers["x"]}, True)):
        log = prediction_log_pb2.PredictionLog()
        log.predict_log.request.CopyFrom(request(**inputs))
        with tf.io.TFRecordWriter(str(file)) as writer:
            writer.write(log.SerializeToString())
        model = LoadedModel(folder, "/CPU:0")
        with pytest.raises(ServingError, match="'z'") if fails else contextlib.nullcontext():
            model.warm_up()


class Folder:
    """A model with versions in a folder that load at once, or fail."""

    def __init__(self, path: pathlib.Path, keep: int) -> None:
        self.path = path
        self.broken: set[int] = set()
        self.loads: list[int] = []
        self.model = Model("toy", path, keep, self._load)

    def add(self, *versions: int) -> None:
        for version in versions:
            (self.path / str(version)).mkdir()
            (self.path / str(version) / "saved_model.pb").write_text("")

    def _load(self, folder: pathlib.Path) -> Any:
        self.loads.append(int(folder.name))
        if int(folder.name) in self.broken:
            raise ValueError("broken")
        return types.SimpleNamespace()


def test_the_newest_versions_are_served(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path, keep=2)
    folder.add(1, 2, 10)
    (tmp_path / "011").mkdir()
    (tmp_path / "temporary").mkdir()
    (tmp_path / "12").mkdir()  # without a SavedModel
    folder.model.poll()
    assert folder.model.served() == [2, 10]
    with pytest.raises(ServingError, match="version 1 of model 'toy' is not served; 2, 10 is"):
        folder.model.acquire(1)


def test_version_that_does_not_load_leaves_the_old_one(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path, keep=1)
    folder.add(1)
    folder.model.poll()
    folder.add(2)
    folder.broken = {2}
    for _ in range(3):
        folder.model.poll()
    assert folder.model.served() == [1]
    assert folder.loads == [1, 2]  # not again while it is as it was
    failed = folder.model.statuses()[0]
    assert (failed.number, failed.state, failed.error) == (2, State.END, "ValueError: broken")
    folder.broken = set()
    (tmp_path / "2" / "more").write_text("the rest of the copy")
    folder.model.poll()
    assert folder.model.served() == [2]


def test_removed_version_goes_back_to_the_one_before(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path, keep=1)
    folder.add(1, 2)
    folder.model.poll()
    (tmp_path / "2").rename(tmp_path / "withdrawn")
    folder.model.poll()
    assert folder.model.served() == [1]
    (tmp_path / "1").rename(tmp_path / "moved")
    folder.model.poll()
    assert folder.model.served() == [1]  # an empty folder ends nothing


def test_held_version_is_dropped_by_its_last_call(tmp_path: pathlib.Path) -> None:
    folder = Folder(tmp_path, keep=1)
    folder.add(1)
    folder.model.poll()
    held = [folder.model.acquire(None) for _ in range(2)]
    folder.add(2)
    folder.model.poll()
    assert folder.model.acquire(None).number == 2
    for version in held:
        assert version.loaded is not None and version.state is State.UNLOADING
        folder.model.release(version)
    assert held[0].loaded is None and held[0].state is State.END


def test_few_ended_versions_are_remembered(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gc, "collect", lambda: 0)
    folder = Folder(tmp_path, keep=1)
    for version in range(1, 50):
        folder.add(version)
        folder.model.poll()
    assert len(folder.model.statuses()) == model_versions._MOST_ENDED + 1
