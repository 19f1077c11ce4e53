# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
"""The releases of TensorFlow that the wheel can be built from, and their stock wheels.

    python3 build/releases.py [RELEASE]
    python3 build/releases.py --all

prints the tags of the Pythons that a release has wheels for, or all releases, the usual one first;
a line each.
"""

import dataclasses

from build_error import BuildError, command_line, run_main


@dataclasses.dataclass(frozen=True)
class Release:
    """A release's wheels for Linux on x86-64."""

    platform: str  # tag of their platform
    sha256: dict[str, str]  # of each wheel, by the tag of its Python


# The one that is built where none is named, and that the patches of others are ported from.
BASE = "2.21.0"

_MANYLINUX_2014 = "manylinux_2_17_x86_64.manylinux2014_x86_64"

RELEASES = {
    "2.22.0rc0": Release(
        "manylinux_2_27_x86_64",
        {
            "cp310": "f3667f4f5d26c71e3e773b9cbca03443091b2b65c31e0ecb6c4e750a7d300299",
            "cp311": "b5bf07b0c7b834eb3dfe35aacb94a1b03b1b6e1a54a18bcb562b0512f2e26e09",
            "cp312": "525b0ed004a1e1373a329e84aca8329c89556e89731da7ba9f4d5025b2d6ad22",
            "cp313": "c3910219e57acf584437376433e020e6f662c0de1c9862819f62b863e2149da8",
            "cp314": "ce5a28251457053a01e6d9acba03452257b7da01105d98ad16718700fe445deb",
        },
    ),
    "2.21.0": Release(
        "manylinux_2_27_x86_64",
        {
            "cp310": "77c6f298e695ea1d283cdd7d30f8d97530cc6e92c1395a9ddbab9771c99233a4",
            "cp311": "9056fbc9ba04235810b71ae6cbd958a196e8804fb53bbcffbf3e23b56155f124",
            "cp312": "b3b95643c4e70eb925839938fb35cbe142f317ec84af6844ee61513713bb13c0",
            "cp313": "e9d8da8dcab9650efb45f032ba70af2f016f907e6e0c6bda29dd101bba945406",
        },
    ),
    "2.20.0": Release(
        _MANYLINUX_2014,
        {
            "cp310": "7abd7f3a010e0d354dc804182372779a722d474c4d8a3db8f4a3f5baef2a591e",
            "cp311": "481499fd0f824583de8945be61d5e827898cdaa4f5ea1bc2cc28ca2ccff8229e",
            "cp312": "25265b0bc527e0d54b1e9cc60c44a24f44a809fe27666b905f0466471f9c52ec",
            "cp313": "5fa3729b0126f75a99882b89fb7d536515721eda8014a63e259e780ba0a37372",
        },
    ),
    "2.19.1": Release(
        _MANYLINUX_2014,
        {
            "cp310": "11377d4cecdc665515e370524b650a8ceb80b461f40f5e63993ed27d0ef931da",
            "cp311": "8e5524eb492160576e5eeea9bb472ddc653123503f2290f83123d5ac9545750e",
            "cp312": "35a6950f3fee0ad2d1668241d31684676f2e6eceb613cbeef960ea22014ef8fb",
        },
    ),
    "2.18.1": Release(
        _MANYLINUX_2014,
        {
            "cp310": "1f929842999d60e7da67743ae5204b477259f3b771c02e5e437d232267e49f18",
            "cp311": "c9f87e5d2a680a4595f5dc30daf6bbaec9d4129b46d7ef1b2af63c46ac7d2828",
            "cp312": "442d2a774811789a8ad948e7286cb950fe3d87d3754e8cc6449d53b03dbfdaa6",
        },
    ),
    "2.13.1": Release(
        _MANYLINUX_2014,
        {
            "cp310": "2cd54d7cf979de0e407db182eea27dbed37361af5c329c2dbf71c486be3e432b",
            "cp311": "c2f109daa5d0cbabb3df5fdebcde0ca895d891e18d03e08cb6742c96a6be7012",
        },
    ),
}


def release_named(name: str) -> Release:
    """Finds a release, such as "2.20.0"; "" is the one that is built where none is named."""
    if (name or BASE) not in RELEASES:
        raise BuildError(
            f"The wheel is not built from TensorFlow '{name}'; allowed: {', '.join(RELEASES)}.\n"
            "Choose one: scripts/build_wheel.sh --release 2.21.0, or "
            "bazel build --repo_env=TFMS_RELEASE=2.21.0."
        )
    return RELEASES[name or BASE]


def main() -> None:
    """Runs the command line."""
    parser = command_line(__doc__)
    parser.add_argument("release", nargs="?", default=BASE, help=f"default: {BASE}")
    parser.add_argument("--all", action="store_true", help="print the releases")
    options = parser.parse_args()
    names = sorted(RELEASES, key=lambda name: name != BASE)
    print(*(names if options.all else release_named(options.release).sha256), sep="\n")


if __name__ == "__main__":
    run_main(main)
