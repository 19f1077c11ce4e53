# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page of the model server: its model is made, served, and called as the page says.

The wheel has the server, too.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
import serving_kit
from multistream.testing import kit
from serving_kit import FRONT, Saved, until

PAGE = (serving_kit.FOLDER.parents[1] / "docs" / "model-server.md").read_text()
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("options", [(), (f"--front={FRONT}",)], ids=["", "front"])
def test_programs_of_the_page(tmp_path: pathlib.Path, options: tuple[str, ...]) -> None:
    make, *clients = PROGRAMS
    kit.run_program(["-c", make], tmp_path, TF_MULTI_STREAM_EMULATED_GPUS="1")
    assert "--model digits=models/digits" in PAGE
    model = f"--model=digits={tmp_path / 'models/digits'}"
    with serving_kit.serving(model, *options, log=tmp_path / "log") as server:
        for client in clients:
            assert "127.0.0.1:8500" in client
            here = client.replace("127.0.0.1:8500", server.address)
            done = kit.run_program(["-c", here], tmp_path, TF_MULTI_STREAM_EMULATED_GPUS="1")
            assert done.stdout.split() == ["[[0.1", *["0.1"] * 8, "0.1]]"], done.stderr
        answers = []
        for body, path in re.findall(r"curl -d '(.*?)'[\s\\]+http://127.0.0.1:8501(\S+)", PAGE):
            status, answer = server.rest(path, json.loads(body))
            assert status == 200, answer
            answers.append(answer)
        serving, open_inference = answers
        assert serving["predictions"] == [open_inference["outputs"][0]["data"]]
        assert len(serving["predictions"][0]) == 10


@pytest.mark.parametrize("front", [False, True], ids=["", "front"])
def test_the_wheel_has_the_server(tmp_path: pathlib.Path, saved: Saved, front: bool) -> None:
    """And another wheel has the front, which the server finds if it is installed."""
    packages = tmp_path / "packages"
    if front:
        (wheel,) = FRONT.parent.glob("tensorflow_multistream_front-*.whl")
        pip = ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", f"--target={packages}"]
        subprocess.run([sys.executable, *pip, str(wheel)], check=True)
    module = "tensorflow.python.multistream.serve"
    assert f"python -m {module} --model" in PAGE
    log = tmp_path / "log"
    options = (f"--model=toy={saved.folder}", "--port=0", "--rest-port=0")
    with log.open("w") as file:
        server = subprocess.Popen(
            [sys.executable, "-m", module, *options],
            cwd=tmp_path,
            env=serving_kit.environment(
                TF_GPU_STREAM_GROUP_COUNT="2",
                PYTHONPATH=os.pathsep.join([str(packages), *sys.path]),
            ),
            stdout=file,
            stderr=file,
        )
    try:
        until(lambda: "ready: " in log.read_text() or server.poll() is not None, 120)
        found = re.search(r"REST on (\S+)", log.read_text())
        assert found, log.read_text()
        body = json.dumps({"instances": saved.x.tolist()}).encode()
        with urllib.request.urlopen(f"{found[1]}/v1/models/toy:predict", body, 20) as answer:
            assert np.allclose(json.load(answer)["predictions"], saved.answers["y2"], atol=1e-5)
        with urllib.request.urlopen(f"{found[1]}/metrics") as answer:
            assert (b"model_server_front_process_" in answer.read()) == front
        assert (f"{packages}/tensorflow_multistream_front/front has" in log.read_text()) == front
    finally:
        server.terminate()
        assert server.wait(60) == 0, log.read_text()


def test_a_package_that_the_server_lacks_is_named() -> None:
    code = """
import runpy, sys
sys.modules["uvicorn"] = None  # as if it were not installed
runpy.run_module("tensorflow.python.multistream.serve", run_name="__main__")
"""
    done = serving_kit.run_here(code, 60)
    assert done.returncode == 1
    assert "needs the package of uvicorn, which is not installed: pip install grpcio" in done.stderr
