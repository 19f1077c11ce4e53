# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The page of the model server: its model is made, served, and called as the page says."""

import json
import pathlib
import re

import pytest
import serving_kit
from multistream.testing import kit
from serving_kit import FRONT

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
