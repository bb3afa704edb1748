#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Usage: kernel-headers.sh OUTDIR
#
# Takes the kernel's lists and red-black tree, as its own userspace tools use
# them, out of the newest /usr/src/linux-source-*.tar.xz into OUTDIR: rbtree.c
# and the headers.

set -euo pipefail

readonly outdir=$1

fail() {
	echo "kernel-headers: $*" >&2
	exit 1
}

tarball=$(find /usr/src -maxdepth 1 -name 'linux-source-*.tar.xz' | sort -V | tail -n 1)
[[ $tarball ]] || fail "no /usr/src/linux-source-*.tar.xz; install the package" \
	"linux-source-6.12 (apt install linux-source-6.12)"
top=${tarball##*/}
top=${top%.tar.xz}/tools

# --occurrence lets tar stop after the last of them.
tar -xmJf "$tarball" -C "$outdir" --transform 's,.*/,,' --occurrence=1 \
	"$top/lib/rbtree.c" \
	"$top/include/linux/"{list,poison,rbtree,rbtree_augmented}.h ||
	fail "$tarball does not hold $top/lib/rbtree.c and its headers"
