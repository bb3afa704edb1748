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
# DKMS calls this by pre-build.sh.  kernel-source.sh explains the exit status.

set -euo pipefail

here=$(dirname "$(readlink -f "$0")")
# shellcheck source=kernel/compat/kernel-source.sh
. "$here/kernel-source.sh"

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

# have_all DIR: does DIR hold every header?
have_all() {
	local header
	for header in "${HEADERS[@]}"; do
		[[ -f $1/$header ]] || return 1
	done
}

# find_headers: fills $found from the best source there is, and sets $origin.
find_headers() {
	local dir

	for dir in "$build" "$source"; do
		if have_all "$dir/block"; then
			cp -- "${HEADERS[@]/#/$dir/block/}" "$found"
			origin=$dir/block
			return
		fi
	done

	# The headers lie early in the tarball: --occurrence lets tar stop after
	# the last of them instead of reading to the end.
	take_from_tarball 'block/*.h' block --strip-components=2 --occurrence=1 \
		"${HEADERS[@]/#/linux-source-$series/block/}"
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

# compile_structs BTF: a kernel object whose debug information holds STRUCTS as
# the found headers define them, and that compiles only if the functions agree.
compile_structs() {
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
	grep -q '(elv_register)(' "$work/prototypes" ||
		skip "the BTF in $1 has no function elv_register: is it the kernel's?"

	compile_probe "$found" && return
	name=$(sed -nE "s/.*conflicting types for [^a-z_]*(\w+).*/\1/p" \
		"$work/probe.log" | head -n 1)
	[[ -z $name ]] ||
		skip "$name() of $origin differs from the one kernel $kver was" \
			"built with; $remedy"
	skip "the block/*.h of $origin do not compile with the headers" \
		"of kernel $kver; $remedy"
}

# verify: does the kernel lay out every structure as the headers say?
verify() {
	local btf name

	btf=$(btf_file)
	if [[ -z $btf ]]; then
		# Headers out of the tree the kernel was built from need no
		# proof; headers of another package do.
		[[ $origin == *.tar.* ]] || return 0
		skip "cannot prove that the block/*.h of $origin belong to kernel" \
			"$kver: it has no BTF ($build/vmlinux); install its" \
			"linux-headers package"
	fi
	need_pahole
	compile_structs "$btf"
	for name in "${STRUCTS[@]}"; do
		prove_struct "$name" "$btf" "kernel $kver"
	done
	proof=", ${#STRUCTS[@]} structures and $(wc -l <"$work/prototypes")"
	proof+=" functions equal to those in $btf"
}

arguments "$here" supports "$@"
origin=
proof=

find_headers
verify

mkdir -p -- "$outdir"
cp -- "${HEADERS[@]/#/$found/}" "$outdir"
echo "block-headers: $outdir: block/*.h of $origin for kernel $kver$proof"
