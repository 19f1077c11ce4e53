# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The programs in the documentation run as they stand, on an emulated GPU."""

import pathlib
import re
import shlex

import pytest
from multistream.testing import kit

DOCS = pathlib.Path(__file__).resolve().parents[1] / "docs"
BLOCK = re.compile(r"^```(python)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def programs() -> list[tuple[str, dict[str, str], str]]:
    """Finds the programs: the blocks of Python that import TensorFlow.

    Returns:
      For each, its page, the environment that the page exports before it, and its text.
    """
    found = []
    for page in sorted(DOCS.glob("*.md")):
        exported: dict[str, str] = {}
        for python, text in BLOCK.findall(page.read_text()):
            if python and "import tensorflow" in text:
                found.append((page.name, exported, text))
            for line in re.findall(r"^export (.*)", text, re.MULTILINE):
                settings = shlex.split(line, comments=True)
                exported = exported | {k: v for k, _, v in (s.partition("=") for s in settings)}
    return found


PROGRAMS = programs()


def test_pages_for_users_have_a_program() -> None:
    wanted = {"advise.md", "serving.md", "training.md", "policies.md", "deeprec.md"}
    assert wanted <= {page for page, _, _ in PROGRAMS}


@pytest.mark.parametrize(
    ("exported", "text"),
    [(exported, text) for _, exported, text in PROGRAMS],
    ids=[page for page, _, _ in PROGRAMS],
)
def test_program_of_a_page_runs_and_prints(
    exported: dict[str, str], text: str, tmp_path: pathlib.Path
) -> None:
    environment = {"TF_MULTI_STREAM_EMULATED_GPUS": "1", **exported}
    done = kit.run_program(["-c", text], tmp_path, **environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
