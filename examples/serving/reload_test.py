# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""A server is configured by a file and by requests, under load; with a front and without."""

import contextlib
import pathlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import model_server
import numpy as np
import pytest
import server_options
import serving_kit
import tensorflow as tf
from google.protobuf import text_format
from grpc_health.v1 import health_pb2
from serving_kit import FRONT, Saved, Server, failure, request, slow, until
from tensorflow.python.multistream.serving.served_models import Devices
from tensorflow_serving.apis import (
    classification_pb2,
    get_model_metadata_pb2,
    get_model_status_pb2,
    inference_pb2,
    model_management_pb2,
    regression_pb2,
)

INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
ROUNDS = 3
ALL = "model_version_policy { all {} }"


def specific(*versions: int) -> str:
    numbers = " ".join(f"versions: {version}" for version in versions)
    return f"model_version_policy {{ specific {{ {numbers} }} }}"


class Configured:
    """A server with --model-config-file, and folders of models.

    `toy` has versions 1 and 2, `other` version 1, `moved` version 1 with the contents of 2.
    """

    def __init__(self, saved: Saved, folder: pathlib.Path) -> None:
        self.saved = saved
        self.folder = folder
        self.file = folder / "models.config"
        self.server: Any = None
        saved.copy(folder / "toy", 1, 2)
        saved.copy(folder / "other", 1)
        saved.copy(folder / "moved", 2, first=1)
        (folder / "broken" / "1").mkdir(parents=True)
        (folder / "broken" / "1" / "saved_model.pb").write_bytes(b"nothing")

    def model(self, name: str, more: str = ALL, folder: str = "", **labels: int) -> str:
        given = "".join(f'version_labels {{ key: "{k}" value: {v} }}' for k, v in labels.items())
        path = self.folder / (folder or name)
        return f'config {{ name: "{name}" base_path: "{path}" {more} {given} }}'

    def text(self, *models: str) -> str:
        return f"model_config_list {{ {' '.join(models)} }}"

    def write(self, *models: str) -> None:
        """Writes the file as a deployment does."""
        part = self.file.with_suffix(".part")
        part.write_text(self.text(*models))
        part.rename(self.file)

    def reload(self, *models: str) -> None:
        """Asks the server to serve these models."""
        asked = model_management_pb2.ReloadConfigRequest()
        text_format.Parse(self.text(*models), asked.config)
        answer = self.server.models.HandleReloadConfigRequest(asked, timeout=60)
        assert answer.HasField("status") and answer.status.error_code == 0

    def answer(self, model: str = "toy", **spec: Any) -> tuple[int, int]:
        """The version that an answer names, and the one whose answer it is."""
        response = self.server.predictions.Predict(self.asked(model, **spec), timeout=20)
        y = tf.make_ndarray(response.outputs["y"])
        return response.model_spec.version.value, self.version_of(y)

    def asked(self, model: str, label: str = "", version: int = 0) -> Any:
        asked = request(model, x=self.saved.x)
        if label:
            asked.model_spec.version_label = label
        if version:
            asked.model_spec.version.value = version
        return asked

    def version_of(self, y: Any) -> int:
        return next((version for version in (1, 2) if self.saved.right(version, y)), 0)

    def rest_answer(self, path: str) -> int:
        """The version whose answer REST gives."""
        status, answer = self.server.rest(path, {"instances": self.saved.x.tolist()})
        assert status == 200, answer
        return self.version_of(answer["predictions"])

    def states(self, model: str) -> list[tuple[int, int]]:
        """Versions and their states; none for a model that is not known."""
        asked = get_model_status_pb2.GetModelStatusRequest()
        asked.model_spec.name = model
        try:
            found = self.server.models.GetModelStatus(asked, timeout=20).model_version_status
        except grpc.RpcError as error:
            assert error.code() == NOT_FOUND
            return []
        return [(status.version, status.state) for status in found]

    def served(self) -> dict[str, list[str]]:
        """Versions by model, as the metrics say."""
        found: dict[str, list[str]] = {}
        for labels in self.server.metric("model_server_version_served"):
            _, model, _, version, _ = labels.split('"')
            found.setdefault(model, []).append(version)
        return {model: sorted(versions) for model, versions in found.items()}


@pytest.fixture(scope="module", params=["", f"--front={FRONT}"], ids=["", "front"])
def started(
    request: pytest.FixtureRequest, saved: Saved, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Configured]:
    found = Configured(saved, tmp_path_factory.mktemp("configured"))
    found.write(found.model("toy", stable=1, next=2))
    options = [f"--model-config-file={found.file}", "--model-config-poll-seconds=0.1"]
    options += [request.param] * bool(request.param)
    log = found.folder / "log"
    with serving_kit.serving(*options, "--no-warm-up", log=log) as server:
        found.server = server
        yield found


@pytest.fixture
def configured(started: Configured) -> Configured:
    """It serves both versions of `toy`, and no other model."""
    started.reload(started.model("toy", stable=1, next=2))
    return started


def test_file_is_served_from_the_start_with_its_labels(started: Configured) -> None:
    assert started.answer() == (2, 2)
    assert started.answer(label="stable") == (1, 1)
    assert started.answer(label="next") == (2, 2)


def test_label_at_the_start_needs_its_version_or_the_option(
    saved: Saved, tmp_path: pathlib.Path
) -> None:
    there = Configured(saved, tmp_path)
    there.write(there.model("toy", stable=1, next=7))
    given = [f"--model_config_file={there.file}", "--no-warm-up"]
    options = server_options.parse(given)
    says = "models.config: config.0. 'toy': version_labels 'next' is version 7, which is not avail"
    with pytest.raises(OSError, match=says):
        model_server._loaded_models(options, Devices(["/CPU:0"]), None)
    given.append("--allow_version_labels_for_unavailable_models")
    models, _ = model_server._loaded_models(server_options.parse(given), Devices(["/CPU:0"]), None)
    assert models.model("toy").acquire("stable").number == 1


def test_labels_by_grpc(configured: Configured) -> None:
    server: Server = configured.server
    predictions = server.predictions
    metadata = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=["signature_def"])
    inference = inference_pb2.MultiInferenceRequest()
    task = inference.tasks.add(method_name="tensorflow/serving/classify")
    state = get_model_status_pb2.GetModelStatusRequest()
    classify = classification_pb2.ClassificationRequest()
    regress = regression_pb2.RegressionRequest()
    for asked in (classify, regress, inference):
        asked.input.example_list.examples.add()
    calls: list[tuple[Callable[..., Any], Any, Any]] = [
        (predictions.Predict, configured.asked("toy"), None),
        (predictions.GetModelMetadata, metadata, None),
        (server.models.GetModelStatus, state, None),
        (predictions.Classify, classify, None),
        (predictions.Regress, regress, None),
        (predictions.MultiInference, inference, task.model_spec),
    ]
    for call, asked, task_spec in calls:
        spec = task_spec if task_spec is not None else asked.model_spec
        spec.name, spec.version_label = "toy", "new"
        code, text = failure(lambda call=call, asked=asked: call(asked, timeout=20))
        assert code == INVALID
        assert "'new' is not a label of model 'toy'; its labels are: 'next', 'stable'" in text
        spec.version_label = "stable"
    assert predictions.GetModelMetadata(metadata, timeout=20).model_spec.version.value == 1
    (found,) = server.models.GetModelStatus(state, timeout=20).model_version_status
    assert found.version == 1
    for call, asked, _ in calls[3:]:  # the label's version has no signature for them
        _, text = failure(lambda call=call, asked=asked: call(asked, timeout=20))
        assert "has the method tensorflow/serving/predict" in text


def test_labels_by_rest(configured: Configured) -> None:
    toy = "/v1/models/toy/labels"
    assert configured.rest_answer(f"{toy}/stable:predict") == 1
    assert configured.rest_answer(f"{toy}/next:predict") == 2
    rest = configured.server.rest
    assert [s["version"] for s in rest(f"{toy}/stable")[1]["model_version_status"]] == ["1"]
    assert rest(f"{toy}/next/metadata")[1]["model_spec"]["version"] == "2"
    for path, body in ((":predict", {"inputs": 1}), (":classify", {"examples": [{}]}), ("", None)):
        status, answer = rest(f"{toy}/new{path}", body)
        assert status == 400
        assert (
            "'new' is not a label of model 'toy'; its labels are: 'next', 'stable'"
            in (answer["error"])
        )


def test_calls_by_label_count_for_its_version(configured: Configured) -> None:
    before = configured.server.by_version("calls_total")
    assert configured.answer(label="stable") == (1, 1)
    assert configured.rest_answer("/v1/models/toy/labels/stable:predict") == 1
    assert configured.answer(label="next") == (2, 2)
    found = configured.server.by_version("calls_total")
    assert found == {1: before[1] + 2, 2: before[2] + 1}


class Clients:
    """Threads that call `toy` until the end, and what was wrong with an answer."""

    def __init__(self, configured: Configured) -> None:
        self._configured = configured
        self.wrong: list[str] = []
        self.answers = dict.fromkeys(("newest", "label", "rest"), 0)
        self._stopped = threading.Event()

    @contextlib.contextmanager
    def calling(self) -> Iterator[None]:
        configured = self._configured
        calls: dict[str, Callable[[], tuple[int, int]]] = {
            "newest": configured.answer,
            "label": lambda: configured.answer(label="stable"),
            "rest": lambda: (0, configured.rest_answer("/v1/models/toy/labels/stable:predict")),
        }
        threads = [
            threading.Thread(target=self._call_on, args=call, daemon=True) for call in calls.items()
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            for thread in threads:
                thread.join(30)

    def _call_on(self, kind: str, call: Callable[[], tuple[int, int]]) -> None:
        while not self._stopped.is_set():
            try:
                named, found = call()
                # Version 1 of `moved` answers as version 2.
                if found not in (1, 2) or (named, found) == (2, 1):
                    self.wrong.append(f"{kind}: version {named} answered as {found}")
            except Exception as error:
                self.wrong.append(f"{kind}: {error}")
            self.answers[kind] += 1

    def more(self) -> None:
        """Waits for more answers of each kind."""
        before = dict(self.answers)
        until(lambda: all(self.answers[kind] > n + 5 for kind, n in before.items()))


def test_reload_under_load_fails_no_call(configured: Configured) -> None:
    model, reload = configured.model, configured.reload
    clients = Clients(configured)
    with clients.calling():
        for _ in range(ROUNDS):
            clients.more()
            reload(model("toy", stable=1, next=2), model("other"))
            assert configured.answer("other") == (1, 1)  # at once
            clients.more()
            reload(model("other"), model("toy", stable=2))
            assert configured.answer(label="stable") == (2, 2)
            clients.more()
            reload(model("toy", specific(2), stable=2))
            assert configured.answer() == (2, 2)
            assert failure(lambda: configured.answer("other"))[0] == NOT_FOUND
            clients.more()
            reload(model("toy", specific(1), stable=1))  # back, with the label
            assert configured.answer(label="stable") == (1, 1)
            assert configured.answer() == (1, 1)
            clients.more()
            reload(model("toy", folder="moved", stable=1))
            assert configured.answer() == (1, 2)
            assert configured.rest_answer("/v1/models/toy/labels/stable:predict") == 2
            clients.more()
            reload(model("toy", stable=2), model("other"))
            assert configured.answer(version=1) == (1, 1)
            clients.more()
    assert clients.wrong == []


def test_removed_model_is_dropped_when_its_last_call_has_ended(configured: Configured) -> None:
    toy, server = configured.model("toy", stable=1), configured.server
    configured.reload(toy, configured.model("other"))
    assert configured.served() == {"other": ["1"], "toy": ["1", "2"]}
    asked = slow(200_000)
    asked.model_spec.name = "other"
    call = server.predictions.Predict.future(asked, timeout=60)
    until(server.running)
    configured.reload(toy)
    assert configured.served() == {"toy": ["1", "2"]}
    assert configured.states("other") == [(1, 40)]
    code, text = failure(lambda: configured.answer("other"))
    assert code == NOT_FOUND and "'other' is not served" in text
    assert not call.done()
    assert call.result().outputs["y"]
    until(lambda: configured.states("other") == [])
    until(lambda: "other version 1 is dropped" in server.text())
    configured.reload(toy, configured.model("other"))
    assert configured.answer("other") == (1, 1)
    assert configured.states("other") == [(1, 30)]


def test_calls_of_a_model_that_came_later_count_by_its_name(configured: Configured) -> None:
    configured.reload(configured.model("toy"), configured.model("later", folder="other"))
    path = "/v1/models/later:predict"
    assert configured.rest_answer(path) == 1

    def counted() -> float:
        figures = configured.server.metric("model_server_calls_total").items()
        return sum((n for labels, n in figures if 'model="later"' in labels), 0.0)

    assert counted() == 1
    configured.reload(configured.model("toy"))
    configured.server.rest(path, {"inputs": 1})  # not found
    assert counted() == 1
    health = configured.server.health.Check(health_pb2.HealthCheckRequest(), timeout=20)
    assert health.status == 1


def test_reload_that_is_wrong_or_does_not_load_changes_nothing(configured: Configured) -> None:
    model = configured.model
    toy = model("toy", stable=2)
    for models, code, says in (
        ([toy, toy], INVALID, "config[1] 'toy': config[0] 'toy' has this name, too"),
        ([toy, model("nobody")], INVALID, "config[1] 'nobody': base_path"),
        ([toy, model("broken")], grpc.StatusCode.UNKNOWN, "'broken': version 1: "),
        (
            [model("toy", specific(1), stable=2)],
            grpc.StatusCode.FAILED_PRECONDITION,
            "version_labels 'stable' is version 2, which is not available; available are: 1",
        ),
    ):
        found, text = failure(lambda models=models: configured.reload(*models))
        assert (found, says in text) == (code, True), text
        assert configured.served() == {"toy": ["1", "2"]}
        assert configured.answer(label="stable") == (1, 1)
        assert configured.states("broken") == []
    asked = model_management_pb2.ReloadConfigRequest()
    code, text = failure(lambda: configured.server.models.HandleReloadConfigRequest(asked))
    assert code == INVALID and "model_config_list is missing" in text
    assert f"a reload changed nothing: {text}" in configured.server.text()


def test_reloads_at_once_come_one_after_another(configured: Configured) -> None:
    """The last one counts, and each of them is answered."""
    failed: list[str] = []

    def reload(name: str) -> None:
        try:
            configured.reload(configured.model("toy"), configured.model(name, folder="other"))
        except grpc.RpcError as error:
            failed.append(str(error))

    names = ["a", "b", "c"]
    threads = [threading.Thread(target=reload, args=(name,), daemon=True) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    served = configured.served()
    assert len(served) == 2 and {*served} - {"toy"} <= {*names}


def test_file_is_served_again_when_it_changes(configured: Configured) -> None:
    server: Server = configured.server
    toy = configured.model("toy", stable=1)
    configured.write(toy, configured.model("polled", folder="other"))
    until(lambda: "polled" in configured.served())
    assert configured.answer("polled") == (1, 1)
    configured.write(toy, "config {")
    said = f"what is served stays: {configured.file}: not a tensorflow.serving.ModelServerConfig"
    until(lambda: said in server.text())
    configured.write(toy)
    until(lambda: "polled" not in configured.served())
    assert server.text().count(said) == 1
    assert np.isclose(server.total("model_server_calls_in_flight"), 0)
