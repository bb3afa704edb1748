// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/quick"
)

func TestResources(t *testing.T) {
	daemon := newFakeDaemon()
	daemon.capacities = []Capacity{
		{"/dev/vg/scratch", "/dev/dm-0", "ReadBandwidthMin", 400_500_000, 170_000_000},
		{"/dev/vg/scratch", "/dev/dm-0", "WriteBandwidthMin", 300_000_000, 900_000_000},
		{"/srv/db", "/dev/dm-1", "ReadIOPSMin", 5000, 77},
		{"/srv/away", "", "ReadBandwidthMin", 1_000_000_000, 0},
		{"/srv/db", "/dev/dm-1", "Unheard", 5000, 0},
	}
	// A unit that does not run has the promise of 20 MB/s that no state has.
	daemon.states = []State{
		{"/system.slice/backup.service", "ReadBandwidthMin", "/dev/dm-0", 100_000_000, 0},
		{"/kubepods.slice/kubepods-pod1.slice", "ReadBandwidthMin", "/dev/dm-0", 50_000_000, 0},
		{"/kubepods/besteffort/pod2", "ReadIOPSMin", "/dev/dm-1", 70, 0},
		{"/kubepodsnot/x", "ReadIOPSMin", "/dev/dm-1", 7, 0},
		{"/x", "WriteBandwidthMin", "/dev/dm-0", 900_000_000, 0},
		{"/x", "WriteBandwidthMax", "/dev/dm-0", 1, 0},
	}
	got, _, err := Resources(background, daemon, Names{"/srv/db": "db"})
	want := map[string]uint64{"io.sutro/read.vg.scratch": 280, "io.sutro/write.vg.scratch": 0,
		"io.sutro/read-iops.db": 4993}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
}

// A pod that starts or ends between two calls of sutrod may leave less until the next publication, and
// never more.
func TestResourcesWhilePodsStartAndEnd(t *testing.T) {
	pod := State{"/kubepods.slice/kubepods-pod1.slice", "ReadIOPSMin", "/dev/dm-0", 300, 0}
	for _, one := range []struct {
		name        string
		runsAtStart bool
		changeAfter string
	}{
		{"starts after States", false, "States"}, {"starts after Capacities", false, "Capacities"},
		{"ends after States", true, "States"}, {"ends after Capacities", true, "Capacities"},
	} {
		daemon := newFakeDaemon()
		set := func(isRunning bool) {
			row := Capacity{"/dev/vg/db", "/dev/dm-0", "ReadIOPSMin", 1000, 100}
			daemon.states = nil
			if isRunning {
				row.Promised += pod.Value
				daemon.states = []State{pod}
			}
			daemon.capacities = []Capacity{row}
		}
		change := func() { set(!one.runsAtStart) }
		set(one.runsAtStart)
		if one.changeAfter == "States" {
			daemon.onStates = change
		} else {
			daemon.onCapacities = change
		}
		got, _, err := Resources(background, daemon, Names{})
		if left := got["io.sutro/read-iops.vg.db"]; err != nil || left > 900 || left < 600 {
			t.Errorf("a pod %s: %d are left, %v", one.name, left, err)
		}
		daemon.onStates, daemon.onCapacities = nil, nil
		got, _, err = Resources(background, daemon, Names{})
		if left := got["io.sutro/read-iops.vg.db"]; err != nil || left != 900 {
			t.Errorf("a pod that %s, later: %d are left, %v", one.name, left, err)
		}
	}
}

// A floor of a class of pods is one of the administrator: it leaves less for the floors of pods.
func TestCgroupsOfPods(t *testing.T) {
	for cgroup, isOfPod := range map[string]bool{
		"/kubepods.slice/kubepods-pod6f1c_0c.slice":                                 true,
		"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod6f1c.slice": true,
		"/kubepods.slice/kubepods-pod6f1c.slice/cri-containerd-1.scope":             true,
		"/kubepods/pod6f1c-0c":                     true,
		"/kubepods/besteffort/pod6f1c/1":           true,
		"/kubepods.slice":                          false,
		"/kubepods.slice/kubepods-burstable.slice": false,
		"/kubepods/burstable":                      false,
		"/kubepodsnot/pod6f1c":                     false,
		"/system.slice/kubepods-pod6f1c.slice":     false,
	} {
		row := Capacity{"/", "/dev/dm-0", "ReadIOPSMin", 100, 30}
		got := left(row, []State{{cgroup, "ReadIOPSMin", "/dev/dm-0", 30, 0}})
		if (got == 100) != isOfPod {
			t.Errorf("%s: %d is left", cgroup, got)
		}
	}
}

// As in sutrod, the largest floor of a cgroup on a device counts: a policy file and an annotation may both
// set one.
func TestSeveralFloorsOfAPod(t *testing.T) {
	const pod, other = "/kubepods.slice/kubepods-pod1.slice", "/kubepods.slice/kubepods-pod2.slice"
	row := Capacity{"/scratch", "/dev/dm-0", "ReadBandwidthMin", 400, 100 + 70 + 80}
	states := []State{
		{"/system.slice/backup.service", "ReadBandwidthMin", "/dev/dm-0", 100, 0},
		{pod, "ReadBandwidthMin", "/dev/dm-0", 20, 0}, {pod, "ReadBandwidthMin", "/dev/dm-0", 70, 0},
		{pod, "ReadBandwidthMin", "/dev/dm-0", 30, 0}, {other, "ReadBandwidthMin", "/dev/dm-0", 80, 0},
	}
	if got := left(row, states); got != 300 {
		t.Errorf("%d is left, and the service has 100 of 400", got)
	}
}

// sutrod promises a part of the declared capacity, 12.34 % of 400 here, whatever the device can do now.
func TestPercentOfAPod(t *testing.T) {
	row := Capacity{"/scratch", "/dev/dm-0", "ReadBandwidthMin", 400, 100 + 49}
	pod := State{"/kubepods.slice/kubepods-pod1.slice", "ReadBandwidthMin", "/dev/dm-0", 0, 12.34}
	less := pod
	less.Value, less.Percent = 30, 0
	if got := left(row, []State{less, pod}); got != 300 {
		t.Errorf("%d is left, and the service has 100 of 400", got)
	}
}

func TestNamesOfResources(t *testing.T) {
	for path, want := range map[string]string{
		"/dev/vg/scratch": "vg.scratch", "/scratch": "scratch", "/srv/a_b-c": "srv.a_b-c",
		"/": "", "/dev/": "", "/srv/x+y": "", "/srv/ü": "", "/srv/-a-": "",
		"/" + strings.Repeat("x", longestName+1): "",
	} {
		if got, err := (Names{}).of(path); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
	daemon := newFakeDaemon()
	daemon.capacities = []Capacity{{"/dev/srv/db", "/dev/dm-0", "ReadIOPSMin", 1, 0},
		{"/srv/db", "/dev/dm-1", "ReadIOPSMin", 1, 0}}
	got, unnamed, err := Resources(background, daemon, Names{})
	if err != nil || len(got) > 0 || len(unnamed) != 1 || !strings.Contains(unnamed[0], "--name") {
		t.Errorf("two paths of one name: got %v, %v, %v", got, unnamed, err)
	}
	names := Names{}
	for text, isGood := range map[string]bool{
		"a=/dev/b": true, "a": false, "=/dev/b": false, "a=dev": false, "a/b=/dev": false,
	} {
		if err := names.Set(text); (err == nil) != isGood {
			t.Errorf("--name %s: got %v", text, err)
		}
	}
}

func TestCapacityThatIsNotPrinted(t *testing.T) {
	for _, one := range []struct {
		path, want string
	}{{"", "no capacity is declared"}, {"/", "no declared path has a name"}} {
		daemon := newFakeDaemon()
		if one.path != "" {
			daemon.capacities = []Capacity{{one.path, "/dev/dm-0", "ReadIOPSMin", 1, 0}}
		}
		err := printCapacity(background, daemon, Names{})
		if err == nil || !strings.Contains(err.Error(), one.want) {
			t.Errorf("%q: got %v, want %q", one.path, err, one.want)
		}
	}
}

func TestPatch(t *testing.T) {
	published := map[string]string{"cpu": "8", "io.sutro/read.old": "5", "io.sutro/read.same": "6",
		"io.sutro/read.less": "7", "io.sutro/read-iops.same": "6k", "example.com/x": "1"}
	wanted := map[string]uint64{"io.sutro/read.same": 6, "io.sutro/read-iops.same": 6000, "io.sutro/read.less": 3,
		"io.sutro/write.new": 0}
	want := []Operation{
		{"remove", "/status/capacity/io.sutro~1read.old", ""},
		{"add", "/status/capacity/io.sutro~1read.less", "3"},
		{"add", "/status/capacity/io.sutro~1write.new", "0"},
	}
	got := Patch(published, wanted)
	if len(got) != len(want) {
		t.Fatalf("got %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("got %v, want %v", got[i], want[i])
		}
	}
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]uint64{
		"0": 0, "300": 300, "1500": 1500, "2k": 2000, "3M": 3_000_000, "4G": 4e9, "18E": 18e18,
	} {
		if got, isWhole := amount(text); !isWhole || got != want {
			t.Errorf("%s is %d, %v", text, got, isWhole)
		}
	}
	for _, text := range []string{"", "k", "-1", "1.5", "500m", "1Ki", "1e3", "19E", "99999999999999999999"} {
		if got, isWhole := amount(text); isWhole {
			t.Errorf("%s is %d", text, got)
		}
	}
}

// Promises outside of pods, of units that run or do not, and the rest add up to the capacity, or
// nothing is left; floors of pods change nothing.
func TestLeft(t *testing.T) {
	isRight := func(capacity, stopped uint32, running, pods []uint32) bool {
		states, outside, promised := []State{}, uint64(stopped), uint64(stopped)
		for _, value := range running {
			states = append(states, State{"/x", "ReadIOPSMin", "/dev/dm-0", uint64(value), 0})
			outside += uint64(value)
			promised += uint64(value)
		}
		for n, value := range pods {
			pod := fmt.Sprint("/kubepods/pod", n)
			states = append(states, State{pod, "ReadIOPSMin", "/dev/dm-0", uint64(value), 0})
			promised += uint64(value)
		}
		got := left(Capacity{"/", "/dev/dm-0", "ReadIOPSMin", uint64(capacity), promised}, states)
		return got+outside == uint64(capacity) || got == 0 && outside >= uint64(capacity)
	}
	if err := quick.Check(isRight, nil); err != nil {
		t.Error(err)
	}
}
