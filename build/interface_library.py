# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes a library to link against in a large one's place: its symbols, without what they name.

    python3 build/interface_library.py --library lib/libtensorflow_cc.so.2 --out cc.ifso

A linker that reads TensorFlow's library takes 1.5 seconds for its half a million symbols, again for
each test. Most are of the compilers within it, and of kernels' templates, which nothing here calls:
they are left out. Whoever needs one of them after all is told by the linker that it is undefined.
Programs run with the library itself.
"""

import pathlib
import re
import subprocess
import tempfile
from collections.abc import Iterable

import elf
from build_error import BuildError, command_line, run_main

# Names that mention these namespaces; those of Eigen's own, and of templates of its types.
_LEFT_OUT = re.compile(
    r"4mlir|4llvm|3xla|4dnnl|^_Z[A-Z]{0,5}5Eigen|I(N|KN|PN|RN|RKN)5Eigen|9TensorMap"
)

_TYPES = {"FUNC": "function", "OBJECT": "object", "TLS": "tls_object"}


def assembly(symbols: Iterable[list[str]]) -> tuple[str, str]:
    """Writes a library with symbols of `readelf --dyn-syms`: assembly, and a version script."""
    lines = {"FUNC": [".text"], "OBJECT": [".data"], "TLS": ['.section .tbss,"awT",@nobits']}
    versions = set()
    for fields in symbols:
        if len(fields) < 8 or fields[3] not in lines or fields[6] in ("UND", "ABS"):
            continue
        _, _, size, kind, bind, _, _, name, *_ = fields
        name, _, version = name.partition("@")
        if bind == "LOCAL" or _LEFT_OUT.search(name):
            continue
        versions.add(version.lstrip("@"))
        weak = "weak" if bind == "WEAK" else "globl"
        lines[kind] += [
            f'.{weak} "{name}"',
            f'.type "{name}",@{_TYPES[kind]}',
            f'.size "{name}",{int(size, 0)}',
            f'"{name}":',
        ]
    if len(versions) > 1:
        raise BuildError(f"symbols of several versions: {sorted(versions)}; one is allowed.")
    named = "".join(f"{version} {{ global: *; }};\n" for version in versions if version)
    return "\n".join(line for part in lines.values() for line in part) + "\n", named


def make(library: pathlib.Path, out: pathlib.Path) -> None:
    """Makes the file `out` to link against instead of `library`, which programs run with."""
    source, versions = assembly(elf.readelf(library, "--dyn-syms"))
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "symbols.s").write_text(source, encoding="utf-8")
        options = ["-shared", "-nostdlib", f"-Wl,-soname,{library.name}"]
        if versions:
            (pathlib.Path(folder) / "versions.lds").write_text(versions, encoding="utf-8")
            options.append("-Wl,--version-script=versions.lds")
        link = ["gcc", *options, "-o", str(out.resolve()), "symbols.s"]
        linked = subprocess.run(link, cwd=folder, capture_output=True, text=True, check=False)
    if linked.returncode != 0:
        raise BuildError(f"gcc does not make {out}: {linked.stderr.strip()}")


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    make(options.library, options.out)


if __name__ == "__main__":
    run_main(main)
