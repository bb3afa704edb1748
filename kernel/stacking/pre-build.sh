#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Usage: pre-build.sh KERNEL_VERSION BUILD_TREE
#
# DKMS runs this before it builds the drivers: it finds, proves and patches their source
# (driver-source.sh), then compiles on trial.

set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
# shellcheck source=kernel/compat/kernel-source.sh
. "$here/../compat/kernel-source.sh"
cd "$here/.."
stacking/driver-source.sh "$1" drivers "$2"
trial "$1" "$2" "$PWD/drivers/md"
