#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Usage: pre-build.sh KERNEL_VERSION BUILD_TREE
#
# What DKMS runs before it builds the module: finds and proves the private headers
# (block-headers.sh), then compiles.  DKMS ends with an error if its own `make`
# fails, and with it ends the installation of a kernel.  If this one fails, the exit
# status is 77, and DKMS skips the kernel.

set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
cd "$here/.."
"$here/block-headers.sh" "$1" .block-headers "$2"
make "-j$(nproc)" "KERNELRELEASE=$1" -C "$2" "M=$PWD" modules || {
	echo "pre-build: this version of Sutro does not compile for kernel $1:" \
		"install a later one, or report the errors above" >&2
	exit 77
}
