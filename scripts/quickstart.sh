#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# From a fresh clone to a model served on several stream groups: installs what
# is missing, builds the wheel, installs it in .venv and runs the examples.
#
#   scripts/quickstart.sh
#
# Exit status: 0; 1 if anything fails; 2 for a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

no_arguments "$@"
cd "${ROOT}"
rm -f "${LOG}"
all="All that was printed is in ${LOG#"${ROOT}"/}."

stage "wheel: compiles the runtime, patches the stock wheel" "The error above says why."
tag="$(python_tag)"
rm -f dist/tensorflow-*-"${tag}"-*.whl
scripts/build_wheel.sh --python "${tag}"
wheel=(dist/tensorflow-*-"${tag}"-*.whl)

stage "install in .venv" "The message above is pip's."
make_venv "${tag}"
install_wheel "${wheel[0]}"

# Without a GPU the examples run on one that the runtime emulates on the CPU.
effort=(--rounds 1 --warm 3)
if ! has_gpu; then
  effort=(--quick)
  echo "no GPU here: the examples run on an emulated one, whose results count and whose times do not"
  export TF_MULTI_STREAM_EMULATED_GPUS=1
fi
# Errors and warnings; the examples by themselves show errors.
export TF_CPP_MIN_LOG_LEVEL="${TF_CPP_MIN_LOG_LEVEL:-1}"
export TF_GPU_STREAM_GROUP_COUNT=4

stage "programs to start from: a SavedModel served from threads, branches trained on groups" \
  "The error above says why. ${all}"
readable "${VENV}/bin/python" examples/serve_saved_model.py
readable "${VENV}/bin/python" examples/train_branches.py

stage "C++: compiles multistream_inference, serves a recommender, compares all results" \
  "The first error above names the file. ${all}"
readable run_bazel build --curses=no --show_progress_rate_limit=15 \
  --noshow_loading_progress --show_result=0 --ui_event_filters=-info \
  --repo_env="TFMS_PYTHON=${tag}" //tensorflow/examples/multistream:multistream_inference

# Every result is compared with one thread's. The wheel's libraries, unlike
# Bazel's links to them, have NVIDIA's beside them.
model=tensorflow/examples/multistream/data
libraries=("${VENV}"/lib/python3*/site-packages/tensorflow)
LD_LIBRARY_PATH="${libraries[0]}" readable \
  bazel-bin/tensorflow/examples/multistream/multistream_inference \
  --verify "${model}/model_test.pbtxt" 1 input0 1 output \
  16 100 4 "${model}/config_proto"

stage "measures: a recommender served, branches trained, on one stream and on 4 stream groups" \
  "The error above says why. ${all}"
readable "${VENV}/bin/python" benchmarks/bench/main.py --only recommender,branches \
  --peers stock,groups,captured --clients 8 --groups 4 "${effort[@]}"

stage "everything ran" ""
echo "Your own programs: source .venv/bin/activate; export TF_GPU_STREAM_GROUP_COUNT=4"
