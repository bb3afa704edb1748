# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# bash completion for sutroctl(1)

_sutroctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local verb='' place=0 options='--json --help' words='' files='' word last=''

	# The verb, and how many arguments of its own stand before the cursor.
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		if [[ $word != -* && $last != --device ]]; then
			if [[ -z $verb ]]; then verb=$word; else ((place++)); fi
		fi
		last=$word
	done

	case $verb in
	'') words='status tree explain set use release dump' options+=' --version' ;;
	tree | use) files=yes ;;
	release) files=yes options+=' --all' ;;
	set) options+=' --device --runtime' ;;&
	set | explain)
		if [[ $prev == --device ]] || [[ $verb == explain && $place == 1 ]]; then
			files=yes
		elif ((place == 0)); then
			words=$(systemctl list-units --all --full --plain --no-legend \
				--type=service,scope,slice,socket,mount,swap 2>/dev/null | cut -d' ' -f1)
		else
			words=default
		fi
		;;
	esac

	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
	elif [[ -n $files ]]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	else
		# Unit names hold backslashes (dev-disk-by\x2dlabel), which compgen -W would eat.
		mapfile -t COMPREPLY < <(compgen -W "${words//\\/\\\\}" -- "$cur")
	fi
}
complete -F _sutroctl sutroctl
