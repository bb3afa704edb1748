#compdef sutroctl
# SPDX-License-Identifier: LGPL-2.1-or-later
# zsh completion for sutroctl(1)

local -a common verbs policy_verbs keys arguments
local context state line verb
typeset -A opt_args

common=(
  '(-h --help)'{-h,--help}'[show a help]'
  '(-H --host)'{-H,--host}'[operate on another machine]:host:_hosts'
  '(-j)--json=-[print JSON]::mode:(pretty short off)'
  '(--json)-j[print JSON, pretty on a terminal]'
  '--no-legend[print no heads of columns, and no hints]'
  '--no-pager[do not pipe the output to a pager]'
  '--version[print the version]'
)
verbs=(
  'status:the daemon, promises, leaf disks, weights'
  'tree:the stacks, with weights and shares on the leaves'
  'explain:weights of a unit on its disks, and the state of its promises'
  'latency:latencies of a unit with a latency target'
  'top:present use of devices by units'
  'watch:a line per second and promise'
  'plot:rates of promises over time, as a picture'
  'set:set the weight of a unit, or for a device'
  'use:switch the leaves of devices to the sutro scheduler'
  'release:switch leaves back to their former scheduler'
  'measure:measure what a device can promise'
  'metrics:counters and promises in the text format of Prometheus'
  "slurm-gres:lines of Slurm's configuration"
  'test:fairness tests on a device'
  "log-level:show or set the level of the daemon's log"
  'dump:the whole state of the daemon'
  'policy:settings of units'
)
policy_verbs=(
  'check:find mistakes in policy files'
  'show:settings, their sources, and those in force'
  'cat:the files that set them'
  'edit:edit a file of settings of a unit'
  'set:set policy keys of a unit'
  'reset:remove settings of a unit'
  'reload:let the daemon read all policy files again'
)
keys=(
  ReadBandwidthMin WriteBandwidthMin ReadIOPSMin WriteIOPSMin ReadBandwidthMax WriteBandwidthMax
  ReadIOPSMax WriteIOPSMax LatencyTarget WriteLatencyTarget FsyncLatencyTarget Weight Class Importance
)

_sutroctl_units() {
  local -a units
  units=(${${(f)"$(systemctl list-units --all --full --plain --no-legend \
    --type=service,scope,slice,socket,mount,swap 2>/dev/null)"}%% *})
  compadd -a units
}

_sutroctl_assignments() {
  if compset -P 'Class='; then
    compadd rt be idle
  elif compset -P '(Weight|Importance)='; then
    _message number
  elif compset -P '*='; then
    _files
  else
    compadd -S = -a keys
  fi
}

_sutroctl_experiments() {
  local -a names
  names=(${${(f)"$(sutroctl test --list --no-legend 2>/dev/null)"}%% *})
  compadd -a names
}

_arguments -C $common '1:verb:->verb' '*::argument:->argument' && return
if [[ $state == verb ]]; then
  _describe verb verbs
  return
fi
verb=$words[1]
if [[ $verb == policy ]]; then
  curcontext=${curcontext%:*}:policy:
  _arguments -C $common '1:verb:->verb' '*::argument:->argument' && return
  if [[ $state == verb ]]; then
    _describe verb policy_verbs
    return
  fi
  verb="policy $words[1]"
fi

case $verb in
  (tree) arguments=('1:device:_files') ;;
  (explain) arguments=('1:unit:_sutroctl_units' '2:path:_files') ;;
  (latency|'policy show'|'policy cat'|'policy edit') arguments=('1:unit:_sutroctl_units') ;;
  (top)
    arguments=(
      '--order[sort by a column]:column:(state unit device value granted got leaf share weight)'
      '(-r --reverse)'{-r,--reverse}'[sort in the other direction]'
      '--filter[only units and devices with a text]:text:'
      '--active[only units that used a device in the last second]'
      '--tree[a tree of cgroups]'
      '--depth[a tree of so many levels]:levels:'
      '(-d --delay)'{-d,--delay}'[the period]:seconds:'
      '(-n --iterations)'{-n,--iterations}'[end after so many tables]:tables:'
      '(-b --batch)'{-b,--batch}'[one table after the other]'
      '--once[one table]'
      '--record[write each look to a file]:file:_files'
      '--from[replay such a file]:file:_files'
      '1:device:_files'
    ) ;;
  (plot)
    arguments=(
      '(-o --output)'{-o,--output}'[a .html or .png file]:file:_files'
      '--from[a file of watch --json]:file:_files'
      '*:unit:_sutroctl_units'
    ) ;;
  (set)
    arguments=(
      '--device[only for this device]:device:_files'
      '--runtime[only until the next boot]'
      '1:unit:_sutroctl_units'
      '2:weight:(default)'
    ) ;;
  (use) arguments=('*:device:_files') ;;
  (release) arguments=('--all[all leaves that Sutro switched]' '*:device:_files') ;;
  (measure)
    arguments=(
      '(-y --yes)'{-y,--yes}'[do not ask for confirmation]'
      '--dry-run[measure, but keep nothing]'
      '--seconds[for each of the rates]:seconds:'
      '--write[a new file on the device]:file:_files'
      '1:device:_files'
    ) ;;
  (metrics)
    arguments=('--all[all cgroups]' '(-o --output)'{-o,--output}'[replace a file]:file:_files') ;;
  (test)
    arguments=(
      '--list[list the experiments]'
      '*--only[only this experiment]:name:_sutroctl_experiments'
      '--schedulers[only these]:scheduler:_sequence compadd - none mq-deadline kyber bfq iocost sutro'
      '--duration[of each measurement]:seconds:'
      '--write[a new file on the device]:file:_files'
      '(-y --yes)'{-y,--yes}'[do not ask for confirmation]'
      '--report[print a text to send in]'
      '--plot[draw a .png or .svg file]:file:_files'
      '--from[results of test --json]:file:_files'
      '--restore[restore what a killed test has left behind]'
      '1:device:_files'
    ) ;;
  (slurm-gres) arguments=('--node[the name of the node]:node:' '*:rate:') ;;
  (log-level) arguments=('1:level:(emerg alert crit err warning notice info debug)') ;;
  ('policy check') arguments=('--fits[compare floors with the capacity]' '*:file:_files') ;;
  ('policy set')
    arguments=(
      '(--client)--runtime[only until the next boot]'
      '(--runtime)--client[only until Ctrl-C]'
      '1:unit:_sutroctl_units'
      '*:assignment:_sutroctl_assignments'
    ) ;;
  ('policy reset')
    arguments=(
      '--runtime[only those of set --runtime]'
      '1:unit:_sutroctl_units'
      '*:key:compadd -a keys'
    ) ;;
esac
_arguments $common $arguments
