# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# bash completion for sutroctl(1)

_sutroctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local verb='' family='' place=0 options='--json --help' words='' files='' word last=''

	local keys='ReadBandwidthMin WriteBandwidthMin ReadIOPSMin WriteIOPSMin ReadBandwidthMax'
	keys+=' WriteBandwidthMax ReadIOPSMax WriteIOPSMax LatencyTarget WriteLatencyTarget'
	keys+=' FsyncLatencyTarget Weight Class Importance'

	# The verb, and how many arguments of its own stand before the cursor.
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		if [[ $word != -* && $last != @(--device|--from|--output|-o) ]]; then
			if [[ -z $verb && -z $family && $word == policy ]]; then
				family=policy
			elif [[ -z $verb ]]; then
				verb="${family:+$family }$word"
			else
				((place++))
			fi
		fi
		last=$word
	done

	case $verb in
	'')
		if [[ -n $family ]]; then
			words='check show set reset reload'
		else
			words='status tree explain latency top watch plot metrics measure policy set use release slurm-gres dump'
			options+=' --version'
		fi
		;;
	tree | use) files=yes ;;
	'policy check') files=yes options+=' --fits' ;;
	measure) files=yes options+=' --yes --dry-run --seconds' ;;
	top) files=yes options+=' --once' ;;
	metrics) files=yes options+=' --all --output' ;;
	plot) options+=' --from --output' ;;&
	'policy set') options+=' --runtime --client' ;;&
	'policy reset') options+=' --runtime' ;;&
	release) files=yes options+=' --all' ;;
	slurm-gres) options+=' --node' ;;
	set) options+=' --device --runtime' ;;&
	set | explain | latency | plot | 'policy show' | 'policy set' | 'policy reset')
		if [[ $prev == @(--device|--from|--output|-o) ]] || [[ $verb == explain && $place == 1 ]]; then
			files=yes
		elif ((place == 0)) || [[ $verb == plot ]]; then
			words=$(systemctl list-units --all --full --plain --no-legend \
				--type=service,scope,slice,socket,mount,swap 2>/dev/null | cut -d' ' -f1)
		elif [[ $verb == set ]]; then
			words=default
		elif [[ $verb == policy\ @(set|reset) ]]; then
			words=$keys
			if [[ $verb == 'policy set' ]]; then
				words=${keys// /= }=
				compopt -o nospace
			fi
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
