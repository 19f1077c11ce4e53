# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Load by Locust finds every answer right, and counts what is not."""

import json
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import serving_kit
from serving_kit import Saved, Server


def locust(server: Server, folder: pathlib.Path, *examples: dict[str, Any]) -> Any:
    """Two users of each API call the server for a moment, with examples of these arrays."""
    folder.mkdir()
    options = []
    for number, example in enumerate(examples):
        np.savez(folder / f"{number}.npz", **example)
        options.append(f"--example={number}.npz")
    locustfile = serving_kit.FOLDER / "locustfile.py"
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "locust", f"--locustfile={locustfile}", "--headless", "--json"),
            *("--users=4", "--spawn-rate=4", "--run-time=1s", f"--host={server.url}"),
            *(f"--grpc={server.address}", "--model=toy", *options),
        ],
        env=serving_kit.environment(),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_each_answer_under_load_is_compared_with_the_example(
    server: Server, saved: Saved, tmp_path: pathlib.Path
) -> None:
    """Three runs: all right; one bit or a column wrong; an example without an answer."""
    x, y = saved.x, saved.answers["y2"]
    other = y.copy()
    other[-1, -1] = np.nextafter(y[-1, -1], np.float32(2))
    before = {status: server.calls("Predict", status) for status in ("OK", "INVALID_ARGUMENT")}
    runs = [
        locust(server, tmp_path / "right", {"inputs/x": x, "outputs/y": y}),
        locust(
            *(server, tmp_path / "wrong", {"inputs/x": x, "outputs/y": other}),
            {"inputs/x": x[:, 1:], "outputs/y": y},
        ),
        locust(server, tmp_path / "none", {"inputs/x": x}),
    ]
    (right, _), (wrong, _), (_, refused) = (run.communicate(timeout=300) for run in runs)
    assert [run.returncode for run in runs[:2]] == [0, 1]
    for text, is_wrong in ((right, False), (wrong, True)):
        entries = {entry["method"]: entry for entry in json.loads(text)}
        assert entries.keys() == {"gRPC", "POST"}
        for entry in entries.values():
            assert entry["num_requests"] > 0
            assert entry["num_failures"] == is_wrong * entry["num_requests"]
    # Of calls that were under way at the end only the server may know.
    count = sum(entry["num_requests"] for entry in json.loads(right))
    assert server.calls("Predict", "OK") - before["OK"] >= count
    assert server.calls("Predict", "INVALID_ARGUMENT") > before["INVALID_ARGUMENT"]
    assert runs[2].returncode != 0
    assert "--example 0.npz: it must have arrays" in refused
