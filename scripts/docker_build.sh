#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Builds the images of build/Dockerfile with docker, podman or buildah: the first
# of them that is there, docker only if its daemon answers.
#
#   scripts/docker_build.sh [--target build|runtime|all] [--tag NAME]
#   scripts/docker_build.sh [--base IMAGE | --python TAG] [--extra and-cuda|none]
#   scripts/docker_build.sh [--engine docker|podman|buildah] [-- ARGUMENT ...]
#
#   --target T     runtime, which has the wheel installed; build, which tests it;
#                  or all, both of them [runtime]
#   --tag NAME     of the image; that of build is NAME-build [tensorflow-multistream]
#   --base IMAGE   with Debian's or Ubuntu's packages [debian:12]
#   --python TAG   the base whose own Python is that: ubuntu:22.04 for cp310,
#                  debian:12 for cp311, ubuntu:24.04 for cp312, debian:13 for cp313
#   --extra E      and-cuda: with NVIDIA's libraries; none: for machines without
#                  a GPU [and-cuda]
#   --engine E     that one
#   -- ARGUMENT    the engine's own arguments of `build`, such as --volume
#
# Exit status: 0; 1 if it fails; 2 for a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

INSTALL="Install one: apt-get install podman (or buildah), or Docker as \
https://docs.docker.com/engine/install/ says."

# docker_answers: whether its daemon does; prints what docker says if not.
docker_answers() {
  # The client alone waits for a remote daemon for as long as TCP does.
  { timeout 30 docker version --format '{{.Server.Version}}' >/dev/null; } 2>&1
}

# choose_engine ENGINE...: sets engine to the first one that is there.
choose_engine() {
  local said=none
  for engine in "$@"; do
    if ! command -v "${engine}" >/dev/null; then continue; fi
    if [[ "${engine}" != docker ]] || said="$(docker_answers)"; then return; fi
  done
  if [[ "${said}" == none ]]; then fail "not on the PATH: $*" "${INSTALL}"; fi
  fail "docker is on the PATH, but its daemon does not answer: ${said:-nothing in 30 s}" \
    "Start it (systemctl start docker), or get the right to use it (group docker); or" "${INSTALL}"
}

# base_of TAG: sets base to the image whose own Python is that.
base_of() {
  case "$1" in
    cp310) base=ubuntu:22.04 ;;
    cp311) base=debian:12 ;;
    cp312) base=ubuntu:24.04 ;;
    cp313) base=debian:13 ;;
    *) wrong_argument "--python '$1'" \
      "Allowed: cp310, cp311, cp312, cp313; --base takes any image." ;;
  esac
  # podman and buildah may know no registry to look for a short name.
  base="docker.io/library/${base}"
}

target=runtime
tag=tensorflow-multistream
chosen_base=""
python=""
extra=and-cuda
engine=""
while (($#)); do
  case "$1" in
    --target) needs_value "$@" && target="$2" && shift 2 ;;
    --tag) needs_value "$@" && tag="$2" && shift 2 ;;
    --base) needs_value "$@" && chosen_base="$2" && shift 2 ;;
    --python) needs_value "$@" && python="$2" && shift 2 ;;
    --extra) needs_value "$@" && extra="$2" && shift 2 ;;
    --engine) needs_value "$@" && engine="$2" && shift 2 ;;
    --) shift && break ;;
    -h | --help) show_help ;;
    *) wrong_argument "unknown argument '$1'" "What is the engine's own comes after --." ;;
  esac
done
one_of --target "${target}" build runtime all
one_of --extra "${extra}" and-cuda none
if [[ -n "${engine}" ]]; then one_of --engine "${engine}" docker podman buildah; fi
targets=("${target}")
if [[ "${target}" == all ]]; then targets=(build runtime); fi
if [[ "${extra}" == none ]]; then extra=""; fi
if [[ -z "${tag}" ]]; then wrong_argument "--tag is empty" "It is the image's name."; fi
if [[ -n "${python}" && -n "${chosen_base}" ]]; then
  wrong_argument "--python and --base" "Give one: the base's own Python is used."
fi
base="${chosen_base}"
if [[ -z "${base}" ]]; then base_of "${python:-cp311}"; fi

stage "engine" "The error above says what is missing."
if [[ -n "${engine}" ]]; then choose_engine "${engine}"; else choose_engine docker podman buildah; fi
echo "${engine}: $(command -v "${engine}")"

# Without --layers buildah would build again, for one image, what it has just built for another.
command=("${engine}" build)
if [[ "${engine}" == buildah ]]; then command=(buildah bud --layers); fi
options=(--build-arg "BASE=${base}" --build-arg "EXTRA=${extra}")
if revision="$(git -C "${ROOT}" rev-parse HEAD 2>/dev/null)"; then
  options+=(--label "org.opencontainers.image.revision=${revision}")
fi

built=()
for target in "${targets[@]}"; do
  name="${tag}"
  if [[ "${target}" == build ]]; then name="${tag}-build"; fi
  stage "image ${name} (${target}), on ${base}" \
    "The error above is ${engine}'s, or that of the step before it."
  "${command[@]}" --file "${ROOT}/build/Dockerfile" --target "${target}" --tag "${name}" \
    "${options[@]}" "$@" "${ROOT}"
  built+=("${name}")
done

stage "built ${built[*]}" ""
