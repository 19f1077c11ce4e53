#!/usr/bin/env python3
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples one after the other, on the machine's GPUs or, without one, on emulated ones.

    python scripts/run_examples.py [EXAMPLE ...]

It runs them with the Python that runs it, in which the wheel is installed. What an example
prints is shown; what it and TensorFlow log is shown if it fails.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import subprocess
import sys

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent / "examples"
EMULATED = "TF_MULTI_STREAM_EMULATED_GPUS"
COUNT_GPUS = "import tensorflow as tf; print(len(tf.config.list_physical_devices('GPU')))"


def main() -> int:
    """Runs what the command line says and returns the exit status."""
    paths = (path for path in EXAMPLES.glob("*.py") if not path.stem.endswith("_test"))
    known = {path.stem: path for path in sorted(paths)}
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="Exit status: 0; 1 if an example fails; 2 for a wrong argument.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "examples", metavar="EXAMPLE", nargs="*", help=f"of {', '.join(known)} [all]"
    )
    wanted = parser.parse_args().examples or list(known)
    for name in wanted:
        if name not in known:
            parser.error(f"unknown example '{name}'. Allowed: {', '.join(known)}.")
    emulated = False
    if EMULATED not in os.environ:
        done = subprocess.run(
            [sys.executable, "-c", COUNT_GPUS], capture_output=True, text=True, check=False
        )
        if done.returncode:
            print(f"{done.stderr}error: TensorFlow cannot be imported.", file=sys.stderr)
            print(f"Install the wheel for {sys.executable}.", file=sys.stderr)
            return 1
        emulated = int(done.stdout) == 0
    if emulated:
        print(
            "TensorFlow sees no GPU: on emulated ones, whose results count and whose times do not"
        )
    failed = []
    for name in wanted:
        print(f"\n{name}", flush=True)
        variables = dict(os.environ)
        if emulated:  # as many as in the command in the example's docstring, or one
            found = re.search(rf"{EMULATED}=(\d+) ", known[name].read_text(encoding="utf-8"))
            variables[EMULATED] = found[1] if found else "1"
        done = subprocess.run(
            [sys.executable, str(known[name])],
            env=variables,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            failed.append(f"{name} (status {done.returncode})")
    print(f"\n{len(wanted) - len(failed)} of {len(wanted)} examples passed")
    if failed:
        print(f"error: failed: {', '.join(failed)}. What each said is above.", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
