# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gets a stock TensorFlow wheel and makes the tree that Bazel sees as @tensorflow.

    python3 build/stock_wheel.py fetch --python cp312 [--release 2.20.0]
    python3 build/stock_wheel.py prepare --python cp312 --patches patches/2.21.0 --out DIR

`fetch` downloads the wheel with pip, checks it against the hash in releases.py and unpacks its
headers and libraries, all in a cache (TFMS_CACHE, by default tensorflow-multistream in
XDG_CACHE_HOME).
`prepare` does so too, then fills DIR with links into the cache and the patched files.
"""

import errno
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator

import patch_series
from build_error import BuildError, command_line, run_main
from releases import BASE, release_named

LIBRARIES = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")

_INCLUDE = "tensorflow/include/"
# Bazel would take folders with these files for packages of their own.
_BAZEL_FILES = ("BUILD", "BUILD.bazel", "WORKSPACE", "WORKSPACE.bazel")


def default_tag() -> str:
    """Returns the tag, such as "cp311", of the Python that runs this."""
    return f"cp{sys.version_info.major}{sys.version_info.minor}"


def check_tag(tag: str, release: str = BASE) -> str:
    """Returns a Python's tag, such as "cp312", if a release has a stock wheel for it."""
    known = release_named(release).sha256
    if tag not in known:
        raise BuildError(
            f"TensorFlow {release} has no wheel for Python '{tag}'; allowed: {', '.join(known)}.\n"
            "Choose one: scripts/build_wheel.sh --python cp312, or "
            "bazel build --repo_env=TFMS_PYTHON=cp312."
        )
    return tag


def cache_folder() -> pathlib.Path:
    """Returns the cache's folder, which may not exist yet."""
    chosen = os.environ.get("TFMS_CACHE")
    if chosen:
        return pathlib.Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "tensorflow-multistream"


def wheel_name(tag: str, release: str = BASE) -> str:
    """Returns the file name of a release's stock wheel for a Python tag."""
    return f"tensorflow-{release}-{tag}-{tag}-{release_named(release).platform}.whl"


def sha256_of(path: pathlib.Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fetch(tag: str, cache: pathlib.Path, release: str = BASE) -> pathlib.Path:
    """Makes sure that the cache folder has a verified stock wheel, and returns its path there."""
    expected = release_named(release).sha256[check_tag(tag, release)]
    wheel = cache / "wheels" / expected / wheel_name(tag, release)
    if wheel.is_file():
        return wheel
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        platforms = release_named(release).platform.split(".")
        otherwise = f"put {wheel.name} into {wheel.parent}"
        downloaded = download(tag, release, platforms, pathlib.Path(folder), otherwise)
        if (found := sha256_of(downloaded)) != expected:
            raise BuildError(
                f"{downloaded} has SHA-256 {found}, but {expected} is pinned.\n"
                "The file is damaged, or is not the wheel that TensorFlow released. Delete it and "
                "try again; if that does not help, find out where pip gets it from (pip config "
                "list)."
            )
        downloaded.replace(wheel)
    return wheel


def unpack(wheel: pathlib.Path, folder: pathlib.Path) -> None:
    """Unpacks a stock wheel's headers and libraries to a folder, which appears when complete."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        wanted = dict(_wanted_members(archive))
        needed = sum(archive.getinfo(member).file_size for member in wanted)
        free = shutil.disk_usage(folder.parent).free
        if free < needed:
            raise BuildError(
                f"{folder.parent} has {free / 1e9:.1f} GB free; unpacking TensorFlow's wheel takes"
                f" {needed / 1e9:.1f} GB.\n"
                "Free some, or set TFMS_CACHE to a folder on a larger disk."
            )
        partial = pathlib.Path(tempfile.mkdtemp(dir=folder.parent, prefix="partial-"))
        try:
            for member, target in wanted.items():
                path = partial / target
                path.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as source, path.open("wb") as sink:
                    shutil.copyfileobj(source, sink, 1 << 20)
            partial.chmod(0o755)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def fill_cache(tag: str, release: str) -> tuple[pathlib.Path, pathlib.Path]:
    """Makes sure, one process at a time, that the cache has a stock wheel, also unpacked."""
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wheel = fetch(tag, cache, release)
        unpacked = cache / "unpacked" / release_named(release).sha256[tag]
        unpack(wheel, unpacked)
    return wheel, unpacked


def prepare(tag: str, patches: pathlib.Path, out: pathlib.Path, release: str = BASE) -> None:
    """Fills a folder with what Bazel needs of a stock wheel.

    The folder gets include/ and lib/ (links into the cache), wheel/ (a link to the stock wheel),
    patched/ (the files that the series in `patches` changes, changed) and stock.json, which
    describes them.
    """
    wheel, unpacked = fill_cache(tag, release)
    with zipfile.ZipFile(wheel) as archive:
        changed = patch_series.apply_series(patches, archive)
    for path, text in changed.items():
        target = out / "patched" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    (out / "include").symlink_to(unpacked / "include")
    for folder, source in (("lib", unpacked / "lib"), ("wheel", wheel.parent)):
        (out / folder).mkdir()
        for file in source.iterdir():
            (out / folder / file.name).symlink_to(file)
    description = {"version": release, "tag": tag, "wheel": f"wheel/{wheel.name}"}
    (out / "stock.json").write_text(json.dumps({**description, "python": sys.executable}))


def _wanted_members(archive: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    for member in archive.namelist():
        if member.endswith("/") or member.rsplit("/", 1)[-1] in _BAZEL_FILES:
            continue
        if member.startswith(_INCLUDE):
            yield member, "include/" + member[len(_INCLUDE) :]
    for library in LIBRARIES:
        if f"tensorflow/{library}" not in archive.NameToInfo:
            raise BuildError(f"{archive.filename} has no tensorflow/{library}.")
        yield f"tensorflow/{library}", f"lib/{library}"


def download(
    tag: str, release: str, platforms: Iterable[str], folder: pathlib.Path, otherwise: str
) -> pathlib.Path:
    """Gets a wheel of TensorFlow for one of the platforms with pip, whatever its hash.

    `otherwise` says what else one can do, for the error.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    command += ["--disable-pip-version-check", "--no-cache-dir", "--quiet"]
    command += ["--python-version", f"{tag[2]}.{tag[3:]}", "--implementation", "cp"]
    for platform in platforms:
        command += ["--platform", platform]
    command += ["--dest", str(folder), f"tensorflow=={release}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return next(folder.glob("*.whl"))
    if "No module named pip" in result.stderr:
        raise BuildError(f"{sys.executable} has no pip.\nInstall it: apt-get install python3-pip.")
    reason = " ".join(result.stderr.strip().splitlines()[-1:])
    raise BuildError(
        f"pip could not download tensorflow=={release} for {tag}: {reason}\n"
        f"Check the network and pip's configuration (pip config list), then try again; or "
        f"{otherwise}."
    )


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__)
    parser.add_argument("command", choices=("fetch", "prepare"))
    parser.add_argument("--python", metavar="TAG", default="", help="default: this Python's")
    parser.add_argument("--release", default=BASE, help=f"of TensorFlow; default: {BASE}")
    parser.add_argument("--patches", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    release = options.release or BASE
    tag = check_tag(options.python or default_tag(), release)
    try:
        if options.command == "fetch":
            print(fill_cache(tag, release)[0])
        else:
            prepare(tag, options.patches, options.out, release)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BuildError(
                f"No space left on the disk of {cache_folder()}.\n"
                "Free 2 GB, or set TFMS_CACHE to a folder on a larger disk."
            ) from error
        raise BuildError(f"{error.filename}: {error.strerror}.") from error


if __name__ == "__main__":
    run_main(main)
