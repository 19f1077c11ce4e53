# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gets a stock TensorFlow wheel and makes the tree that Bazel sees as @tensorflow.

    python3 build/stock_wheel.py fetch --python cp312 [--release 2.20.0]
    python3 build/stock_wheel.py prepare --python cp312 --patches patches/2.21.0 --out DIR

`fetch` downloads the wheel with pip, or finds it in the cache, checks it against the hash in
releases.py and unpacks its headers and libraries, all in the cache (TFMS_CACHE, by default
tensorflow-multistream in XDG_CACHE_HOME).
`prepare` does so too, then fills DIR with links into the cache and the patched files.
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from typing import NoReturn

import patch_series
from build_error import BuildError, command_line, run_main
from releases import BASE, release_named

LIBRARIES = ("libtensorflow_cc.so.2", "libtensorflow_framework.so.2")

_INCLUDE = "tensorflow/include/"
# Bazel would take folders with these files for packages of their own.
_BAZEL_FILES = ("BUILD", "BUILD.bazel", "WORKSPACE", "WORKSPACE.bazel")
# How folders begin that hold what is not complete. The name of one in the cache's own folder, which
# may be anybody's, must be nobody else's: what a killed run has left there is deleted.
_PARTIAL = "partial-"
_DOWNLOAD = "tensorflow-multistream-download-"


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
    """Returns the absolute path of the cache's folder, which may not exist yet."""
    chosen = os.environ.get("TFMS_CACHE")
    if chosen:
        # Bazel runs this in a folder of its own, which it empties: a relative path begins at the
        # repository's root. scripts/common.sh has made it absolute.
        return pathlib.Path(__file__).absolute().parent.parent / chosen
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG Base Directory Specification has programs ignore a path that is relative.
    folder = pathlib.Path(base) if os.path.isabs(base) else pathlib.Path.home() / ".cache"
    return folder / "tensorflow-multistream"


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


@contextlib.contextmanager
def _locked(cache: pathlib.Path) -> Iterator[None]:
    """Makes the cache, and lets one process at a time change it."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Nobody else has the lock: what is not complete is of runs that were killed.
        for left in (*cache.glob(f"{_DOWNLOAD}*"), *(cache / "unpacked").glob(f"{_PARTIAL}*")):
            shutil.rmtree(left, ignore_errors=True)
        yield


def fetch(tag: str, cache: pathlib.Path, release: str = BASE) -> pathlib.Path:
    """Makes sure that the cache folder has a verified stock wheel, and returns its path there."""
    check_tag(tag, release)
    with _locked(cache):
        return _fetch(tag, cache, release)


def _fetch(tag: str, cache: pathlib.Path, release: str) -> pathlib.Path:
    """Does what fetch does, under the lock."""
    expected = release_named(release).sha256[check_tag(tag, release)]
    wheel = cache / "wheels" / expected / wheel_name(tag, release)
    if wheel.is_file():
        _verify_cached(wheel, expected, cache)
        return wheel
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=_DOWNLOAD) as folder:
        platforms = release_named(release).platform.split(".")
        otherwise = f"put {wheel.name} into {wheel.parent}"
        downloaded = download(tag, release, platforms, pathlib.Path(folder), otherwise)
        _check_hash(downloaded, expected)
        downloaded.replace(wheel)
    _stamp(wheel, expected, cache)
    return wheel


def _check_hash(wheel: pathlib.Path, expected: str) -> None:
    if (found := sha256_of(wheel)) != expected:
        raise BuildError(
            f"{wheel} has SHA-256 {found}, but {expected} is pinned.\n"
            "The file is damaged, or is not the wheel that TensorFlow released. Delete it and "
            "try again; if that does not help, find out where pip gets it from (pip config "
            "list)."
        )


def _verify_cached(wheel: pathlib.Path, expected: str, cache: pathlib.Path) -> None:
    """Checks a wheel of the cache, which a user may have put there, if it is not known.

    To hash it takes seconds, so that this is done once for each size and time of change.
    """
    stamp = cache / "verified" / expected
    if not (stamp.is_file() and stamp.read_text(encoding="utf-8") == _description(wheel)):
        _check_hash(wheel, expected)
        _stamp(wheel, expected, cache)


def _stamp(wheel: pathlib.Path, expected: str, cache: pathlib.Path) -> None:
    """Keeps in the cache that this wheel of it has been verified."""
    stamp = cache / "verified" / expected
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(_description(wheel), encoding="utf-8")


def _description(wheel: pathlib.Path) -> str:
    known = wheel.stat()
    return f"{wheel.name} {known.st_size} {known.st_mtime_ns}\n"


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
        partial = pathlib.Path(tempfile.mkdtemp(dir=folder.parent, prefix=_PARTIAL))
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


def _drop_of_another(wheel: pathlib.Path, unpacked: pathlib.Path) -> None:
    """Deletes what was unpacked before the cache had this wheel, which may be of another file."""
    # The time when its state changed: a file that is moved or copied may have been written earlier.
    # What was unpacked of the same wheel stays: a build that runs may use it.
    if unpacked.is_dir() and wheel.stat().st_ctime_ns >= unpacked.stat().st_ctime_ns:
        # Renamed first: a part of it would pass for all of it.
        old = pathlib.Path(tempfile.mkdtemp(dir=unpacked.parent, prefix=_PARTIAL))
        unpacked.rename(old / "old")
        shutil.rmtree(old, ignore_errors=True)


def fill_cache(tag: str, release: str) -> tuple[pathlib.Path, pathlib.Path]:
    """Makes sure, one process at a time, that the cache has a stock wheel, also unpacked."""
    cache = cache_folder()
    with _locked(cache):
        wheel = _fetch(tag, cache, release)
        unpacked = cache / "unpacked" / release_named(release).sha256[tag]
        _drop_of_another(wheel, unpacked)
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
        target.write_bytes(text.encode())
    (out / "include").symlink_to(unpacked / "include")
    for folder, source in (("lib", unpacked / "lib"), ("wheel", wheel.parent)):
        (out / folder).mkdir()
        for file in source.iterdir():
            (out / folder / file.name).symlink_to(file)
    description = {"version": release, "tag": tag, "wheel": f"wheel/{wheel.name}"}
    (out / "stock.json").write_bytes(json.dumps({**description, "python": sys.executable}).encode())


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
    # What pip unpacks stays where it is if pip is killed: the folder's owner deletes it.
    environment = {**os.environ, "TMPDIR": str(folder.absolute())}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
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


def _end(number: int, _: object) -> NoReturn:
    """Ends the process as its signal does, but with what `finally` does."""
    sys.exit(128 + number)


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
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _end)
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
