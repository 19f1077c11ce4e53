# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes the wheel of the model server's front, a program in C++.

    python3 build/front_wheel.py PROGRAM --license FILE --out FOLDER

The wheel is of no Python's, and goes with the wheels of all TensorFlow releases of the same build.
It has the copyright notices of the libraries that are linked into the program: Debian's packages.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

import platform_tag
from assemble_wheel import LOCAL_VERSION
from build_error import BuildError, command_line, run_main

NAME = "tensorflow-multistream-front"
PACKAGE = NAME.replace("-", "_")
# With a local part, which no package index takes: nobody else can publish this version.
VERSION = f"1+{LOCAL_VERSION}"
# Libraries that stay shared, as system_grpc.bzl says.
_SHARED = {"pthread", "dl", "m", "rt", "atomic"}
# Of libraries that are headers alone, one each.
_HEADERS = ("boost/beast.hpp", "rapidjson/reader.h")
_SUMMARY = "The ports of Multi-Stream TensorFlow's model server, in C++."
_TEXT = """\
The model server of Multi-Stream TensorFlow (`python -m tensorflow.python.multistream.serve`) has
this program answer its calls, if the package is installed. It is one program, `front`, and no
Python. `licenses` has the notices of the libraries that are linked into it.
"""


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise BuildError(f"There is no {command[0]}.\nInstall it, or use Debian.") from error
    if done.returncode:
        raise BuildError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()


def _notice(package: str) -> pathlib.Path:
    return pathlib.Path("/usr/share/doc") / package / "copyright"


def linked_packages() -> dict[str, str]:
    """The names and versions of the Debian packages whose libraries the front has inside."""
    words = _run("pkg-config", "--static", "--libs-only-l", "grpc++", "protobuf-lite").split()
    names = {word[2:] for word in words} - _SHARED
    found = {_run("g++", f"-print-file-name=lib{name}.a") for name in names}
    # The compiler's path has its own folder's and "..", or is a bare name if there is no such file.
    files = {os.path.normpath(path) for path in found if os.path.isabs(path)}
    files |= {f"/usr/include/{header}" for header in _HEADERS}
    owners = _run("dpkg-query", "--search", *sorted(files)).splitlines()
    packages = sorted({line.partition(":")[0] for line in owners})
    lines = _run("dpkg-query", "--show", "--showformat=${Package} ${Version}\\n", *packages)
    return dict(sorted(line.split(" ") for line in lines.splitlines()))


def _metadata(licenses: list[str]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {NAME}",
        f"Version: {VERSION}",
        f"Summary: {_SUMMARY}",
        "License-Expression: Apache-2.0 AND BSD-3-Clause AND BSL-1.0 AND MIT AND Zlib",
        *(f"License-File: {name}" for name in licenses),
        "Description-Content-Type: text/markdown",
        "",
        _TEXT,
    ]
    return "\n".join(lines)


def make(
    program: pathlib.Path, license_text: bytes, packages: dict[str, str], out: pathlib.Path
) -> pathlib.Path:
    """Writes the wheel to a folder and returns its path.

    `license_text` is the program's own licence, `packages` what is linked into the program.
    """
    notices = {"LICENSE": license_text}
    for package, version in packages.items():
        if not _notice(package).is_file():
            raise BuildError(f"{_notice(package)} is missing.\nInstall {package} with its files.")
        notices[f"{package}_{version}/copyright"] = _notice(package).read_bytes()
    tag = f"py3-none-{platform_tag.platform_tag(program, frozenset())}"
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        package_folder, info = root / PACKAGE, root / f"{PACKAGE}-{VERSION}.dist-info"
        package_folder.mkdir()
        (package_folder / "__init__.py").write_text(f'"""{_SUMMARY}"""\n', encoding="utf-8")
        (package_folder / "front").write_bytes(program.read_bytes())
        for name, content in notices.items():
            path = info / "licenses" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        (info / "METADATA").write_text(_metadata(list(notices)), encoding="utf-8")
        wheel = ["Wheel-Version: 1.0", f"Generator: {NAME}", "Root-Is-Purelib: false"]
        (info / "WHEEL").write_text("\n".join([*wheel, f"Tag: {tag}", ""]), encoding="utf-8")
        # The archive has the files' modes, which would be what the umask leaves of them.
        for path in root.rglob("*"):
            if path.is_file():
                path.chmod(0o755 if path == package_folder / "front" else 0o644)
        pack = [sys.executable, "-m", "wheel", "pack", str(root), "--dest-dir", str(out)]
        # The same bytes each time: the first time that an archive can name.
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "315532800"}
        done = subprocess.run(pack, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"wheel pack: {done.stderr.strip()}")
    return out / f"{PACKAGE}-{VERSION}-{tag}.whl"


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--license", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print(make(options.program, options.license.read_bytes(), linked_packages(), options.out))


if __name__ == "__main__":
    run_main(main)
