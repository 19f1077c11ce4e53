# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The one kind of failure that the build reports to its user."""

import argparse
import sys
from collections.abc import Callable
from typing import Any


class BuildError(Exception):
    """Says what is wrong and, after a line break, what to do about it."""


def command_line(docstring: str | None, **options: Any) -> argparse.ArgumentParser:
    """Makes the parser of a program that run_main runs; --help shows all of its docstring."""
    return argparse.ArgumentParser(
        description=docstring,
        epilog="Exit status: 0; 1 if it failed, and a message says why; 2 for a wrong argument.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **options,
    )


def run_main(main: Callable[[], None]) -> None:
    """Runs a program and turns a BuildError into one message and exit status 1."""
    try:
        main()
    except BuildError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
