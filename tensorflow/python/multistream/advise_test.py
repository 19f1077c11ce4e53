# Copyright 2026 The Multi-Stream TensorFlow Authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
# ==============================================================================
"""`tf.cuda.advise` measures what it is given in processes, and names what is wrong with either."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import config
from tensorflow.python.multistream import (
    advice,
    advice_child,
    advice_model,
    advice_process,
    advise,
)

from multistream.testing import kit

X = np.ones([2, 4], np.float32)
SPEC = tf.TensorSpec([None, 4], tf.float32, "x")
STOCK_OURS = {"TF_GPU_ALLOCATOR", "TF_GPU_THREAD_COUNT", "TF_GPU_THREAD_MODE", "TF_XLA_FLAGS"}


class Model(tf.Module):
    """Two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = [
            tf.Variable(tf.random.stateless_normal(shape, [1, 2])) for shape in ([4, 8], [8, 3])
        ]

    @tf.function(input_signature=[SPEC])
    def __call__(self, x: Any) -> Any:
        return {"y": tf.nn.relu(x @ self.layers[0]) @ self.layers[1]}

    @tf.function(input_signature=[SPEC, tf.TensorSpec([None], tf.int64, "ids")])
    def ranked(self, x: Any, ids: Any) -> Any:
        return {"y": tf.gather(x, ids)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "words")])
    def words(self, words: Any) -> Any:
        return {"y": tf.strings.length(words)}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    model = Model()
    folder = str(tmp_path_factory.mktemp("saved"))
    signatures = {"serving_default": model.__call__, "ranked": model.ranked, "words": model.words}
    tf.saved_model.save(model, folder, signatures=signatures)
    return folder


def give_same(function: Any, example: Any, folder: Path, expected: Any) -> None:
    """Whether it is saved so that the example has the same result."""
    given = advice_model.save_function(function, example, str(folder))
    specs = advice_model.signature_specs(str(folder), advice_model.SIGNATURE)
    query = advice_model.example_query(specs, given)
    loaded = tf.saved_model.load(str(folder))
    results = loaded.signatures[advice_model.SIGNATURE](
        **{name: tf.constant(x) for name, x in query.items()}
    )
    (result,) = results.values()
    np.testing.assert_array_equal(result, expected)


def test_all_kinds_of_functions_are_saved(tmp_path: Path, saved: str) -> None:
    model = Model()
    y = model(X)["y"]
    plain = tf.function(lambda x, scale: x @ model.layers[0] * scale)
    scaled = X @ model.layers[0] * 2.0
    stack = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
    a, b = keras.Input((4,)), keras.Input((4,))
    sums = keras.Model([a, b], keras.layers.Add()([a, b]))
    loaded = tf.saved_model.load(saved)
    cases = (
        (model, [X], y),
        (model, {"x": X}, y),
        (model.__call__, [X.tolist()], y),
        (loaded.signatures["serving_default"], {"x": X}, y),
        (model.__call__.get_concrete_function(), [tf.constant(X)], y),
        (plain, [X, 2.0], scaled),
        (plain, {"x": X, "scale": np.float32(2)}, scaled),
        (plain.get_concrete_function(SPEC, 2.0), [X], scaled),
        (lambda x: x @ model.layers[0], [X], X @ model.layers[0]),
        (stack, [X], stack(X)),
        (sums, [X, X], X + X),
    )
    for i, (function, example, expected) in enumerate(cases):
        give_same(function, example, tmp_path / str(i), expected)


def test_what_cannot_be_saved_is_named(tmp_path: Path) -> None:
    keys = tf.lookup.KeyValueTensorInitializer(["a"], [1])
    table = tf.lookup.StaticHashTable(keys, 0)

    @tf.function
    def look_up(words: Any) -> Any:
        return table.lookup(words)

    folder = str(tmp_path)
    with pytest.raises(ValueError, match=r"look_up cannot be saved(.|\n)*give the directory"):
        advice_model.save_function(look_up, [np.array(["a"])], folder)
    with pytest.raises(ValueError, match=r"look_up has no input_signature: give an example"):
        advice_model.save_function(look_up, None, folder)
    with pytest.raises(ValueError, match=r"not known what <lambda> takes"):
        advice_model.save_function(lambda x: x, None, folder)
    with pytest.raises(TypeError, match=r"advise: 3 cannot be called"):
        advice_model.save_function(3, None, folder)
    with pytest.raises(TypeError, match=r"example has 2 arrays; the arguments are: x"):
        advice_model.save_function(Model(), [X, X], folder)


@pytest.mark.parametrize(
    ("example", "error", "says"),
    [
        ({"x": X}, TypeError, "has no argument 'ids'"),
        (
            {"x": X, "ids": [0], "more": X},
            TypeError,
            "no argument 'more'; the arguments are: ids, x",
        ),
        ([X], TypeError, "example has 1 arrays; the arguments are: ids, x"),
        (
            {"x": X.astype(np.float64), "ids": [0]},
            TypeError,
            "'x' of the example is of type float64",
        ),
        ({"x": X, "ids": np.int32([0])}, TypeError, "'ids' .* int32; the signature takes int64"),
        ({"x": X[0], "ids": [0]}, ValueError, r"'x' of the example has shape \(4,\)"),
    ],
)
def test_a_wrong_example_names_the_argument(
    saved: str, example: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        advice.advise(saved, example, signature="ranked", progress=False)


def test_random_inputs_have_the_shapes_of_the_signature(saved: str) -> None:
    specs = advice_model.signature_specs(saved, "ranked")
    queries = advice_model.random_queries(specs, batch=3, max_int=2)
    assert kit.same([queries[0]["x"]], [advice_model.random_queries(specs, 3, 2)[0]["x"]])
    assert queries[0]["x"].tobytes() != queries[1]["x"].tobytes()
    for query in queries:
        assert query["x"].shape == (3, 4) and query["x"].dtype == np.float32
        assert query["ids"].shape == (3,) and query["ids"].dtype == np.int64
        assert query["ids"].min() >= 0 and query["ids"].max() <= 2
    words = advice_model.signature_specs(saved, "words")
    with pytest.raises(ValueError, match=r"'words' is of type string.*--example FILE.npz"):
        advice_model.random_queries(words, 1, 9)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["/no/such"], "there is no directory '/no/such'"),
        (["{empty}"], "has no SavedModel: neither saved_model.pb nor"),
        (["{saved}", "--signature", "other"], "no signature 'other'. It has: ranked, serving_def"),
        (["{saved}", "--seconds", "0.5"], "seconds=0.5 is not from 1 to 3600"),
        (["{saved}", "--seconds", "3601"], "seconds=3601.0 is not from 1 to 3600"),
        (["{saved}", "--threads", "0"], "threads has 0, which is not a whole number from 1 to 256"),
        (["{saved}", "--groups", "65"], "groups has 65, which is not a whole number from 1 to 64"),
        (["{saved}", "--policies", "best"], "policies has 'best'; there are embedding, full_graph"),
        (["{saved}", "--batch", "0"], "batch=0 is not a whole number above 0"),
        (["{saved}", "--example", "/no/file"], "--example '/no/file' is no file of arrays"),
        (["{saved}", "--signature", "words"], "'words' is of type string"),
    ],
)
def test_the_command_line_names_what_is_wrong(
    saved: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    says: str,
) -> None:
    given = [argument.format(empty=tmp_path, saved=saved) for argument in arguments]
    assert advise.main(given) == 2
    assert says in capsys.readouterr().err


def test_results_are_compared_bit_by_bit_and_within_a_tolerance() -> None:
    one = {"y": np.float32([1, 100]), "s": np.array([b"a"], object)}

    def other(y: Any, s: Any = b"a") -> advice_child.Arrays:
        return {"y": np.asarray(y), "s": np.array([s], object)}

    cases = (
        (other(np.float32([1, 100])), False, True),
        (other(np.float32([1.09, 100])), True, True),  # of 100
        (other(np.float32([1.2, 100])), True, False),
        (other(np.float32([np.nan, 100])), True, False),
        (other(np.float64([1, 100])), True, False),
        (other(np.float32([1])), True, False),
        (other(np.float32([1, 100]), b"b"), True, False),
        ({"y": one["y"]}, True, False),
    )
    for result, differs, close in cases:
        assert advice_child.differs(result, one) == differs
        assert advice_child.is_close(result, one) == close
    assert not advice_child.is_close({"i": np.int64([1000])}, {"i": np.int64([1001])})
    half = {"h": np.float16([1])}
    assert advice_child.is_close({"h": np.float16([1.009])}, half)
    nan = {"h": np.float32([np.nan, np.inf, 1])}
    assert advice_child.is_close({"h": np.float32([-np.nan, np.inf, 1])}, nan)


def test_processes_start_without_the_variables_of_the_runtime(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The jobs below import this file, too, but find no module of build/.
    from check_links import known_variables  # noqa: PLC0415

    known = set(known_variables(Path(__file__).parents[3]))
    assert set(advice_process.OURS) == known - STOCK_OURS - {advice_process.EMULATED}
    for name in known:
        monkeypatch.setenv(name, "inherited")
    monkeypatch.setenv("TF_FORCE_GPU_ALLOW_GROWTH", "false")
    inherited = advice_process.environment({"TF_GPU_STREAM_GROUP_COUNT": "2"})
    assert {k: v for k, v in inherited.items() if k in known} == {
        **dict.fromkeys([*STOCK_OURS, advice_process.EMULATED], "inherited"),
        "TF_GPU_STREAM_GROUP_COUNT": "2",
    }
    assert inherited["TF_FORCE_GPU_ALLOW_GROWTH"] == "true"


def test_a_process_that_has_the_memory_of_the_gpu_is_told_so(
    saved: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process with devices, and a GPU whose memory does not grow."""
    tf.constant(1.0)
    for name in ("TF_FORCE_GPU_ALLOW_GROWTH", advice_process.EMULATED):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(config, "list_physical_devices", lambda kind: ["a GPU"])
    monkeypatch.setattr(config, "get_memory_growth", lambda gpu: False)
    monkeypatch.setattr(config, "get_logical_device_configuration", lambda gpu: None)
    with pytest.raises(RuntimeError, match="TF_FORCE_GPU_ALLOW_GROWTH=true before TensorFlow"):
        tf.cuda.advise(saved, progress=False)


PROGRAM = """
import json, os, signal, sys, time
answers = os.fdopen(int(sys.argv[2]), "w")
def say(answer):
    answers.write(json.dumps(answer) + "\\n")
    answers.flush()
print("the log begins")
say({"emulated": True, "differing": False})
for line in sys.stdin:
    request = json.loads(line)
    if request["call"] == "fail":
        say({"error": "ValueError: no"})
    elif request["call"] == "die":
        print("the last line", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    elif request["call"] == "wait":
        time.sleep(1000)
    else:
        say({"calls": 1, "calls_per_second": 1, "p50_ms": 1, "p99_ms": 1, "cpu_ms": 1})
"""


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[advice_process.Child]:
    """A process that says what the test asks for, and has no TensorFlow."""
    (tmp_path / "said.py").write_text(PROGRAM)
    monkeypatch.setattr(advice_process, "_PROGRAM", "said")
    child = advice_process.Child(tmp_path, {}, "4 groups")
    yield child
    child.close()


def test_a_process_answers_and_its_end_has_its_last_lines(process: advice_process.Child) -> None:
    assert process.ready.emulated
    assert process.measure("signature", 1, 0.1).calls == 1
    with pytest.raises(advice_process.ChildError, match="4 groups: ValueError: no"):
        process.measure("fail", 1, 0.1)
    assert process.measure("signature", 1, 0.1).calls == 1
    for _ in range(2):
        with pytest.raises(
            advice_process.ChildEndedError,
            match=r"4 groups: its process ended, signal 9\n(.|\n)*  the last line$",
        ):
            process.measure("die", 1, 0.1)


def test_a_process_that_cannot_load_the_model_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = PROGRAM.replace(
        'say({"emulated"', 'say({"error": "OSError: no model"}), ({"emulated"'
    )
    (tmp_path / "said.py").write_text(program)
    monkeypatch.setattr(advice_process, "_PROGRAM", "said")
    child = advice_process.Child(tmp_path, {}, "stock")
    with pytest.raises(advice_process.ChildEndedError, match="stock: OSError: no model"):
        child.measure("signature", 1, 0.1)
    child.close()


def test_a_process_that_does_not_answer_is_an_error(
    process: advice_process.Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advice_process, "_CALL_SECONDS", 0.1)
    with pytest.raises(advice_process.ChildEndedError, match="4 groups: no answer for"):
        process.measure("wait", 1, 0.1)


def test_a_saved_model_is_measured_from_the_command_line(saved: str, tmp_path: Path) -> None:
    """All results right, with streams and recordings; from an example."""
    example = tmp_path / "example.npz"
    np.savez(example, x=X)
    arguments = [saved, "--example", str(example), "--seconds", "1", "--json"]
    arguments += ["--threads", "1,2", "--groups", "2", "--policies", ""]
    done = kit.run(
        f"""
        import sys
        from tensorflow.python.multistream import advise
        sys.exit(advise.main({arguments!r}))
        """,
        TF_MULTI_STREAM_EMULATED_GPUS="1",
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["errors"] == []
    rows = {(row["setting"], row["call"], row["threads"]): row for row in found["rows"]}
    assert {setting for setting, _, _ in rows} == {"stock", "2 groups", "2 groups, captured"}
    assert all(row["wrong"] == row["differing"] == 0 for row in rows.values())
    assert all(row["calls"] > 0 and row["peak_bytes"] > 0 for row in rows.values())
    for call in ("signature", "serving_callable"):
        assert rows["2 groups, captured", call, 2]["replayed"] > 0.5
    assert rows["2 groups", "signature", 2]["replayed"] == 0
    assert "Inputs: the example, x: float32[2, 4]" in found["text"]
    assert "The GPU is emulated" in found["text"]


def advise_a_function() -> None:
    """In a process that has stream groups and node level itself, which its processes have not."""
    model = Model()
    found = tf.cuda.advise(model, [X], seconds=1, threads=[1], groups=[1], progress=False)
    assert isinstance(found, tf.cuda.Advice) and not found.errors
    assert {row.setting for row in found.rows} == {"stock", "captured"}
    assert all(row.wrong == 0 for row in found.rows)
    assert "stock" in str(found) and str(found) == found.text


def test_a_function_is_measured() -> None:
    kit.run_job(advise_a_function)


def test_without_a_gpu_it_names_the_variable(
    saved: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advice_process.write_job(tmp_path, saved, "serving_default", [{"x": X}])
    monkeypatch.setattr(config, "list_physical_devices", lambda kind: [])
    with pytest.raises(RuntimeError, match=r"there is no GPU.*TF_MULTI_STREAM_EMULATED_GPUS=1"):
        advice_child.Server(tmp_path)
