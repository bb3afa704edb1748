#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Usage: pre-build.sh KERNEL_VERSION BUILD_TREE
#
# DKMS runs this before it builds the module: it finds and proves the private headers
# (block-headers.sh), then compiles on trial.

set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
# shellcheck source=kernel/compat/kernel-source.sh
. "$here/kernel-source.sh"
cd "$here/.."
compat/block-headers.sh "$1" .block-headers "$2"
trial "$1" "$2" "$PWD"
