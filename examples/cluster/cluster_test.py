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
"""compose.yaml's services run on this machine as they stand, but for addresses and the GPU."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
from typing import Any

import pytest
import yaml

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
ADDRESS = re.compile(r"\b(\w+):2222\b")


def services() -> dict[str, Any]:
    """The services of the file."""
    found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]
    return found


def loopback(names: list[str]) -> dict[str, str]:
    """An address of this machine for each service."""
    sockets = [socket.socket() for _ in names]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{one.getsockname()[1]}" for one in sockets]
    for one in sockets:
        one.close()
    return dict(zip(names, addresses, strict=True))


def start(service: dict[str, Any], addresses: dict[str, str]) -> subprocess.Popen[str]:
    """Starts what the container would."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TF_")}
    given = dict(service["environment"])
    given["TF_CONFIG"] = ADDRESS.sub(lambda found: addresses[found[1]], given["TF_CONFIG"])
    if "deploy" in service:
        given["TF_MULTI_STREAM_EMULATED_GPUS"] = "1"
    program, *arguments = shlex.split(service["command"])
    assert program == "python"
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**clean, **given, "TF_CPP_MIN_LOG_LEVEL": "2"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_parameter_server_and_two_workers_train() -> None:
    found = services()
    addresses = loopback(list(found))
    running = {name: start(service, addresses) for name, service in found.items()}
    try:
        steps = 0
        for name in ("worker0", "worker1"):
            output, errors = running[name].communicate(timeout=120)
            assert running[name].returncode == 0, errors[-3000:]
            line = r"worker (\d): (\d+) steps on groups \[0, 1, 2\], loss (\S+) -> (\S+)\n"
            match = re.fullmatch(line, output)
            assert match, output
            assert name == f"worker{match[1]}"
            # One that came late may have made few steps.
            assert int(match[2]) < 50 or float(match[4]) < float(match[3])
            steps += int(match[2])
        assert steps >= 300  # of both
        assert running["ps0"].poll() is None
    finally:
        for process in running.values():
            process.kill()
            process.communicate()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, *sys.argv[1:]]))
