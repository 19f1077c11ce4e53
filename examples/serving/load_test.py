# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Load by Locust finds every answer right, and counts what is not."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import serving_kit
from serving_kit import Saved, Server


class Load(NamedTuple):
    """How a run of Locust ended, and the requests and failures of each API."""

    status: int
    requests: dict[str, int]
    failures: dict[str, int]


def locust(server: Server, folder: pathlib.Path, *examples: dict[str, Any]) -> Any:
    """Two users of each API call the server for a moment, with examples of these arrays."""
    options = []
    for number, example in enumerate(examples):
        np.savez(folder / f"{number}.npz", **example)
        options.append(f"--example={number}.npz")
    locustfile = serving_kit.FOLDER / "locustfile.py"
    return subprocess.run(
        [
            *(sys.executable, "-m", "locust", f"--locustfile={locustfile}", "--headless", "--json"),
            *("--users=4", "--spawn-rate=4", "--run-time=1s", f"--host={server.url}"),
            *(f"--grpc={server.address}", "--model=toy", *options),
        ],
        env=serving_kit.environment(),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def load(server: Server, folder: pathlib.Path, *examples: tuple[Any, Any]) -> Load:
    """A run of Locust that wants the second of each pair as the answer to the first."""
    done = locust(server, folder, *({"inputs/x": x, "outputs/y": y} for x, y in examples))
    assert done.stdout, done.stderr[-3000:]
    entries = json.loads(done.stdout)
    requests = {entry["method"]: entry["num_requests"] for entry in entries}
    assert requests.keys() == {"gRPC", "POST"}
    return Load(
        done.returncode, requests, {entry["method"]: entry["num_failures"] for entry in entries}
    )


def test_every_answer_under_load_is_right(
    server: Server, saved: Saved, tmp_path: pathlib.Path
) -> None:
    before = server.calls("Predict", "OK")
    done = load(server, tmp_path, (saved.x, saved.answers["y2"]))
    assert done.status == 0
    assert done.failures == {"gRPC": 0, "POST": 0}
    # Of those that were under way at the end only the server may know.
    assert server.calls("Predict", "OK") - before >= sum(done.requests.values())


def test_wrong_answers_and_errors_under_load_are_failures(
    server: Server, saved: Saved, tmp_path: pathlib.Path
) -> None:
    x, y = saved.x, saved.answers["y2"].copy()
    y[-1, -1] = np.nextafter(y[-1, -1], np.float32(2))  # one bit
    errors = server.calls("Predict", "INVALID_ARGUMENT")
    right = server.calls("Predict", "OK")
    done = load(server, tmp_path, (x, y), (x[:, 1:], y))  # the second has a column too few
    assert done.status == 1
    assert done.failures == done.requests
    assert server.calls("Predict", "INVALID_ARGUMENT") > errors
    assert server.calls("Predict", "OK") > right


def test_an_example_that_says_no_answer_is_refused(
    server: Server, saved: Saved, tmp_path: pathlib.Path
) -> None:
    done = locust(server, tmp_path, {"inputs/x": saved.x})
    assert done.returncode != 0
    assert "--example 0.npz: it must have arrays" in done.stderr
