# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the soak draws, and of its command line."""

from __future__ import annotations

import dataclasses
import itertools
import pathlib
import sys

import draw
import pytest
import soak


def first(count: int, seed: int, gpu: bool = False) -> list[draw.Round]:
    return list(itertools.islice(draw.draw_rounds(seed, 4, gpu), count))


def test_same_seed_draws_the_same_and_another_one_does_not() -> None:
    assert first(20, 7) == first(20, 7)
    assert first(20, 7) != first(20, 8)
    # Also of a round by itself, to run it again.
    assert draw.draw_round(7, 13, 4, gpu=False) == first(20, 7)[13]


@pytest.mark.parametrize("gpu", [False, True])
def test_rounds_have_all_that_their_settings_allow(gpu: bool) -> None:
    rounds = first(200, 3, gpu)
    possible = [kind for kind in draw.KINDS if gpu or kind not in draw.GPU_ONLY]
    not_captured = [kind for kind in possible if kind not in draw.GRAPH_LEVEL_ONLY]
    assert list(rounds[0].workers) == possible
    assert list(rounds[1].workers) == not_captured
    assert rounds[1].node_level
    for round_ in rounds:
        assert len(round_.workers) >= draw.LEAST_KINDS
        assert set(round_.workers) <= set(not_captured if round_.node_level else possible)
        assert not (round_.node_level and "TF_MULTI_STREAM_CAPTURE" in round_.settings)
        assert round_.workers.get("variables", 2) >= 2
        most = 64 if gpu else draw.MOST_EMULATED
        assert all(1 <= n <= min(draw.KINDS[kind], most) for kind, n in round_.workers.items())
        if gpu:
            assert all(round_.workers.get(kind, 16) == 16 for kind in draw.MANY_THREADS)
        assert ("TF_MULTI_STREAM_EMULATED_GPUS" in round_.settings) != gpu
        assert not (gpu and round_.sanitized)
    assert {r.policy for r in rounds} == {"", *draw.POLICIES}
    captures = {r.settings.get("TF_MULTI_STREAM_CAPTURE") for r in rounds}
    assert captures == {None, "auto", "marked"}
    for kind in possible:
        assert any(kind not in r.workers for r in rounds)
    if not gpu:
        assert 0.1 < sum(r.sanitized for r in rounds) / len(rounds) < 0.5


def test_round_has_no_settings_but_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_MULTI_STREAM_POLICY", "cost")
    monkeypatch.setenv("TF_GPU_STREAM_GROUP_COUNT", "9")
    found = soak.environment({"TF_GPU_STREAM_GROUP_COUNT": "4"}, None)
    assert found["TF_GPU_STREAM_GROUP_COUNT"] == "4"
    assert "TF_MULTI_STREAM_POLICY" not in found
    assert "PATH" in found
    assert soak.environment({}, "drop_hold")["TF_MULTI_STREAM_TEST_FAULTS"] == "true"


def test_short_soak_has_a_round_at_each_level() -> None:
    drawn = dataclasses.replace(draw.draw_round(1, 0, 4, gpu=False), seconds=150)
    assert soak.restricted(drawn, None, None, left=120, total=120).seconds == 40
    assert soak.restricted(drawn, None, None, left=15, total=1200).seconds == soak.LEAST_SECONDS
    assert soak.restricted(drawn, None, None, left=900, total=1200) == drawn
    assert list(soak.restricted(drawn, ["feeds"], None, 900, 1200).workers) == ["feeds"]
    assert soak.restricted(drawn, ["feeds"], 8, 900, 1200).workers == {"feeds": 8}


def test_folder_with_logs_is_left_alone(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "round-0.log").write_text("of another soak")
    assert soak.main(["--out", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--minutes", "0"], "--minutes: '0' is not a number above 0"),
        (["--groups", "1"], "--groups: '1' is not a whole number from 2 to 64"),
        (["--only", "x"], "invalid choice: 'x'"),
        (["--memory-mib", "255"], "--memory-mib 255 is less than 64 for each group"),
    ],
)
def test_bad_arguments_are_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        soak.parse_arguments(arguments)
    assert exit_info.value.code == 2
    assert message in capsys.readouterr().err


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
