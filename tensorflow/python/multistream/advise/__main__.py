# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""`tf.cuda.advise` from the command line: says which variables to export for a SavedModel.

    python -m tensorflow.python.multistream.advise DIRECTORY [--signature NAME]
        [--example FILE.npz] [--batch N] [--threads N] [--seconds S]

Exit status: 0, 1 if a setting gave wrong results or failed, 2 if nothing could be measured.
"""

import argparse
import sys
import zipfile
from collections.abc import Sequence

import numpy as np
from tensorflow.python.multistream.advise import advise, model


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line `arguments`, by default the process's own; returns the exit status."""
    parser = argparse.ArgumentParser(
        "python -m tensorflow.python.multistream.advise", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("directory", help="the SavedModel")
    parser.add_argument("--signature", default=model.SIGNATURE, help="[%(default)s]")
    parser.add_argument("--example", help="FILE of numpy.savez(FILE, argument=array, ...)")
    parser.add_argument("--batch", type=int, default=1, help="size of unknown dimensions [1]")
    parser.add_argument("--threads", type=int, default=advise.THREADS, help="[%(default)s]")
    parser.add_argument("--seconds", type=float, default=advise.SECONDS, help="[%(default)s]")
    options = vars(parser.parse_args(arguments))
    file = options.pop("example")
    try:
        example = file and dict(np.load(file, allow_pickle=False))
        found = advise.advise(options.pop("directory"), example, **options)
    except (OSError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile) as error:
        print(f"advise: {error}", file=sys.stderr)
        return 2
    print(found)
    return 1 if found.errors else 0


if __name__ == "__main__":
    sys.exit(main())
