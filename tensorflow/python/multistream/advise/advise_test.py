# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.advise` compares settings with stock TensorFlow, and advises what is surely faster."""

import dataclasses
import re
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.multistream.advise import __main__ as command
from tensorflow.python.multistream.advise import advise, model, process

from multistream.testing import kit

X = np.ones([2, 4], np.float32)
SPEC = tf.TensorSpec([None, 4], tf.float32, "x")
STOCK = {"TF_GPU_ALLOCATOR", "TF_GPU_THREAD_COUNT", "TF_GPU_THREAD_MODE", "TF_XLA_FLAGS"}
EMULATED = "TF_MULTI_STREAM_EMULATED_GPUS"


class Model(tf.Module):
    """A layer; functions that are captured in pieces, and of strings."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = tf.Variable(tf.random.stateless_normal([4, 3], [1, 2]))

    @tf.function(input_signature=[SPEC])
    def __call__(self, x: Any) -> Any:
        return {"y": tf.nn.relu(x @ self.layer)}

    @tf.function(input_signature=[SPEC])
    def pieces(self, x: Any) -> Any:
        for _ in range(8):
            x = tf.tanh(x @ tf.ones([4, 4]))
        return {"y": tf.where(x > 0.1)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def words(self, words: Any) -> Any:
        return {"y": tf.strings.length(words)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    made = Model()
    folder = str(tmp_path_factory.mktemp("saved"))
    signatures = {"serving_default": made.__call__, "words": made.words}
    tf.saved_model.save(made, folder, signatures=signatures)
    return folder


SETTINGS = advise._settings([2])


def few_settings(groups: Any) -> list[Any]:
    """Settings of two processes, which import TensorFlow, besides the two of stock TensorFlow."""
    return [setting for setting in SETTINGS if setting.name.startswith(("stock", "2 groups, cap"))]


def test_a_saved_model_is_measured_from_the_command_line(
    saved: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row of the table has right results only; a captured row has replays."""
    monkeypatch.setenv(EMULATED, "1")
    monkeypatch.setattr(advise, "_settings", few_settings)
    example = str(tmp_path / "example.npz")
    np.savez(example, x=X)
    arguments = [saved, "--example", example, "--seconds", "0.5", "--threads", "2"]
    assert command.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Inputs: the example, x: float32[2, 4]"
    assert lines[1].startswith("The GPU is emulated")
    rows = [line.split() for line in lines[3:9]]
    assert {row[0] for row in rows} == {"stock", "2"}
    assert all(row[-1] == "0" for row in rows)
    assert not any("In the way" in line for line in lines)


@kit.in_process()
def test_what_is_in_the_way_of_captured_steps_is_named() -> None:
    """Measures from a process with stream groups and node level, which its processes lack."""
    advise._settings = few_settings
    found = tf.cuda.advise(Model().pieces, [X], seconds=0.5, threads=1)
    assert isinstance(found, tf.cuda.Advice) and not found.errors, found
    assert [row.setting for row in found.rows] == [setting.name for setting in few_settings([])]
    assert all(row.calls > 0 and row.wrong == 0 for row in found.rows)
    said = "In the way of captured steps: in pieces (17 of 18 launches), as Where"
    assert re.search(rf"{re.escape(said)}.*\nWhat to do: nothing, if few", str(found)), found


def test_what_is_advised_is_exported() -> None:
    setting = next(x for x in SETTINGS if x.name == "2 groups, captured")
    turns = [process.Turn(100, rate, 1.0, 2.0, 0, "") for rate in (240, 250)]
    found = advise._advice([row("stock", 1, [100, 120]), advise._row(setting, 1, turns)], [], [])
    assert len(found.variables) == 2
    assert found.text.count("export") == 2


def row(setting: str, threads: int, rates: list[float], **changes: Any) -> advise.AdviceRow:
    variables = {} if setting == "stock" else {"SETTING": setting}
    turns = [process.Turn(100, rate, 1.0, 2.0, 0, "") for rate in rates]
    made = advise._row(advise._Setting(setting, variables), threads, turns)
    return dataclasses.replace(made, **changes)


def test_only_what_beats_the_fastest_turn_of_stock_is_advised() -> None:
    stock = [row("stock", 1, [100, 120]), row("stock", 4, [90, 150])]

    def chosen(*rows: advise.AdviceRow) -> tuple[dict[str, str], float]:
        found = advise._advice([*stock, *rows], [], [])
        assert ("no setting is faster" in found.text) == (not found.variables or len(rows) == 1)
        return found.variables, found.gain

    assert chosen(row("a", 4, [149, 900])) == ({}, 1.0)
    assert chosen(row("a", 4, [240, 240])) == ({"SETTING": "a"}, 2.0)
    assert chosen(row("a", 4, [240, 240], wrong=1)) == ({}, 1.0)
    assert chosen(row("a", 4, [240, 240], calls=3)) == ({}, 1.0)
    # Of equally fast settings the first wins: it changes the program least.
    alike = [row("a", 1, [130, 130]), row("b", 4, [240, 240]), row("c", 4, [245, 245])]
    assert advise._advice([*stock, *alike], [], []).variables == {"SETTING": "b"}


def fail() -> None:
    raise process.ChildError("no memory")


def test_a_setting_that_fails_is_an_error_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Child:
        def __init__(self, job: Path, variables: dict[str, str]) -> None:
            self.variables = variables

        def ask(self, request: str, *arguments: Any) -> Any:
            if self.variables.get("TF_MULTI_STREAM_CAPTURE") == "auto":
                fail()
            turn = process.Turn(9, 100.0, 1.0, 2.0, len(self.variables), "")
            return {"results": ([[{"y": X}]], False), "measure": turn}.get(request)

        def close(self) -> None:
            pass

    monkeypatch.setattr(advise, "Child", Child)
    rows, errors, _ = advise._measured(tmp_path, SETTINGS, [1], 1.0)
    assert [row.setting for row in rows] == ["stock", "2 groups"]
    assert [x for x in errors if "no memory" in x] == [
        f"{groups}, captured{call}: no memory"
        for call in ("", ", serving_callable")
        for groups in ("1 group", "2 groups")
    ]
    assert "2 groups, 1 thread: 10 wrong results" in errors
    monkeypatch.setattr(Child, "ask", lambda self, *request: fail())
    with pytest.raises(RuntimeError, match="stock TensorFlow fails with this model: no memory"):
        advise._measured(tmp_path, SETTINGS, [1], 1.0)


def test_a_process_that_dies_says_its_last_lines(tmp_path: Path, saved: str) -> None:
    child = process.Child(tmp_path / "missing", {"TF_GPU_STREAM_GROUP_COUNT": "none"})
    with pytest.raises(process.ChildError, match=r"exit status 1(.|\n)*TF_GPU_STREAM_GROUP_COUNT"):
        child.ask("results")
    child.close()


def test_results_are_compared_by_bits_and_by_distance() -> None:
    one = {"y": np.float32([1, np.nan, np.inf])}
    assert process.distance(one, {"y": one["y"].copy()}) == 0
    assert process.distance({"y": np.float32([1.5, np.nan, np.inf])}, one) == 0.5
    assert process.distance({"y": np.float32([0.0])}, {"y": np.float32([-0.0])}) > 0
    assert process.distance({"y": np.float32([1, 5, np.inf])}, one) > 1
    for other in (np.float64([1, np.nan, np.inf]), np.float32([1]), np.array([b"a"])):
        assert process.distance({"y": other}, one) == np.inf


def test_processes_start_without_the_variables_of_the_runtime(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = kit.runtime_variables()
    for name in known:
        monkeypatch.setenv(name, "inherited")
    inherited = process.environment({"TF_GPU_STREAM_GROUP_COUNT": "2"})
    assert {k: v for k, v in inherited.items() if k in known} == {
        **dict.fromkeys([*STOCK, EMULATED], "inherited"),
        "TF_GPU_STREAM_GROUP_COUNT": "2",
    }


def test_all_kinds_of_functions_are_saved(tmp_path: Path, saved: str) -> None:
    made = Model()
    y = made(X)["y"]
    loaded = tf.saved_model.load(saved)
    a, b = keras.Input((4,)), keras.Input((4,))
    stack = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    cases = (
        (made, {"x": X}, y),
        (made.__call__, [X.tolist()], y),
        (loaded.signatures["serving_default"], [X], y),
        (made.__call__.get_concrete_function(), [tf.constant(X)], y),
        (lambda x: x @ made.layer, [X], X @ made.layer),
        (stack, [X], stack(X)),
        (keras.Model([a, b], keras.layers.Add()([a, b])), [X, X], X + X),
    )
    for i, (function, example, expected) in enumerate(cases):
        query = model.save_function(function, example, str(tmp_path / str(i)))
        signature = tf.saved_model.load(str(tmp_path / str(i))).signatures[model.SIGNATURE]
        (result,) = signature(**{name: tf.constant(x) for name, x in query.items()}).values()
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["{saved}", "--signature", "words"], "'words', string(None,). Give an example"),
        (["{saved}", "--example", "/no/file"], "/no/file"),
        (["{saved}", "--seconds", "0"], "seconds=0.0"),
    ],
)
def test_the_command_line_names_what_is_wrong(
    saved: str, capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    assert command.main([argument.format(saved=saved) for argument in arguments]) == 2
    assert says in capsys.readouterr().err
