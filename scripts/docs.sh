#!/bin/bash
# Copyright 2026 The Multi-Stream TensorFlow Authors.
# SPDX-License-Identifier: Apache-2.0
# Makes the documentation's site, dist/site, of docs/, README.md and the
# docstrings of tf.cuda. Its pages need no network.
#
#   scripts/docs.sh
#
# Exit status: 0; 1 if a link or a name leads nowhere; 2 for a wrong argument.

source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

no_arguments "$@"
cd "${ROOT}"

stage "tools" "The message above is pip's."
install_system_packages
if ! has_venv; then make_venv "$(python_tag)"; fi
pip_install -r build/requirements-dev.txt

stage "site" "The error above names the page."
python3 build/site_pages.py --out dist/site-source
# Not --quiet: mkdocs then hears of no warning, and passes.
NO_MKDOCS_2_WARNING=true quietly "${VENV}/bin/mkdocs" build --config-file docs/mkdocs.yml
python3 build/site_pages.py --check dist/site
echo "dist/site/index.html"
