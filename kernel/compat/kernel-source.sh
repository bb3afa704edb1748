# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Functions of block-headers.sh and driver-source.sh, which take private source of an
# installed kernel for DKMS, and of both pre-build.sh:
#
#	arguments compat supports "$@"
#	take_from_tarball 'block/*.h' block --strip-components=2 linux-source-6.12/block/blk.h
#	compile_probe "$found" || skip "the headers of $origin do not compile"
#	prove_struct blkcg "$build/vmlinux" "kernel $kver"
#
# Exit status 77 means that this kernel cannot have the modules with the packages that
# are installed: DKMS then skips it, and the installation of a kernel goes on.  The last
# line on standard error is the reason, and the remedy.

fail() {
	echo "$(basename "$0" .sh): $*" >&2
	exit 1
}

skip() {
	echo "$(basename "$0" .sh): $*" >&2
	exit 77
}

# arguments FOLDER VERB KERNEL_VERSION OUTDIR [BUILD_TREE]: sets all that follows from
# the arguments of the script.  Each supported series has a folder in FOLDER; the message
# for others is "this version of Sutro VERB Linux SERIES...".
arguments() {
	local folder=$1 verb=$2
	shift 2
	[[ $# -eq 2 || $# -eq 3 ]] ||
		fail "usage: ${0##*/} KERNEL_VERSION OUTDIR [BUILD_TREE]"

	kver=$1
	# shellcheck disable=SC2034
	outdir=$2
	build=${3:-/lib/modules/$kver/build}
	source=/lib/modules/$kver/source
	sources=${SUTRO_SOURCES:-/usr/src}
	series=$(sed -nE 's/^([0-9]+\.[0-9]+).*/\1/p' <<<"$kver")
	install="install the package linux-source-$series"
	again="then run: dkms autoinstall --kernelver $kver"
	remedy="$install of the same version as the kernel, $again"

	[[ -n $series ]] || fail "'$kver' is not a kernel version"
	[[ -d $folder/$series ]] ||
		skip "kernel $kver is not supported: this version of Sutro $verb Linux" \
			"$(cd "$folder" && echo [0-9]*.*)"
	[[ -f $build/Makefile ]] ||
		skip "no headers of kernel $kver in $build: install the package" \
			"linux-headers-$kver"

	work=$(mktemp -d)
	trap 'rm -rf -- "$work"' EXIT
	found=$work/linux
	mkdir "$found"
}

# take_from_tarball NAME FOLDER WORD...: fills $found from linux-source; tar gets the
# words.  Messages have NAME, and FOLDER of the build tree, which does not have it.
take_from_tarball() {
	local name=$1 folder=$2 tarball
	shift 2

	for tarball in "$sources/linux-source-$series.tar."{xz,zst,bz2,gz}; do
		[[ -f $tarball ]] || continue
		tar -xaf "$tarball" -C "$found" "$@" ||
			skip "$tarball does not hold $name of Linux $series:" \
				"reinstall the package linux-source-$series"
		origin=$tarball
		return
	done
	skip "no $name for kernel $kver: neither in $build/$folder nor in" \
		"$source/$folder nor in $sources/linux-source-$series.tar.xz;" \
		"$install, $again"
}

need_pahole() {
	command -v pahole >/dev/null ||
		skip "pahole is missing: install the package pahole (dwarves)"
}

# compile_probe FOLDER: an object of $work/probe.c with headers of FOLDER, and its types
# in $work/probe.btf.  Status 1 if it does not compile.
compile_probe() {
	echo "obj-m := probe.o" >"$work/Kbuild"
	# Only the object: there is nothing to link, and modpost requires a
	# license.
	if ! make -C "$build" "M=$work" "KCFLAGS=-g -I$1" probe.o \
		>"$work/probe.log" 2>&1; then
		cat "$work/probe.log" >&2
		return 1
	fi
	pahole --btf_encode_detached="$work/probe.btf" "$work/probe.o" ||
		skip "pahole finds no types in what $build made of the headers of" \
			"$origin: are pahole and gcc those of this distribution?"
}

# layout STRUCT WORD...: the structure as pahole prints it, or nothing.
layout() {
	pahole -F btf -C "$@" 2>/dev/null || true
}

# prove_struct STRUCT FILE WHOSE [WORD...]: does FILE, of the kernel or a module, lay out
# the structure as the probe does?  pahole gets the words.
prove_struct() {
	local name=$1 file=$2 whose=$3 ours theirs
	shift 3

	ours=$(layout "$name" "$work/probe.btf")
	theirs=$(layout "$name" "$@" "$file")
	[[ -n $ours ]] ||
		skip "pahole found no struct $name in the probe of $origin"
	[[ -n $theirs ]] ||
		skip "$whose has no struct $name (looked in $file):" \
			"this version of Sutro does not support it"
	[[ $ours == "$theirs" ]] && return

	diff -u --label "$whose" --label "$origin" \
		<(echo "$theirs") <(echo "$ours") >&2 || true
	skip "struct $name of $origin differs from the one $whose was built with;" \
		"$remedy"
}

# trial KERNEL_VERSION BUILD_TREE FOLDER: compile the modules of FOLDER.  DKMS ends with
# an error if its own `make` fails, and with it ends the installation of a kernel.
trial() {
	make "-j$(nproc)" "KERNELRELEASE=$1" -C "$2" "M=$3" modules ||
		skip "this version of Sutro does not compile for kernel $1:" \
			"install a later one, or report the errors above"
}
