# SPDX-License-Identifier: LGPL-2.1-or-later
# fish completion for sutroctl(1)

function __sutroctl_units
    systemctl list-units --all --full --plain --no-legend \
        --type=service,scope,slice,socket,mount,swap 2>/dev/null | string replace -r ' .*' ''
end

function __sutroctl_no_verb
    not __fish_seen_subcommand_from status tree explain latency top watch plot set use release \
        measure metrics slurm-gres test log-level dump policy
end

function __sutroctl_verb
    not __fish_seen_subcommand_from policy; and __fish_seen_subcommand_from $argv
end

function __sutroctl_policy
    __fish_seen_subcommand_from policy; and __fish_seen_subcommand_from $argv
end

set -l keys ReadBandwidthMin WriteBandwidthMin ReadIOPSMin WriteIOPSMin ReadBandwidthMax \
    WriteBandwidthMax ReadIOPSMax WriteIOPSMax LatencyTarget WriteLatencyTarget FsyncLatencyTarget \
    Weight Class Importance
set -l assignments $keys= Class=rt Class=be Class=idle

complete -c sutroctl -f
complete -c sutroctl -s h -l help -d 'show a help'
complete -c sutroctl -s H -l host -x -a '(__fish_print_hostnames)' -d 'operate on another machine'
complete -c sutroctl -l json -f -a 'pretty short off' -d 'print JSON'
complete -c sutroctl -s j -d 'print JSON, pretty on a terminal'
complete -c sutroctl -l no-legend -d 'print no heads of columns, and no hints'
complete -c sutroctl -l no-pager -d 'do not pipe the output to a pager'
complete -c sutroctl -l version -d 'print the version'

set -l no_verb -c sutroctl -n __sutroctl_no_verb
complete $no_verb -a status -d 'the daemon, promises, leaf disks, weights'
complete $no_verb -a tree -d 'the stacks, with weights and shares on the leaves'
complete $no_verb -a explain -d 'weights of a unit on its disks, and its promises'
complete $no_verb -a latency -d 'latencies of a unit with a latency target'
complete $no_verb -a top -d 'present use of devices by units'
complete $no_verb -a watch -d 'a line per second and promise'
complete $no_verb -a plot -d 'rates of promises over time, as a picture'
complete $no_verb -a set -d 'set the weight of a unit, or for a device'
complete $no_verb -a use -d 'switch the leaves of devices to the sutro scheduler'
complete $no_verb -a release -d 'switch leaves back to their former scheduler'
complete $no_verb -a measure -d 'measure what a device can promise'
complete $no_verb -a metrics -d 'counters and promises in the text format of Prometheus'
complete $no_verb -a slurm-gres -d "lines of Slurm's configuration"
complete $no_verb -a test -d 'fairness tests on a device'
complete $no_verb -a log-level -d "show or set the level of the daemon's log"
complete $no_verb -a dump -d 'the whole state of the daemon'
complete $no_verb -a policy -d 'settings of units'

set -l policy -c sutroctl \
    -n '__fish_seen_subcommand_from policy; and not __fish_seen_subcommand_from check show cat edit set reset reload'
complete $policy -a check -d 'find mistakes in policy files'
complete $policy -a show -d 'settings, their sources, and those in force'
complete $policy -a cat -d 'the files that set them'
complete $policy -a edit -d 'edit a file of settings of a unit'
complete $policy -a set -d 'set policy keys of a unit'
complete $policy -a reset -d 'remove settings of a unit'
complete $policy -a reload -d 'let the daemon read all policy files again'

complete -c sutroctl -n '__sutroctl_verb tree top use release measure explain test' -F
complete -c sutroctl -n '__sutroctl_verb explain latency plot set' -a '(__sutroctl_units)'
complete -c sutroctl -n '__sutroctl_policy show cat edit set reset' -a '(__sutroctl_units)'
complete -c sutroctl -n '__sutroctl_policy set' -a "$assignments"
complete -c sutroctl -n '__sutroctl_policy reset' -a "$keys"
complete -c sutroctl -n '__sutroctl_policy check' -F

set -l top -c sutroctl -n '__sutroctl_verb top'
complete $top -l order -x -a 'state unit device value granted got leaf share weight' -d 'sort by a column'
complete $top -s r -l reverse -d 'sort in the other direction'
complete $top -l filter -x -d 'only units and devices with a text'
complete $top -l active -d 'only units that used a device in the last second'
complete $top -l tree -d 'a tree of cgroups'
complete $top -l depth -x -d 'a tree of so many levels'
complete $top -s d -l delay -x -d 'the period in seconds'
complete $top -s n -l iterations -x -d 'end after so many tables'
complete $top -s b -l batch -d 'one table after the other'
complete $top -l once -d 'one table'
complete $top -l record -r -F -d 'write each look to a file'
complete $top -l from -r -F -d 'replay such a file'

complete -c sutroctl -n '__sutroctl_verb plot metrics' -s o -l output -r -F -d 'the file'
complete -c sutroctl -n '__sutroctl_verb plot' -l from -r -F -d 'a file of watch --json'
complete -c sutroctl -n '__sutroctl_verb set' -l device -r -F -d 'only for this device'
complete -c sutroctl -n '__sutroctl_verb set' -l runtime -d 'only until the next boot'
complete -c sutroctl -n '__sutroctl_verb release' -l all -d 'all leaves that Sutro switched'
complete -c sutroctl -n '__sutroctl_verb metrics' -l all -d 'all cgroups'
complete -c sutroctl -n '__sutroctl_verb measure' -s y -l yes -d 'do not ask for confirmation'
complete -c sutroctl -n '__sutroctl_verb measure' -l dry-run -d 'measure, but keep nothing'
complete -c sutroctl -n '__sutroctl_verb measure' -l seconds -x -d 'for each of the rates'
complete -c sutroctl -n '__sutroctl_verb measure' -l write -r -F -d 'a new file on the device'
set -l test -c sutroctl -n '__sutroctl_verb test'
complete $test -l list -d 'list the experiments'
complete $test -l only -x -a '(sutroctl test --list --no-legend 2>/dev/null | string replace -r " .*" "")' -d 'only this experiment'
complete $test -l schedulers -x -a 'none mq-deadline kyber bfq iocost sutro' -d 'only these schedulers'
complete $test -l duration -x -d 'seconds of each measurement'
complete $test -l write -r -F -d 'a new file on the device'
complete $test -s y -l yes -d 'do not ask for confirmation'
complete $test -l report -d 'print a text to send in'
complete $test -l plot -r -F -d 'draw a .png or .svg file'
complete $test -l from -r -F -d 'results of test --json'
complete $test -l restore -d 'restore what a killed test has left behind'

complete -c sutroctl -n '__sutroctl_verb slurm-gres' -l node -x -d 'the name of the node'
complete -c sutroctl -n '__sutroctl_verb log-level' -a 'emerg alert crit err warning notice info debug'
complete -c sutroctl -n '__sutroctl_policy check' -l fits -d 'compare floors with the capacity'
complete -c sutroctl -n '__sutroctl_policy set' -l runtime -d 'only until the next boot'
complete -c sutroctl -n '__sutroctl_policy reset' -l runtime -d 'only those of set --runtime'
complete -c sutroctl -n '__sutroctl_policy set' -l client -d 'only until Ctrl-C'
