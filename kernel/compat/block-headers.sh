#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Usage: block-headers.sh KERNEL_VERSION OUTDIR [BUILD_TREE]
#
# Fills OUTDIR with the block layer's private headers (block/*.h) that belong
# to an installed kernel.  Distributions do not ship them with their headers
# packages, and a module built against the wrong ones corrupts memory without
# a warning.  So they are found, and then proved:
#
#  1. find: the kernel's own build or source tree if that has block/, else the
#     installed linux-source tarball of the same version X.Y;
#  2. prove: compare with the kernel's own BTF.  Structures we share with the
#     block layer: layout and member types of those in a probe compiled against
#     the found headers.  Exported functions that the headers declare: the probe
#     declares them once more, as BTF has them, and the compiler objects.  One
#     difference, and nothing is built.
#
# The kernel need not be the running one; BUILD_TREE is its build tree if that
# is not /lib/modules/KERNEL_VERSION/build.  The tarball is taken from
# $SUTRO_SOURCES, /usr/src unless set.
#
# DKMS calls this by pre-build.sh.  Exit status 77 means that this kernel cannot have
# the module with what is installed: DKMS then skips it, and the installation of a
# kernel goes on.  The last line on standard error is the reason, and what to do.

set -euo pipefail

readonly HEADERS=(
	elevator.h blk.h blk-crypto-internal.h blk-mq.h blk-stat.h
	blk-mq-sched.h blk-mq-debugfs.h blk-wbt.h blk-cgroup.h
	blk-cgroup-rwstat.h blk-pm.h
)

# Every structure that those headers define and that an elevator with a cgroup
# policy hands to the block layer or takes from it.
readonly STRUCTS=(
	elevator_type elevator_mq_ops elevator_queue elv_fs_entry
	blk_mq_ctx blk_mq_alloc_data blk_mq_debugfs_attr
	blkcg blkcg_gq blkcg_policy blkcg_policy_data blkg_policy_data
	blkg_conf_ctx blkg_iostat_set blkg_rwstat
)

fail() {
	echo "block-headers: $*" >&2
	exit 1
}

skip() {
	echo "block-headers: $*" >&2
	exit 77
}

# have_all DIR: does DIR hold every header?
have_all() {
	local header
	for header in "${HEADERS[@]}"; do
		[[ -f $1/$header ]] || return 1
	done
}

# find_headers: fills $found from the best source there is, and says which.
find_headers() {
	local dir tarball tried=()

	for dir in "$build" "$source"; do
		if have_all "$dir/block"; then
			cp -- "${HEADERS[@]/#/$dir/block/}" "$found"
			origin=$dir/block
			return
		fi
	done

	for tarball in "$sources/linux-source-$series.tar."{xz,zst,bz2,gz}; do
		tried+=("$tarball")
		[[ -f $tarball ]] || continue
		# The headers lie early in the tarball: --occurrence lets tar
		# stop after the last of them instead of reading to the end.
		tar -xaf "$tarball" -C "$found" --strip-components=2 --occurrence=1 \
			"${HEADERS[@]/#/linux-source-$series/block/}" ||
			skip "$tarball does not hold block/*.h of Linux $series:" \
				"reinstall the package linux-source-$series"
		origin=$tarball
		return
	done

	skip "no block/*.h for kernel $kver: neither in $build/block nor in" \
		"$source/block nor in ${tried[0]}; $install, $again"
}

# btf_file: the file that has the kernel's own BTF, or nothing.
btf_file() {
	local file
	for file in "$build/vmlinux" "/usr/lib/debug/boot/vmlinux-$kver" \
		"/boot/vmlinux-$kver"; do
		[[ -f $file ]] && echo "$file" && return
	done
	if [[ $kver == "$(uname -r)" && -f /sys/kernel/btf/vmlinux ]]; then
		echo /sys/kernel/btf/vmlinux
	fi
}

# prototypes BTF: the kernel's own declarations of the exported functions that
# the found headers name.  Parentheses keep macros of the same name away.
prototypes() {
	local names

	names=$(comm -12 \
		<(grep -hoE '\b(__)?(bio|blk|elv|elevator|ioc|wbt)[a-z_0-9]*\(' \
			"$found"/*.h | tr -d '(' | sort -u) \
		<(cut -f 2 "$build/Module.symvers" | sort -u) | paste -sd '|')
	pfunct -F btf -P "$1" 2>/dev/null |
		sed -nE "s/^([^(]*\W)($names)\(/\1(\2)(/p"
}

# compile_probe BTF: a kernel object whose debug information holds STRUCTS as
# the found headers define them, and that compiles only if the functions agree.
compile_probe() {
	local name

	{
		echo '#include <linux/blkdev.h>'
		echo '#include <linux/blk-mq.h>'
		for name in elevator.h blk.h blk-mq.h blk-mq-sched.h \
			blk-mq-debugfs.h blk-cgroup.h blk-cgroup-rwstat.h; do
			echo "#include \"$name\""
		done
		for name in "${STRUCTS[@]}"; do
			echo "struct $name probe_$name;"
		done
		prototypes "$1" | tee "$work/prototypes"
	} >"$work/probe.c"
	echo "obj-m := probe.o" >"$work/Kbuild"
	grep -q '(elv_register)(' "$work/prototypes" ||
		skip "the BTF in $1 has no function elv_register: is it the kernel's?"

	# Only the object: there is nothing to link, and modpost would ask for
	# a license.
	if ! make -C "$build" "M=$work" "KCFLAGS=-g -I$found" probe.o \
		>"$work/probe.log" 2>&1; then
		cat "$work/probe.log" >&2
		name=$(sed -nE "s/.*conflicting types for [^a-z_]*(\w+).*/\1/p" \
			"$work/probe.log" | head -n 1)
		[[ -z $name ]] ||
			skip "$name() of $origin differs from the one kernel $kver was" \
				"built with; $remedy"
		skip "the block/*.h of $origin do not compile with the headers" \
			"of kernel $kver; $remedy"
	fi
	pahole --btf_encode_detached="$work/probe.btf" "$work/probe.o" ||
		skip "pahole finds no types in what $build made of the headers of" \
			"$origin: are pahole and gcc those of this distribution?"
}

# layout FILE STRUCT: the structure as pahole prints it, or nothing.
layout() {
	pahole -F btf -C "$2" "$1" 2>/dev/null || true
}

# verify: does the kernel lay out every structure as the headers say?
verify() {
	local btf name ours theirs

	btf=$(btf_file)
	if [[ -z $btf ]]; then
		# Headers out of the tree the kernel was built from need no
		# proof; headers of another package do.
		[[ $origin == *.tar.* ]] || return 0
		skip "cannot prove that the block/*.h of $origin belong to kernel" \
			"$kver: it has no BTF ($build/vmlinux); install its" \
			"linux-headers package"
	fi
	command -v pahole >/dev/null ||
		skip "pahole is missing: install the package pahole (dwarves)"

	compile_probe "$btf"
	for name in "${STRUCTS[@]}"; do
		ours=$(layout "$work/probe.btf" "$name")
		theirs=$(layout "$btf" "$name")
		[[ -n $ours ]] ||
			skip "pahole found no struct $name in the probe of $origin"
		[[ -n $theirs ]] ||
			skip "kernel $kver has no struct $name (looked in $btf):" \
				"this version of Sutro does not support it"
		[[ $ours == "$theirs" ]] && continue

		diff -u --label "$btf" --label "$origin" \
			<(echo "$theirs") <(echo "$ours") >&2 || true
		skip "struct $name of $origin differs from the one kernel $kver was" \
			"built with; $remedy"
	done
	proof=", ${#STRUCTS[@]} structures and $(wc -l <"$work/prototypes")"
	proof+=" functions equal to those in $btf"
}

[[ $# -eq 2 || $# -eq 3 ]] ||
	fail "usage: ${0##*/} KERNEL_VERSION OUTDIR [BUILD_TREE]"

kver=$1
outdir=$2
build=${3:-/lib/modules/$kver/build}
source=/lib/modules/$kver/source
sources=${SUTRO_SOURCES:-/usr/src}
here=$(dirname "$(readlink -f "$0")")
series=$(sed -nE 's/^([0-9]+\.[0-9]+).*/\1/p' <<<"$kver")
install="install the package linux-source-$series"
again="then run: dkms autoinstall --kernelver $kver"
remedy="$install of the same version as the kernel, $again"
origin=
proof=

[[ -n $series ]] || fail "'$kver' is not a kernel version"
[[ -d $here/$series ]] ||
	skip "kernel $kver is not supported: this version of Sutro supports Linux" \
		"$(cd "$here" && echo [0-9]*.*)"
[[ -f $build/Makefile ]] ||
	skip "no headers of kernel $kver in $build: install the package" \
		"linux-headers-$kver"

work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
found=$work/block
mkdir "$found"

find_headers
verify

mkdir -p -- "$outdir"
cp -- "${HEADERS[@]/#/$found/}" "$outdir"
echo "block-headers: $outdir: block/*.h of $origin for kernel $kver$proof"
