# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the platform tag of a wheel from what its runtime library needs.

A manylinux level promises which versions of the C and C++ libraries' symbols a wheel needs at most
(PEP 600). scripts/release.sh has auditwheel look at the wheel, too.
"""

import pathlib

import elf
from build_error import BuildError

# The newest symbol version that each level allows on x86_64, of the libraries that it allows: as
# auditwheel's policies say. Levels below TensorFlow's own are of no use here.
FAMILIES = ("GLIBC", "GLIBCXX", "CXXABI", "GCC")
POLICIES = {
    "manylinux_2_27_x86_64": ("2.27", "3.4.24", "1.3.11", "7.0.0"),
    "manylinux_2_28_x86_64": ("2.28", "3.4.24", "1.3.11", "7.0.0"),
    "manylinux_2_31_x86_64": ("2.31", "3.4.28", "1.3.12", "7.0.0"),
    "manylinux_2_34_x86_64": ("2.34", "3.4.29", "1.3.13", "7.0.0"),
    "manylinux_2_35_x86_64": ("2.35", "3.4.30", "1.3.13", "12.0.0"),
    "manylinux_2_36_x86_64": ("2.36", "3.4.30", "1.3.13", "12.0.0"),
    "manylinux_2_38_x86_64": ("2.38", "3.4.30", "1.3.13", "12.0.0"),
    "manylinux_2_39_x86_64": ("2.39", "3.4.33", "1.3.15", "14.0.0"),
    "manylinux_2_40_x86_64": ("2.40", "3.4.33", "1.3.15", "14.0.0"),
    "manylinux_2_41_x86_64": ("2.41", "3.4.33", "1.3.15", "14.0.0"),
}
_ON_EVERY_SYSTEM = frozenset(
    (
        "ld-linux-x86-64.so.2",
        "libc.so.6",
        "libdl.so.2",
        "libgcc_s.so.1",
        "libm.so.6",
        "libpthread.so.0",
        "librt.so.1",
        "libstdc++.so.6",
    )
)


def needs(library: pathlib.Path) -> dict[str, set[str]]:
    """Reads which versions, as "GLIBC_2.34", of libraries, as "libc.so.6", an ELF file needs."""
    found: dict[str, set[str]] = {}
    names: set[str] = set()
    for words in elf.readelf(library, "--dynamic", "--version-info"):
        if "(NEEDED)" in words:
            found.setdefault(words[-1].strip("[]"), set())
        elif words[3:4] == ["File:"]:
            names = found.setdefault(words[4], set())
        elif words[1:2] == ["Name:"]:
            names.add(words[2])
    return found


def platform_tag(library: pathlib.Path, bundled: frozenset[str]) -> str:
    """Finds the lowest manylinux level, not below TensorFlow's, that allows what a library needs.

    The result is "linux_x86_64" if no known level allows it. `bundled` names libraries that the
    wheel itself has.
    """
    needed = needs(library)
    foreign = sorted(needed.keys() - _ON_EVERY_SYSTEM - bundled)
    if foreign:
        raise BuildError(
            f"The runtime library needs {', '.join(foreign)}, which a wheel cannot count on.\n"
            "Link it statically, or do without it."
        )
    versions = set().union(*(needed[name] for name in needed.keys() & _ON_EVERY_SYSTEM))
    for tag, newest in POLICIES.items():
        allowed = dict(zip(FAMILIES, newest, strict=True))
        if all(_is_allowed(version, allowed) for version in versions):
            return tag
    return "linux_x86_64"


def _is_allowed(version: str, newest: dict[str, str]) -> bool:
    family, _, number = version.partition("_")
    if version in ("CXXABI_FLOAT128", "CXXABI_TM_1"):
        return True
    if family not in newest or not number[:1].isdigit():
        return False  # Such as GLIBC_PRIVATE.
    return parts(number) <= parts(newest[family])


def parts(number: str) -> tuple[int, ...]:
    """Splits a version such as "3.4.30" at its points, so that versions compare as numbers."""
    return tuple(int(part) for part in number.split("."))
