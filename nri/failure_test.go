// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/containerd/nri/pkg/api"
)

// A sutrod that is away for a day is no flood of the log.
func TestFailuresAreLoggedOnce(t *testing.T) {
	b := newBench(t)
	pods := []*api.PodSandbox{newPod("one", map[string]string{"weight": "5"}),
		newPod("two", map[string]string{"weight": "5"})}
	pods[1].Linux.CgroupParent = "/kubepods/pod2"
	for _, pod := range pods {
		if err := b.runs(pod, newContainer(pod, "c")); err != nil {
			t.Fatal(err)
		}
	}
	broken := filepath.Join(string(b.records), "x.json")
	if err := os.WriteFile(broken, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	lines := logged(t)
	b.daemon.isDown(ErrNotRunning)
	for _, pod := range pods {
		_ = b.StopPodSandbox(background, pod)
	}
	for range 3 {
		b.retry()
	}
	if got := lines(); len(got) != 3 {
		t.Errorf("got %q, want a line for each policy and one for the broken record", got)
	}
	b.daemon.isDown(nil)
	b.retry()
	// Another failure of the same cgroup is a new one.
	if err := b.runs(pods[0], newContainer(pods[0], "c")); err != nil {
		t.Fatal(err)
	}
	lines()
	b.daemon.isDown(ErrNotRunning)
	_ = b.StopPodSandbox(background, pods[0])
	if got := lines(); len(got) != 1 {
		t.Errorf("got %q, want a line for the policy", got)
	}
}

// Nothing resets the policies of pods that run after the package is removed.
func TestReset(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"kept", "ended"} {
		pod := newPod(name, map[string]string{"weight": "5"})
		pod.Linux.CgroupParent = "/kubepods/pod" + name
		if err := b.runs(pod, newContainer(pod, "c")); err != nil {
			t.Fatal(err)
		}
		if name == "ended" {
			b.daemon.isDown(ErrNotRunning)
			_ = b.StopPodSandbox(background, pod)
		}
	}
	if err := b.Reset(background); !errors.Is(err, ErrNotRunning) {
		t.Errorf("without sutrod: %v", err)
	}
	b.expectRecords(t, 2)
	b.daemon.isDown(nil)
	if err := b.Reset(background); err != nil {
		t.Error(err)
	}
	b.expect(t, map[string]string{})
	b.expectRecords(t, 0)
	if err := b.Reset(background); err != nil {
		t.Error(err)
	}
}
