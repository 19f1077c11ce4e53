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
"""Says which variables to export for a SavedModel: `tf.cuda.advise` from the command line.

    python -m tensorflow.python.multistream.advise DIRECTORY [--signature serving_default]
        [--example FILE.npz] [--seconds 60] [--threads 1,4,8,16] [--json]

Exit status: 0, 1 if a setting gave wrong results or failed, 2 if nothing could be measured.
"""

import argparse
import dataclasses
import json
import sys
import zipfile
from collections.abc import Sequence

import numpy as np
from tensorflow.python.multistream import advice, advice_model


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _example(path: str) -> advice_model.Query:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)
    except (OSError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"--example {path!r} is no file of arrays as numpy.savez(FILE, argument=array) writes "
            f"it: {error}"
        ) from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tensorflow.python.multistream.advise",
        description="Measures a SavedModel, and says which variables to export for it.",
    )
    parser.add_argument("directory", help="the SavedModel")
    parser.add_argument("--signature", default=advice_model.SIGNATURE)
    parser.add_argument("--example", help="a file of numpy.savez, an array for each argument")
    parser.add_argument("--seconds", type=float, default=advice.SECONDS, help="to measure")
    parser.add_argument("--threads", type=_numbers, default=advice.THREADS)
    parser.add_argument("--groups", type=_numbers, default=advice.GROUPS)
    parser.add_argument("--policies", default=",".join(advice.POLICIES), help="may be empty")
    parser.add_argument("--batch", type=int, default=1, help="the size of unknown dimensions")
    parser.add_argument("--max-int", type=int, default=advice.MAX_INT, help="of random integers")
    parser.add_argument("--json", action="store_true", help="print the advice as JSON")
    options = parser.parse_args(arguments)
    try:
        found = advice.advise(
            options.directory,
            None if options.example is None else _example(options.example),
            signature=options.signature,
            seconds=options.seconds,
            threads=options.threads,
            groups=options.groups,
            policies=[policy for policy in options.policies.split(",") if policy],
            batch=options.batch,
            max_int=options.max_int,
        )
    except (OSError, RuntimeError, TypeError, ValueError) as error:
        print(f"advise: {error}", file=sys.stderr)
        return 2
    print(json.dumps(dataclasses.asdict(found)) if options.json else found)
    return 1 if found.errors else 0


if __name__ == "__main__":
    sys.exit(main())
