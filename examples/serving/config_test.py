# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The configuration: what is refused, which versions are served, labels, a file that changes."""

import argparse
import asyncio
import logging
import pathlib
import socket
import threading
import types
from typing import Any

import grpc
import pytest
import server_options
from call_queue import CallQueue
from config_file import ConfigFile
from grpc_api import ModelService
from grpc_front import Front
from model_config import ModelConfig, configs_of
from models import Models
from predict_calls import Calls
from server_metrics import ServerMetrics
from serving_error import ServingError
from serving_kit import FakeFront, until
from tensorflow.python.multistream.serving.served_models import ServedModels
from tensorflow_serving.apis import model_management_pb2

FAILED_PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION
INVALID = grpc.StatusCode.INVALID_ARGUMENT
NOT_FOUND = grpc.StatusCode.NOT_FOUND
UNKNOWN = grpc.StatusCode.UNKNOWN


class FakeServer:
    """Models whose versions load at once, or fail, and a configuration file, in a folder."""

    def __init__(self, folder: pathlib.Path, **options: Any) -> None:
        self.folder = folder
        self.file = folder / "models.config"
        self.broken: set[str] = set()
        self.loads: list[str] = []
        self.models = Models(self._load, **options)
        for name, versions in (("a", (1, 2, 3)), ("b", (1,)), ("c", (1, 2))):
            for version in versions:
                self.add(name, version)

    def add(self, name: str, version: int) -> None:
        (self.folder / name / str(version)).mkdir(parents=True)
        (self.folder / name / str(version) / "saved_model.pb").write_text("")

    def _load(self, _: str, folder: pathlib.Path) -> str:
        loaded = str(folder.relative_to(self.folder))
        self.loads.append(loaded)
        if loaded in self.broken:
            raise ValueError("broken")
        return loaded

    def options(self, *more: str) -> argparse.Namespace:
        parsed: argparse.Namespace = server_options.parse(
            [f"--model_config_file={self.file}", *more]
        )
        return parsed

    def write(self, *configs: str) -> None:
        text = " ".join(f"config {{ {config} }}" for config in configs)
        self.file.write_text(f"model_config_list {{ {text} }}".replace("FOLDER", str(self.folder)))

    def serve(self, *configs: str) -> dict[str, list[int]]:
        """Serves by a file with these configs; what is served then."""
        self.write(*configs)
        ConfigFile(self.options(), self.models).apply()
        return self.served()

    def refused(self, *configs: str) -> ServingError:
        with pytest.raises(ServingError) as error:
            self.serve(*configs)
        return error.value

    def served(self) -> dict[str, list[int]]:
        return {model.name: model.served() for model in self.models}

    def call(self, name: str, asked: int | str | None = None) -> Any:
        """What a call gets."""
        model = self.models.model(name)
        held = model.acquire(asked)
        model.release(held)
        return held.loaded


@pytest.fixture
def server(tmp_path: pathlib.Path) -> FakeServer:
    return FakeServer(tmp_path)


def a(more: str = "", name: str = "a", folder: str = "a") -> str:
    return f'name: "{name}" base_path: "FOLDER/{folder}" model_platform: "tensorflow" {more}'


def specific(*versions: int, **labels: int) -> str:
    given = "".join(f'version_labels {{ key: "{k}" value: {v} }}' for k, v in labels.items())
    numbers = " ".join(f"versions: {version}" for version in versions)
    return f"model_version_policy {{ specific {{ {numbers} }} }} {given}"


def logging_config(collector: str, sampling: str = "sampling_rate: 1", more: str = "") -> str:
    given = f"log_collector_config {{ {collector} }} sampling_config {{ {sampling} }} {more}"
    return a(f"logging_config {{ {given} }}")


PREFIX = 'filename_prefix: "FOLDER/log"'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "model_config_list is missing"),
        ("model_config_list {", "line 1, column "),
        ("model_config_list {\n config { nam: 'a' } }", 'line 2, column 11: Message type "tensorf'),
        ("custom_model_config { type_url: 'x' }", "custom_model_config is not supported; list"),
        ("custom_model_config { [a.b/c.D] { e: 1 } }", "custom_model_config is not supported; lis"),
        ([a().replace('"a"', '""')], "config[0] '': name is missing or wrong; a name has 1 to 100"),
        ([a(name="a b")], "config[0] 'a b': name is missing or wrong; a name has 1 to 100 letters"),
        (['name: "a"'], "config[0] 'a': base_path is missing; it is the folder of numbered ver"),
        ([a(), a(name="x", folder="y")], "config[1] 'x': base_path 'FOLDER/y' is not a folder of"),
        ([a().replace("flow", "f")], "'a': model_platform 'tensorf' is not supported; it has to"),
        ([a("model_type: OTHER")], "'a': model_type OTHER is not supported; it has to be TENSOR"),
        ([logging_config("")], "logging_config.log_collector_config.filename_prefix '' has no na"),
        ([logging_config('filename_prefix: "FOLDER/a/"')], "filename_prefix 'FOLDER/a/' has no na"),
        ([logging_config('filename_prefix: "FOLDER/x/y"')], "'FOLDER/x/y' is not in a folder of t"),
        ([logging_config('type: "kafka"' + PREFIX)], "type 'kafka' is not supported; it has to be"),
        ([logging_config(PREFIX, "sampling_rate: 2")], "sampling_rate is 2.0; it may be 0 to 1"),
        ([logging_config(PREFIX, "sampling_rate: nan")], "sampling_rate is nan; it may be 0 to 1"),
        ([logging_config(PREFIX, "attributes: 1")], ".attributes is not supported; leave it out"),
        (
            [logging_config(PREFIX, "per_task_sampling_configs { sampling_rate: 1 }")],
            "'a': logging_config.per_task_sampling_configs is not supported; leave it out",
        ),
        (
            [logging_config(PREFIX, more='custom_logging_config { type_url: "x" }')],
            "'a': logging_config.custom_logging_config is not supported; leave it out",
        ),
        ([a(), a()], "config[1] 'a': FILE: config[0] 'a' has this name, too. Give each model a"),
        ([a(specific())], "'a': model_version_policy.specific has no versions; name at least one"),
        ([a('version_labels { key: "" value: 1 }')], "'a': version_labels has an empty key; give"),
        ([a("model_version_policy { latest { num_versions: -1 } }")], "Value out of range: -1"),
        ([a("model_version_policy { latest {} all {} }")], '"all" is specified along with field'),
        (b"\xff", "FILE: not UTF-8"),
        (None, "--model-config-file FILE cannot be read: No such file"),
    ],
)
def test_wrong_file_is_named_with_what_is_wrong_in_it(
    server: FakeServer, text: Any, says: str
) -> None:
    server.serve(a())
    if text is None:
        server.file.unlink()
    elif isinstance(text, list):
        server.write(*text)
    else:
        server.file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ServingError) as error:
        ConfigFile(server.options(), server.models).apply()
    said = error.value.message
    assert error.value.code == INVALID and str(server.file) in said
    assert says in said.replace(str(server.file), "FILE").replace(str(server.folder), "FOLDER")
    assert server.served() == {"a": [3]}


def test_model_that_an_option_names_too_is_an_error(server: FakeServer) -> None:
    server.write(a())
    folder = server.folder / "b"
    ConfigFile(server.options(f"--model=b={folder}"), server.models).apply()
    assert server.served() == {"b": [1], "a": [3]}
    with pytest.raises(ServingError, match=f"config.0. 'a': --model a={folder} has this name, too"):
        ConfigFile(server.options(f"--model=a={folder}"), server.models).apply()


def test_policy_says_which_versions_are_served(server: FakeServer) -> None:
    policy = "model_version_policy {{ {} }}".format
    for given, served in (
        (policy("latest { num_versions: 2 }"), [2, 3]),
        (policy("latest {}"), [3]),
        (policy("all {}"), [1, 2, 3]),
        (specific(1, 3, 7), [1, 3]),
        (specific(2), [2]),
        ("", [3]),
    ):
        assert server.serve(a(given)) == {"a": served}
        server.models.poll()
        assert server.served() == {"a": served}
    server.write(a(), a(policy("latest {}"), "c", "c"))
    ConfigFile(server.options("--versions=2"), server.models).apply()
    assert server.served() == {"a": [2, 3], "c": [2]}  # the option is for those without a policy


def test_new_versions_come_as_the_policy_says(server: FakeServer) -> None:
    server.serve(a("model_version_policy { all {} }", "b", "b"), a(specific(1, 4)))
    server.add("b", 2)
    server.models.poll()
    assert server.served() == {"b": [1, 2], "a": [1]}
    server.add("a", 4)
    server.add("a", 5)
    server.models.poll()
    assert server.served() == {"b": [1, 2], "a": [1, 4]}


def test_model_that_does_not_load_leaves_all_as_it_was(server: FakeServer) -> None:
    server.serve(a(specific(1, old=1)), a(name="b", folder="b"))
    server.broken = {"c/2"}
    error = server.refused(a(specific(2, new=2)), a(name="c", folder="c"))
    assert error.code == UNKNOWN
    assert "config[1] 'c': version 2: ValueError: broken" in error.message
    assert server.served() == {"a": [1], "b": [1]}
    assert server.call("a", "old") == "a/1"
    assert [v.number for v in server.models.model("a").statuses()] == [1]
    with pytest.raises(ServingError, match="'c' is not served"):
        server.models.known("c")
    error = server.refused(a(specific(8, 9)))
    assert "it has none of the versions 8, 9; it has 1, 2, 3" in error.message
    server.broken = set()
    assert server.serve(a(), a(name="c", folder="c")) == {"a": [3], "c": [2]}


def test_other_folder_replaces_versions_of_the_same_number(server: FakeServer) -> None:
    server.serve(a(specific(1, 2, x=1)))
    model = server.models.model("a")
    held = model.acquire(1)
    server.broken = {"c/2"}
    server.serve(a(specific(1, 2, x=1), folder="c"))
    assert server.served() == {"a": [1]}  # 2 is not that of the folder before
    assert server.call("a", "x") == "c/1"
    assert held.loaded == "a/1"
    model.release(held)
    assert held.loaded is None
    assert server.call("a") == "c/1"


def test_removed_model_stays_until_its_last_call_has_ended(server: FakeServer) -> None:
    server.serve(a(), a(name="b", folder="b"))
    model = server.models.model("a")
    held = model.acquire(None)
    assert server.serve(a(name="b", folder="b")) == {"b": [1]}
    with pytest.raises(ServingError, match="'a' is not served"):
        server.call("a")
    assert held.loaded == "a/3"
    assert [v.state.name for v in server.models.known("a").statuses()] == ["UNLOADING"]
    model.release(held)
    assert held.loaded is None
    with pytest.raises(ServingError) as error:
        server.models.known("a")
    assert error.value.code == NOT_FOUND
    server.file.write_text("model_config_list {}")
    ConfigFile(server.options(), server.models).apply()
    assert server.served() == {}


def test_each_moment_of_a_change_has_versions_for_all_calls(tmp_path: pathlib.Path) -> None:
    called = []

    class CallingFront:
        """Stands for a front; makes calls whenever it is told of a version."""

        def publish(self, name: str, version: int, signatures: Any) -> Any:
            if name in server.models:
                called.append((server.call(name), server.call(name, "x")))
            return lambda: None

        def withdraw(self, name: str, version: int) -> Any:
            return self.publish(name, version, {})

    front: Any = CallingFront()
    server = FakeServer(tmp_path)
    server.models = Models(lambda *_: types.SimpleNamespace(signatures={}), front)
    server.serve(a(specific(1, x=1)))
    for more, folder in ((specific(2, 3, x=3), "a"), (specific(1, x=1), "a"), ("", "c")):
        label = "" if more else 'version_labels { key: "x" value: 2 }'
        server.serve(a(more + label, folder=folder))
    assert len(called) == 3 + 3 + 2


def test_a_version_of_another_folder_takes_the_place_of_the_one_before(
    tmp_path: pathlib.Path,
) -> None:
    told = []

    class NotedFront:
        """Stands for a front; notes what it is told."""

        def publish(self, name: str, version: int, signatures: Any) -> Any:
            told.append(version)
            return lambda: None

        def withdraw(self, name: str, version: int) -> Any:
            told.append(-version)
            return lambda: None

    front: Any = NotedFront()
    server = FakeServer(tmp_path)
    server.models = Models(lambda *_: types.SimpleNamespace(signatures={}), front)
    server.serve(a(specific(1, 2)))
    server.serve(a(specific(1, 2), folder="c"))
    assert sorted(told) == [1, 1, 2, 2]
    server.serve(a(specific(2), folder="c"))
    assert told[4:] == [-1]


def test_call_counts_for_its_model_also_if_that_is_gone_when_it_ends(server: FakeServer) -> None:
    server.serve(a())
    metrics = ServerMetrics(CallQueue(1, 1), server.models)
    with Calls(server.models, CallQueue(1, 1), metrics, 1).counted("a", "Predict"):
        server.models.change({})
    assert 'calls_total{method="Predict",model="a",status="OK"} 1.0' in metrics.text().decode()
    assert "model_server_version_served{" not in metrics.text().decode()


def test_model_that_stays_as_it_is_is_not_loaded_again(server: FakeServer) -> None:
    server.serve(a(), a(name="b", folder="b"))
    server.serve(a(name="b", folder="b"), a(), a(name="c", folder="c"))
    assert server.loads == ["a/3", "b/1", "c/2"]


def test_change_of_one_model_does_not_ask_whether_the_others_are_right(server: FakeServer) -> None:
    label = 'version_labels { key: "x" value: 3 }'
    server.serve(a(label), a(name="b", folder="b"))
    server.add("a", 4)
    server.models.poll()  # the label's version is replaced
    (server.folder / "b" / "1").rename(server.folder / "b" / "moved")
    served = server.serve(a(label), a(name="b", folder="b"), a(name="c", folder="c"))
    assert served == {"a": [4], "b": [1], "c": [2]}


def test_label_is_only_given_to_a_version_that_is_available(server: FakeServer) -> None:
    server.serve(a(specific(1, stable=1)))
    error = server.refused(a(specific(1, 2, stable=1, next=3)))
    assert error.code == FAILED_PRECONDITION
    assert "version_labels 'next' is version 3, which is not available; available are: 1, 2." in (
        error.message
    )
    assert server.loads == ["a/1"]  # nothing was loaded for nothing
    assert server.served() == {"a": [1]}
    server.broken = {"a/2"}
    assert server.refused(a(specific(1, 2, stable=2))).code == FAILED_PRECONDITION
    assert server.call("a", "stable") == "a/1"
    assert [v.number for v in server.models.model("a").statuses()] == [1]
    server.broken = set()
    server.serve(a(specific(2, stable=2)))  # the label moves with the versions
    assert server.call("a", "stable") == "a/2"
    with pytest.raises(
        ServingError, match="'old' is not a label of model 'a'; its labels are: 'st"
    ):
        server.call("a", "old")


def test_new_label_may_wait_for_its_version_if_the_option_says_so(tmp_path: pathlib.Path) -> None:
    server = FakeServer(tmp_path, labels_may_wait=True)
    server.serve(a(specific(1, 4, stable=1, next=4)))
    with pytest.raises(ServingError, match=r"version 4 .version_label 'next'. of model 'a' is not"):
        server.call("a", "next")
    assert server.refused(a(specific(1, 4, stable=4))).code == FAILED_PRECONDITION
    server.add("a", 4)
    server.models.poll()
    assert server.call("a", "next") == "a/4"


def test_file_is_served_again_when_it_changes(
    server: FakeServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.write(a())
    file = ConfigFile(server.options(), server.models)
    file.apply()

    def errors() -> list[str]:
        for _ in range(3):
            file.look()
        found = [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR]
        caplog.clear()
        return found

    server.models.change({})  # as a request does: it stays until the file changes
    assert errors() == []
    (server.folder / "a/3/more").write_text("")
    assert errors() == []
    assert server.served() == {}
    server.write(a(), a(name="b", folder="b"))
    assert errors() == []
    assert server.served() == {"a": [3], "b": [1]}
    for text in ("model_config_list {", "model_config_list { config {} }", None):
        server.file.unlink(missing_ok=True)
        if text is not None:
            server.file.write_text(text)
        (said,) = errors()
        assert "what is served stays: " in said and str(server.file) in said
        assert server.served() == {"a": [3], "b": [1]}
    server.broken = {"c/2"}
    server.loads.clear()
    server.write(a(name="c", folder="c"))
    said = "\n".join(errors())
    assert said.count("config[0] 'c': version 2: ValueError: broken") == 1
    assert server.loads == ["c/2"]  # once, as nothing has changed
    server.broken = set()
    (server.folder / "c/2/more").write_text("the rest of the copy")
    assert errors() == []
    assert server.served() == {"c": [2]}


def test_changes_come_one_after_another(tmp_path: pathlib.Path) -> None:
    goes_on, second, loads = threading.Event(), threading.Event(), []

    def load(name: str, _: pathlib.Path) -> str:
        loads.append(name)
        if len(loads) == 2:
            second.set()
        assert goes_on.wait(20)
        return ""

    models = Models(load)
    folder = FakeServer(tmp_path).folder
    threads = [
        threading.Thread(
            target=models.change, args=({name: ModelConfig(name, folder / name)},), daemon=True
        )
        for name in ("a", "b")
    ]
    for thread in threads:
        thread.start()
        until(lambda: loads)
    assert [v.state.name for v in models.known(loads[0]).statuses()] == ["LOADING"]
    assert not second.wait(0.3) and "a" not in models
    goes_on.set()
    for thread in threads:
        thread.join(20)
    assert loads == ["a", "b"] and [model.name for model in models] == ["b"]
    assert models.stop(1)


def test_server_that_ends_is_not_configured_anew(server: FakeServer) -> None:
    class Metrics:
        python_in_flight = in_flight = 0

        def answered(self, *_: Any) -> None: ...

    async def reload() -> Any:
        queue: Any = None
        metrics: Any = Metrics()
        calls = Calls(server.models, queue, metrics, 1)
        await calls.drain(0)
        asked = model_management_pb2.ReloadConfigRequest()
        try:
            return await ModelService(calls, 1).HandleReloadConfigRequest(asked, None)
        except ServingError as error:  # the guard tells the client
            return error.code

    assert asyncio.run(reload()) == grpc.StatusCode.UNAVAILABLE


def test_front_is_told_the_names_of_models(server: FakeServer, tmp_path: pathlib.Path) -> None:
    fake = FakeFront(tmp_path)
    server.serve(a())
    options = server.options(f"--front={fake.program}", "--threads=1")
    front: Any = Front(options, "", ServedModels(), server.models.names, {})
    server.models.tell_names = front.name_models
    server.serve(a(name="b", folder="b"), a(name="c", folder="c"))
    front._control.shutdown(socket.SHUT_RDWR)
    until(lambda: front._process.poll() is not None)
    assert fake.said() == ["models a,b,c"]  # calls of a model that is gone can end later


def test_empty_list_is_a_configuration() -> None:
    asked = model_management_pb2.ReloadConfigRequest()
    with pytest.raises(ServingError, match="model_config_list is missing"):
        configs_of(asked.config, 1)
    asked.config.model_config_list.SetInParent()
    assert configs_of(asked.config, 1) == {}
