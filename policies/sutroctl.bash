# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# bash completion for sutroctl(1)

_sutroctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local verb='' family='' place=0 words='' files='' word last='' value='' hosts=''
	local options='--json= -j --no-legend --no-pager -H --host -h --help --version'
	local valued='@(--device|--from|--output|-o|--record|--order|--filter|--depth|--delay|-d|--write|--plot)'
	local numbers='@(--iterations|-n|--seconds|--node|--host|-H|--only|--schedulers|--duration)'

	local keys='ReadBandwidthMin WriteBandwidthMin ReadIOPSMin WriteIOPSMin ReadBandwidthMax'
	keys+=' WriteBandwidthMax ReadIOPSMax WriteIOPSMax LatencyTarget WriteLatencyTarget'
	keys+=' FsyncLatencyTarget Weight Class Importance'

	# Bash divides words at "=": the option or key is the word before.
	if [[ $cur == = ]]; then
		cur='' value=yes
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD - 2]} value=yes
	fi

	# The verb, and how many arguments of its own stand before the cursor.
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		# shellcheck disable=SC2053  # the variables are patterns
		if [[ $word != -* && $last != $valued && $last != $numbers && $last != = && $word != = ]]; then
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
			words='check show cat edit set reset reload'
		else
			words='status tree explain latency top watch plot set use release measure metrics'
			words+=' slurm-gres test log-level dump policy'
		fi
		;;
	tree | use) files=yes ;;
	'policy check') files=yes options+=' --fits' ;;
	measure) files=yes options+=' -y --yes --dry-run --seconds --write' ;;
	test)
		files=yes
		options+=' --list --only --schedulers --duration --write -y --yes --report --plot --from'
		options+=' --restore'
		;;
	top)
		files=yes
		options+=' --order -r --reverse --filter --active --tree --depth -d --delay -n --iterations'
		options+=' -b --batch --once --record --from'
		;;
	metrics) files=yes options+=' --all -o --output' ;;
	log-level) words='emerg alert crit err warning notice info debug' ;;
	plot) options+=' --from -o --output' ;;&
	'policy set') options+=' --runtime --client' ;;&
	'policy reset') options+=' --runtime' ;;&
	release) files=yes options+=' --all' ;;
	slurm-gres) options+=' --node' ;;
	set) options+=' --device --runtime' ;;&
	set | explain | latency | plot | 'policy show' | 'policy cat' | 'policy edit' | 'policy set' | 'policy reset')
		if [[ $prev == @(--device|--from|--output|-o) ]] || [[ $verb == explain && $place == 1 ]]; then
			files=yes
		elif [[ $verb == 'policy set' && -n $value ]]; then
			case $prev in
			Class) words='rt be idle' ;;
			Weight | Importance) ;;
			*) files=yes ;;
			esac
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
	case $prev in
	--schedulers) files='' words='none mq-deadline kyber bfq iocost sutro' ;;
	--only) files='' words=$(sutroctl test --list --no-legend 2>/dev/null | cut -d' ' -f1) ;;
	--order) files='' words='state unit device value granted got leaf share weight' ;;
	--json) [[ -z $value ]] || files='' words='pretty short off' ;;
	--host | -H) files='' words='' hosts=yes ;;
	esac

	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
		[[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace
	elif [[ -n $hosts ]]; then
		mapfile -t COMPREPLY < <(compgen -A hostname -- "$cur")
	elif [[ -n $files ]]; then
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	else
		# Unit names hold backslashes (dev-disk-by\x2dlabel), which compgen -W would eat.
		mapfile -t COMPREPLY < <(compgen -W "${words//\\/\\\\}" -- "$cur")
	fi
}
complete -F _sutroctl sutroctl
