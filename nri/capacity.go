// SPDX-License-Identifier: LGPL-2.1-or-later

package main

// Capacities of a node as extended resources of Kubernetes.
//
//	Device=/dev/vg/scratch read=400M   in sutrod.conf, is io.sutro/read.vg.scratch: 400
//
// A resource counts 1 MB/s, or one request per second. Floors of units outside of pods are
// subtracted, also of units that do not run yet and have a setting made at run time. Equal paths,
// or --name, give equal names on all nodes.

import (
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

type resourceKind struct {
	word string
	unit uint64
}

var resourceKinds = map[string]resourceKind{
	"ReadBandwidthMin":  {"read", 1e6},
	"WriteBandwidthMin": {"write", 1e6},
	"ReadIOPSMin":       {"read-iops", 1},
	"WriteIOPSMin":      {"write-iops", 1},
}

var resourceText = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// The longest word and a dot leave this much of 63 characters.
const longestName = 63 - len("write-iops.")

// The cgroup of a pod, and those below it, for either driver of the kubelet. The cgroup above of a class,
// such as kubepods-burstable.slice, is none.
var podCgroup = regexp.MustCompile(
	`^/kubepods(\.slice/([^/]+/)?kubepods[^/]*-pod[^/]+\.slice|/([^/]+/)?pod[^/]+)(/|$)`)

// Names are chosen names of paths, in place of those that follow from the paths.
type Names map[string]string

// Set adds NAME=PATH; it implements flag.Value.
func (n Names) Set(text string) error {
	name, path, isPair := strings.Cut(text, "=")
	if !isPair || !isResourceName(name) || !strings.HasPrefix(path, "/") {
		return fmt.Errorf("%q is malformed; allowed is NAME=PATH, such as scratch=/dev/vg/scratch", text)
	}
	n[path] = name
	return nil
}

func (n Names) String() string { return "" }

func isResourceName(name string) bool {
	return len(name) <= longestName && resourceText.MatchString(name)
}

// of returns the name of a path.
func (n Names) of(path string) (string, error) {
	if name := n[path]; name != "" {
		return name, nil
	}
	name := strings.ReplaceAll(strings.Trim(strings.TrimPrefix(path, "/dev/"), "/"), "/", ".")
	if !isResourceName(name) {
		return "", fmt.Errorf("%s gives no name of a resource; choose one: --name NAME=%s", path, path)
	}
	return name, nil
}

// byPath returns the names of the paths of capacities, and a sentence for each path without one. Of several
// paths with one name, none has it: the order of the rows would choose whose capacity the scheduler counts.
func (n Names) byPath(rows []Capacity) (map[string]string, []string) {
	found, pathsOf, unnamed := map[string]string{}, map[string][]string{}, []string{}
	for _, row := range rows {
		if _, isSeen := found[row.Path]; isSeen {
			continue
		}
		name, err := n.of(row.Path)
		if err != nil {
			unnamed = append(unnamed, err.Error())
		} else {
			pathsOf[name] = append(pathsOf[name], row.Path)
		}
		found[row.Path] = name
	}
	for _, name := range slices.Sorted(maps.Keys(pathsOf)) {
		if paths := pathsOf[name]; len(paths) > 1 {
			unnamed = append(unnamed, fmt.Sprintf("%s give one name of a resource; choose one: --name NAME=%s",
				strings.Join(paths, " and "), paths[len(paths)-1]))
			for _, path := range paths {
				found[path] = ""
			}
		}
	}
	return found, unnamed
}

// Resources returns the extended resources of this node with their amounts, and a sentence for each declared
// path that is left out because it has no name.
func Resources(ctx context.Context, daemon Daemon, names Names) (map[string]uint64, []string, error) {
	// No call returns both at one time. A pod that starts or ends meanwhile is not in the states of before,
	// or not in those of after. Its floor is then subtracted as if it were outside of pods: the error is a
	// capacity that is too small, until the next publication.
	before, err := daemon.States(ctx)
	if err != nil {
		return nil, nil, err
	}
	capacities, err := daemon.Capacities(ctx)
	if err != nil {
		return nil, nil, err
	}
	after, err := daemon.States(ctx)
	if err != nil {
		return nil, nil, err
	}
	states := common(before, after)
	rows := slices.DeleteFunc(slices.Clone(capacities), func(row Capacity) bool {
		_, isKnown := resourceKinds[row.Key]
		return !isKnown || row.Device == ""
	})
	byPath, unnamed := names.byPath(rows)
	found := map[string]uint64{}
	for _, row := range rows {
		if name := byPath[row.Path]; name != "" {
			kind := resourceKinds[row.Key]
			found[Prefix+kind.word+"."+name] = left(row, states) / kind.unit
		}
	}
	return found, unnamed, nil
}

// common returns the states that are in both lists.
func common(before, after []State) []State {
	counts := map[State]int{}
	for _, one := range before {
		counts[one]++
	}
	found := []State{}
	for _, one := range after {
		if counts[one] > 0 {
			counts[one]--
			found = append(found, one)
		}
	}
	return found
}

// left returns a capacity without the floors of units outside of pods: without all that sutrod
// has promised, less the floors of pods.
func left(row Capacity, states []State) uint64 {
	ofPods := map[string]uint64{}
	for _, one := range states {
		if one.Key == row.Key && one.Device == row.Device && podCgroup.MatchString(one.Cgroup) {
			// Of several floors of a cgroup on a device, sutrod counts the largest one, and of a part
			// of the device that part of the capacity.
			value := max(one.Value, row.Capacity*hundredths(one.Percent)/hundredths(100))
			ofPods[one.Cgroup] = max(ofPods[one.Cgroup], value)
		}
	}
	outside := row.Promised
	for _, value := range ofPods {
		outside -= min(outside, value)
	}
	return row.Capacity - min(row.Capacity, outside)
}

// hundredths returns a part in hundredths of a percent, as sutrod computes with it.
func hundredths(percent float64) uint64 {
	return uint64(math.Round(percent * 100))
}

// An Operation of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value,omitempty"`
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1")

// Patch returns the operations that change the published resources to the given ones. Resources
// of others stay.
func Patch(published map[string]string, wanted map[string]uint64) []Operation {
	operations := []Operation{}
	for _, name := range slices.Sorted(maps.Keys(published)) {
		if _, isWanted := wanted[name]; !isWanted && strings.HasPrefix(name, Prefix) {
			operations = append(operations, Operation{"remove", capacityPath(name), ""})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if now, isWhole := amount(published[name]); !isWhole || now != wanted[name] {
			text := strconv.FormatUint(wanted[name], 10)
			operations = append(operations, Operation{"add", capacityPath(name), text})
		}
	}
	return operations
}

// amount returns a quantity of the API server as a whole number: 6000 is published as 6k.
func amount(text string) (uint64, bool) {
	digits := strings.TrimRight(text, "kMGTPE")
	number, err := strconv.ParseUint(digits, 10, 64)
	factor, isKnown := amountSuffixes[text[len(digits):]]
	if err != nil || !isKnown || number > math.MaxUint64/factor {
		return 0, false
	}
	return number * factor, true
}

var amountSuffixes = map[string]uint64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}

func capacityPath(name string) string {
	return "/status/capacity/" + pointer.Replace(name)
}
