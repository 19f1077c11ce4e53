# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the model server: docs/model-server.md.

    python -m tensorflow.python.multistream.serve --model NAME=FOLDER ...

The wheel has the server's files, which are those of examples/serving, beside this one.
"""

import pathlib
import runpy
import sys

_FOLDER = pathlib.Path(__file__).resolve().parent
# What the server needs beside the wheel: modules, and the packages that have them.
_PACKAGES = {
    "grpc": "grpcio",
    "grpc_health": "grpcio-health-checking",
    "prometheus_client": "prometheus-client",
    "starlette": "starlette",
    "tensorflow_serving": "tensorflow-serving-api",
    "uvicorn": "uvicorn",
}


def main() -> None:
    """Runs the server as the program model_server.py."""
    # Its modules import each other by name, as files of one folder do.
    sys.path.insert(0, str(_FOLDER))
    try:
        runpy.run_path(str(_FOLDER / "model_server.py"), run_name="__main__")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in _PACKAGES:
            raise
        sys.exit(
            f"The model server needs the package of {error.name}, which is not installed: "
            f"pip install {' '.join(_PACKAGES.values())}"
        )


if __name__ == "__main__":
    main()
