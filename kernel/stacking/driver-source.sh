#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Usage: driver-source.sh KERNEL_VERSION OUTDIR [BUILD_TREE]
#
# Fills OUTDIR with drivers/md of an installed kernel, with the patches of
# patches/X.Y in it that keep the owner of I/O known, ready for
#
#   make -C BUILD_TREE M=OUTDIR/md modules
#
# Distributions do not ship this source with their headers packages, and a
# module of another version takes one structure for another and corrupts memory
# without a warning.  So it is found, and then proved:
#
#  1. find: the kernel's own build or source tree if that has drivers/md/, else
#     the installed linux-source tarball of the same version X.Y.Z;
#  2. prove: structures that modules built here share with stock ones, as the
#     source defines them, are compared with the type information (BTF) of the
#     kernel's own modules.  One difference, and nothing is built;
#  3. patch: each hunk has to fit without any fuzz.
#
# Only what the patches change is built.  No patch changes a structure that two
# modules share, or a function that stock modules use; so these fit both, and
# the others stay as they are.  The tarball is taken from $SUTRO_SOURCES, /usr/src
# unless set.
#
# DKMS calls this by pre-build.sh.  ../compat/kernel-source.sh explains the exit status.

set -euo pipefail

here=$(dirname "$(dirname "$(readlink -f "$0")")")
# shellcheck source=kernel/compat/kernel-source.sh
. "$here/compat/kernel-source.sh"

# The modules that dkms.conf installs, as targets of drivers/md/Makefile.
readonly MODULES=(
	dm-mod.o dm-integrity.o dm-thin-pool.o dm-snapshot.o dm-clone.o dm-vdo/
	raid456.o raid1.o bcache/
)

# Structures that those modules share with others, by the stock module that has
# them; the headers that define them are included in this order.
readonly PROOFS=(
	"dm-mod dm-core.h dm.h:mapped_device dm_table dm_io dm_target_io dm_target target_type"
	"md-mod md.h:mddev md_rdev md_thread md_personality"
	"raid456 md.h raid5.h:r5conf stripe_head stripe_head_state r5worker_group"
	"raid1 md.h raid1.h:r1conf r1bio raid1_info"
)

# patches: the files in patches/X.Y that change these drivers.  The other patches are
# for a whole kernel.
patches() {
	local file
	for file in "$here/patches/$series/"*.patch; do
		if [[ -f $file ]] && grep -q '^--- a/drivers/md/' "$file"; then
			echo "$file"
		fi
	done
}

# public_headers: the files outside drivers/md that those patches change.
public_headers() {
	patches | xargs -r sed -nE 's#^--- a/(include/\S+).*#\1#p' | sort -u
}

# find_source: fills $found from the best source there is, and sets $origin.
find_source() {
	local dir files

	mapfile -t files < <(public_headers)
	for dir in "$build" "$source"; do
		if [[ -f $dir/drivers/md/dm.c && -f $dir/drivers/md/raid5.c ]]; then
			(cd "$dir" && cp --parents -r drivers/md "${files[@]}" "$found")
			origin=$dir
			return
		fi
	done

	take_from_tarball drivers/md drivers --strip-components=1 \
		"linux-source-$series/Makefile" "linux-source-$series/drivers/md" \
		"${files[@]/#/linux-source-$series/}"
	same_version
}

# same_version: a tarball's own version is that of the kernel, to the last number.
same_version() {
	local theirs ours

	theirs=$(sed -nE 's/^([0-9]+\.[0-9]+(\.[0-9]+)?).*/\1/p' <<<"$kver")
	ours=$(sed -nE 's/^(VERSION|PATCHLEVEL|SUBLEVEL) = ([0-9]+)$/\2/p' \
		"$found/Makefile" | paste -sd .)
	[[ $ours == "$theirs" || $ours == "$theirs.0" ]] ||
		skip "$origin is Linux $ours, kernel $kver is $theirs; $remedy"
}

# stock MODULE: the kernel's own module, uncompressed, with its BTF.  While the
# patched one is installed, DKMS keeps the stock one.
stock() {
	local file

	file=$(find "/lib/modules/$kver/kernel/drivers/md" \
		"/var/lib/dkms/sutro-stacking/original_module/$kver" \
		-name "$1.ko*" ! -name '*.origin' 2>/dev/null | head -n 1) || true
	[[ -n $file ]] ||
		skip "cannot prove that the drivers of $origin belong to kernel $kver:" \
			"its module $1 is not in /lib/modules/$kver/kernel/drivers/md;" \
			"install the package linux-image-$kver"
	case $file in
	*.xz) xz -dc "$file" ;;
	*.zst) zstd -dcq "$file" ;;
	*.gz) gzip -dc "$file" ;;
	*) cat "$file" ;;
	esac >"$work/$1.ko"
}

# compile_structs MODULE STRUCT...: an object whose debug information holds the
# structures as the found source defines them; headers on standard input.
compile_structs() {
	local module=$1 name
	shift

	{
		sed 's/.*/#include "&"/'
		for name in "$@"; do
			echo "struct $name probe_$name;"
		done
	} >"$found/drivers/md/probe.c"
	cp "$found/drivers/md/probe.c" "$work"
	compile_probe "$found/drivers/md" ||
		skip "the headers of $module in $origin do not compile with the" \
			"headers of kernel $kver; $remedy"
}

# verify: does the kernel lay out every shared structure as the source says?
verify() {
	local proof head module headers structs name total=0

	# A tree the kernel was built from needs no proof.
	[[ $origin == *.tar.* ]] || return 0
	need_pahole
	[[ -f $build/vmlinux ]] ||
		skip "kernel $kver has no type information in $build/vmlinux;" \
			"install its linux-headers package"

	for proof in "${PROOFS[@]}"; do
		head=${proof%%:*}
		module=${head%% *}
		read -ra headers <<<"${head#* }"
		read -ra structs <<<"${proof#*:}"
		stock "$module"
		printf '%s\n' "${headers[@]}" | compile_structs "$module" "${structs[@]}"
		for name in "${structs[@]}"; do
			prove_struct "$name" "$work/$module.ko" \
				"module $module of kernel $kver" --btf_base "$build/vmlinux"
			total=$((total + 1))
		done
	done
	proved=", $total structures equal to those of its modules"
}

# apply: the patches, and a Makefile that builds what they change.
apply() {
	local file kept

	while read -r file; do
		patch --directory="$found" --strip=1 --fuzz=0 --forward --silent \
			--no-backup-if-mismatch <"$file" ||
			skip "${file##*/} does not fit $origin: this version of Sutro has no" \
				"patches for kernel $kver"
		applied=$((applied + 1))
	done < <(patches)

	# Keep the lines that build our modules, and search for headers that the
	# patches change before those of the kernel.
	kept=$(IFS='|' && echo "${MODULES[*]//./\\.}")
	{
		# shellcheck disable=SC2016
		echo 'LINUXINCLUDE := -I$(src)/patched $(LINUXINCLUDE)'
		sed -E "/^obj-/{\#[[:space:]]($kept)([[:space:]]|\$)#!d}" \
			"$found/drivers/md/Makefile"
	} >"$work/Makefile"
	mv "$work/Makefile" "$found/drivers/md/Makefile"
	mkdir "$found/drivers/md/patched"
	[[ ! -d $found/include ]] ||
		cp -r "$found/include/." "$found/drivers/md/patched"
}

arguments "$here/patches" "has patches for" "$@"
origin=
proved=
applied=0

find_source
verify
rm -f "$found/drivers/md/probe.c"
apply

rm -rf -- "$outdir"
mkdir -p -- "$outdir"
cp -r "$found/drivers/md" "$outdir/md"
echo "driver-source: $outdir/md: drivers of $origin for kernel $kver$proved," \
	"$applied patches"
