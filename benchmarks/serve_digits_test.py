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
"""Tests of serve_digits.py, on whatever TensorFlow is installed."""

from __future__ import annotations

import pathlib
import sys

import numpy as np
import pytest
import serve_digits


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = str(tmp_path_factory.mktemp("digits"))
    accuracy = serve_digits.train(folder, epochs=3)
    assert accuracy > 0.85
    return folder


def test_every_thread_count_serves_the_same_bits(model: str) -> None:
    one = serve_digits.serve(model, threads=1, rounds=1, batch=50)
    many = serve_digits.serve(model, threads=4, rounds=3, batch=50)
    assert (one.calls, many.calls) == (10, 30)
    assert one.accuracy > 0.85
    assert many.changed == 0
    assert many.accuracy == one.accuracy
    assert serve_digits.count_different(many.probabilities, one.probabilities, 0) == 0


def test_batch_that_does_not_divide_the_test_set_serves_all_of_it(model: str) -> None:
    served = serve_digits.serve(model, threads=2, rounds=1, batch=150)
    assert served.calls == 4
    np.testing.assert_allclose(np.sum(served.probabilities, axis=1), 1, rtol=1e-5)


def test_saved_outputs_are_compared(
    model: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "outputs.npy")
    serve = ["serve", "--model", model, "--threads", "2", "--rounds", "1"]
    assert serve_digits.main([*serve, "--save", path]) == 0
    assert serve_digits.main([*serve, "--compare", path]) == 0
    assert "compared 500 outputs" in capsys.readouterr().out

    outputs = np.load(path)
    outputs[7, 3] = np.nextafter(outputs[7, 3], np.float32(2))
    np.save(path, outputs)
    assert serve_digits.main([*serve, "--compare", path]) == 1
    assert "1 wrong" in capsys.readouterr().out
    assert serve_digits.main([*serve, "--compare", path, "--tolerance", "1e-3"]) == 0


def test_difference_of_one_bit_counts_unless_tolerated() -> None:
    reference = np.ones((3, 10), np.float32)
    outputs = reference.copy()
    outputs[1, 2] = np.nextafter(np.float32(1), np.float32(2))
    outputs[2, :] = -1
    assert serve_digits.count_different(outputs, reference, 0) == 2
    assert serve_digits.count_different(outputs, reference, 1e-6) == 1
    outputs[0, 0] = np.nan
    assert serve_digits.count_different(outputs, reference, 1e-6) == 2


def test_outputs_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"float32\[2, 10\]"):
        serve_digits.count_different(np.ones((3, 10), np.float32), np.ones((2, 10), np.float32), 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "train needs --out"),
        (["serve"], "serve needs --model"),
        (["--threads", "0"], "'0' is not a whole number from 1 to 256"),
        (["--batch", "501"], "'501' is not a whole number from 1 to 500"),
        (["--rounds", "x"], "'x' is not a whole number"),
        (["--tolerance", "nan"], "'nan' is not a number of 0 or more"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        serve_digits.main(arguments)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


def test_missing_files_are_named(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve_digits.main(["serve", "--model", "/no/model"]) == 1
    assert "/no/model" in capsys.readouterr().err
    assert serve_digits.main(["serve", "--model", model, "--compare", "/no/outputs"]) == 1
    assert "/no/outputs" in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
