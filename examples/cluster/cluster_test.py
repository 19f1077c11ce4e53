# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""compose.yaml's services run on this machine as they stand, but for addresses and the GPU."""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import time
from typing import Any

import yaml
from multistream.testing.cluster import make_spec

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
ADDRESS = re.compile(r"\b(\w+):2222\b")


def start(
    service: dict[str, Any], addresses: dict[str, str], log: pathlib.Path
) -> subprocess.Popen[bytes]:
    """Starts what the container would; its output goes to `log`."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    given = dict(service["environment"])
    given["TF_CONFIG"] = ADDRESS.sub(lambda found: addresses[found[1]], given["TF_CONFIG"])
    if "deploy" in service:
        given["TF_MULTI_STREAM_EMULATED_GPUS"] = "1"
    program, *arguments = shlex.split(service["command"])
    assert program == "python"
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**clean, **given, "TF_CPP_MIN_LOG_LEVEL": "2"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def test_a_parameter_server_and_two_workers_train(tmp_path: pathlib.Path) -> None:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    spec = make_spec(**dict.fromkeys(found, 1))
    addresses = {name: address for name, (address,) in spec.items()}
    running: dict[str, subprocess.Popen[bytes]] = {}
    logs = {name: tmp_path / name for name in found}
    try:
        for name, service in found.items():
            running[name] = start(service, addresses, logs[name])
            # A worker that finds no variables yet looks again after 30 seconds.
            if name == "worker0":
                end = time.monotonic() + 120  # on a busy machine
                while "worker 0: trains" not in logs[name].read_text():
                    assert running[name].poll() is None and time.monotonic() < end
                    time.sleep(0.05)
        steps = 0
        for name in ("worker0", "worker1"):
            status = running[name].wait(timeout=120)
            text = logs[name].read_text()
            assert status == 0, text[-3000:]
            line = r"^worker (\d): (\d+) steps on groups \[0, 1, 2\], loss (\S+) -> (\S+)$"
            match = re.search(line, text, re.MULTILINE)
            assert match, text[-3000:]
            assert name == f"worker{match[1]}"
            # One that came late may have made few steps.
            assert int(match[2]) < 50 or float(match[4]) < float(match[3])
            steps += int(match[2])
        assert steps >= 300  # of both
        assert running["ps0"].poll() is None
    finally:
        for process in running.values():
            process.kill()
            process.wait()
