// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
)

const slice = "kubepods-burstable-pod6f1c8b9e.slice"

var background = context.Background()

// A bench is a plugin with a fake daemon and a folder of the kubelet.
type bench struct {
	*Plugin
	daemon *fakeDaemon
	data   string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	top := makeFolders(t, uid+"/volumes/kubernetes.io~empty-dir/data")
	daemon := newFakeDaemon()
	data := filepath.Join(top, uid, "volumes/kubernetes.io~empty-dir/data")
	daemon.devices = map[string]string{data: "/dev/dm-0", "/srv/log": "/dev/dm-1", "/srv/same": "/dev/dm-0",
		"/tank": ""}
	records := Records(filepath.Join(t.TempDir(), "records"))
	return &bench{NewPlugin(daemon, records, Host{Pods: top}, Allowed{Targets: true}), daemon, data}
}

func newPod(id string, annotations map[string]string) *api.PodSandbox {
	named := map[string]string{}
	for name, value := range annotations {
		named[Prefix+name] = value
	}
	parent := "/kubepods.slice/kubepods-burstable.slice/" + slice
	return &api.PodSandbox{Id: id, Name: "db", Namespace: "shop", Uid: uid, Annotations: named,
		Linux: &api.LinuxPodSandbox{CgroupParent: parent}}
}

func newContainer(pod *api.PodSandbox, name string, mounts ...string) *api.Container {
	container := &api.Container{Id: pod.Id + name, PodSandboxId: pod.Id, Name: name,
		State: api.ContainerState_CONTAINER_RUNNING}
	for _, mount := range mounts {
		source, destination, _ := strings.Cut(mount, ":")
		container.Mounts = append(container.Mounts,
			&api.Mount{Source: source, Destination: destination, Type: "bind"})
	}
	return container
}

// runs starts a pod with a container; the error is that of the step that was refused.
func (b *bench) runs(pod *api.PodSandbox, container *api.Container) error {
	if err := b.RunPodSandbox(background, pod); err != nil {
		return err
	}
	_, _, err := b.CreateContainer(background, pod, container)
	return err
}

func (b *bench) expect(t *testing.T, want map[string]string) {
	t.Helper()
	if got := b.daemon.all(); !maps.Equal(got, want) {
		t.Errorf("policies are %q, want %q", got, want)
	}
}

func (b *bench) eventually(t *testing.T, want map[string]string) {
	t.Helper()
	for range 3000 {
		if maps.Equal(b.daemon.all(), want) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.expect(t, want)
}

func (b *bench) expectRecords(t *testing.T, want int) {
	t.Helper()
	if got, err := b.records.All(); err != nil || len(got) != want {
		t.Errorf("%d records, want %d; %v", len(got), want, err)
	}
}

func TestPolicyOfAPod(t *testing.T) {
	b := newBench(t)
	pod := newPod("one", map[string]string{"read-min.data": "200M", "latency.data": "5ms P99",
		"class": "be", "weight": "300", "write-max.log": "10M", "path.log": "log:/var/log"})
	if err := b.runs(pod, newContainer(pod, "db", b.data+":/data")); err != nil {
		t.Fatal(err)
	}
	first := "Class be; LatencyTarget /dev/dm-0 5ms P99; ReadBandwidthMin /dev/dm-0 200M; Weight 300"
	b.expect(t, map[string]string{slice: first})
	second := newContainer(pod, "log", "/srv/log:/var/log")
	if _, _, err := b.CreateContainer(background, pod, second); err != nil {
		t.Fatal(err)
	}
	b.expect(t, map[string]string{slice: strings.Replace(first, "; Weight 300",
		"; Weight 300; WriteBandwidthMax /dev/dm-1 10M", 1)})
	if err := b.StopPodSandbox(background, pod); err != nil {
		t.Fatal(err)
	}
	b.expect(t, map[string]string{})
	b.expectRecords(t, 0)
	if err := b.RemovePodSandbox(background, pod); err != nil {
		t.Fatal(err)
	}
}

// logged returns the lines that the log has from now on.
func logged(t *testing.T) func() []string {
	t.Helper()
	var text bytes.Buffer
	flags := log.Flags()
	log.SetFlags(0)
	log.SetOutput(&text)
	t.Cleanup(func() {
		log.SetOutput(os.Stderr)
		log.SetFlags(flags)
	})
	return func() []string {
		defer text.Reset()
		return strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	}
}

// A misspelt container is a guarantee without an effect.
func TestPathInAContainerThatIsNotThere(t *testing.T) {
	b := newBench(t)
	expect := func(lines func() []string, want ...string) {
		t.Helper()
		got := lines()
		if len(got) != len(want) {
			t.Fatalf("got %q, want %q", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("got %q, want %q", got[i], want[i])
			}
		}
	}
	const waits = `sutro: pod shop/db: the guarantees of volume "data" wait for container "dbb", which ` +
		`annotation io.sutro/path.data names; container "db" was created`
	const ended = `sutro: pod shop/db has ended, and the guarantees of volume "data" still waited for ` +
		`container "dbb"`
	annotations := map[string]string{"read-min.data": "200M", "latency.data": "5ms",
		"path.data": "dbb:/var/lib/db"}
	lines := logged(t)
	pod := newPod("one", annotations)
	for range 2 {
		if err := b.runs(pod, newContainer(pod, "db", "/srv/log:/var/lib/db")); err != nil {
			t.Fatal(err)
		}
	}
	b.expect(t, map[string]string{})
	expect(lines, waits)
	_ = b.StopPodSandbox(background, pod)
	expect(lines, ended)
	_ = b.RemovePodSandbox(background, pod)
	expect(lines, "")

	// The container is created later, as after an init container.
	pod = newPod("two", annotations)
	init, db := newContainer(pod, "db"), newContainer(pod, "dbb", "/srv/log:/var/lib/db")
	if err := b.runs(pod, init); err != nil {
		t.Fatal(err)
	}
	expect(lines, waits)
	_, _ = b.StopContainer(background, pod, init)
	if _, _, err := b.CreateContainer(background, pod, db); err != nil {
		t.Fatal(err)
	}
	if len(b.daemon.all()) != 1 {
		t.Error("no policy")
	}
	_ = b.StopPodSandbox(background, pod)
	expect(lines, "")

	// The guarantee of an init container ends with it, and the next container shows that.
	pod = newPod("three", annotations)
	init = newContainer(pod, "dbb", "/srv/log:/var/lib/db")
	if err := b.runs(pod, init); err != nil {
		t.Fatal(err)
	}
	expect(lines, "")
	_, _ = b.StopContainer(background, pod, init)
	if _, _, err := b.CreateContainer(background, pod, newContainer(pod, "db")); err != nil {
		t.Fatal(err)
	}
	expect(lines, waits)
	b.expect(t, map[string]string{})
	_ = b.StopPodSandbox(background, pod)
	expect(lines, ended)
}

func TestPodWithoutAnnotationsNeedsNoDaemon(t *testing.T) {
	b := newBench(t)
	b.daemon.isDown(ErrNotRunning)
	pod := newPod("one", nil)
	pod.Linux = nil
	if err := b.runs(pod, newContainer(pod, "db")); err != nil {
		t.Error(err)
	}
	b.expectRecords(t, 0)
}

func TestCgroupOfAPod(t *testing.T) {
	for parent, want := range map[string]string{
		"/kubepods.slice/kubepods-pod1.slice": "kubepods-pod1.slice",
		"kubepods-pod1.slice":                 "kubepods-pod1.slice",
		"/kubepods/burstable/pod1":            "/kubepods/burstable/pod1",
		"/kubepods/burstable/pod1/":           "/kubepods/burstable/pod1",
		"":                                    "",
		"/":                                   "",
		"relative":                            "",
	} {
		pod := &api.PodSandbox{Linux: &api.LinuxPodSandbox{CgroupParent: parent}}
		if got, err := subject(pod); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", parent, got, err)
		}
	}
}

func TestRefusedPods(t *testing.T) {
	for name, one := range map[string]struct {
		annotations map[string]string
		mount, text string
	}{
		"malformed":      {map[string]string{"read-min.data": "fast"}, "", rateForm},
		"missing":        {map[string]string{"read-min.none": "1M"}, "", `volume "none" is missing`},
		"missing mount":  {map[string]string{"read-min.x": "1M", "path.x": "db:/x"}, "", "no mount"},
		"a line break":   {map[string]string{"read-min.x": "1M", "path.x": "db:/x"}, "/ta\nnk:/x", `"/ta\nnk" is on`},
		"out of reach":   {map[string]string{"read-min.x": "1M", "path.x": "db:/x"}, "/tank:/x", "out of reach"},
		"gone":           {map[string]string{"read-min.x": "1M", "path.x": "db:/x"}, "/gone:/x", "No such file"},
		"same device":    {map[string]string{"read-min.data": "1M", "read-min.x": "1M", "path.x": "db:/x"}, "/srv/same:/x", "both on /dev/dm-0"},
		"no cgroup":      {map[string]string{"weight": "5"}, "", "no cgroup of its own"},
		"overcommitted":  {map[string]string{"read-min.data": "1M"}, "", "more than its capacity"},
		"daemon stopped": {map[string]string{"read-min.data": "1M"}, "", "systemctl start sutrod"},
	} {
		b := newBench(t)
		pod := newPod("one", one.annotations)
		switch name {
		case "no cgroup":
			pod.Linux.CgroupParent = ""
		case "a line break":
			b.daemon.devices["/ta\nnk"] = ""
		case "overcommitted":
			b.daemon.overcommitted = errors.New("/dev/dm-0: more than its capacity")
		case "daemon stopped":
			b.daemon.isDown(ErrNotRunning)
		}
		mounts := []string{}
		if one.mount != "" {
			mounts = append(mounts, one.mount)
		}
		err := b.runs(pod, newContainer(pod, "db", mounts...))
		if err == nil || !strings.Contains(err.Error(), one.text) ||
			!strings.Contains(err.Error(), "shop/db") {
			t.Errorf("%s: got %v", name, err)
		}
		b.expect(t, map[string]string{})
		b.daemon.isDown(nil)
		_ = b.StopPodSandbox(background, pod)
		b.expectRecords(t, 0)
	}
}

func TestStopWithoutDaemonIsDoneLater(t *testing.T) {
	b := newBench(t)
	pod := newPod("one", map[string]string{"read-min.data": "1M"})
	if err := b.runs(pod, newContainer(pod, "db")); err != nil {
		t.Fatal(err)
	}
	b.daemon.isDown(ErrNotRunning)
	if err := b.StopPodSandbox(background, pod); err != nil {
		t.Errorf("a pod has to end without sutrod: %v", err)
	}
	b.expectRecords(t, 1)
	b.retry()
	b.expectRecords(t, 1)
	b.daemon.isDown(nil)
	b.retry()
	b.expect(t, map[string]string{})
	b.expectRecords(t, 0)
}

// The runtime closes the connection of a plugin that handles an event in more than 2 s, and starts pods
// without it.
func TestEventsDoNotWaitForAHungDaemon(t *testing.T) {
	const limit = 2 * time.Second
	for name, isSynchronized := range map[string]bool{"retry": false, "Synchronize": true} {
		b := newBench(t)
		pods, containers := []*api.PodSandbox{}, []*api.Container{}
		for n := range 3 {
			pod := newPod(fmt.Sprint(n), map[string]string{"weight": "5"})
			pod.Linux.CgroupParent = fmt.Sprint("/kubepods/pod", n)
			pods, containers = append(pods, pod), append(containers, newContainer(pod, "c"))
			if err := b.runs(pod, containers[n]); err != nil {
				t.Fatal(err)
			}
		}
		b.daemon.isDown(ErrNotRunning)
		_ = b.StopPodSandbox(background, pods[0])
		b.daemon.isDown(nil)
		b.daemon.hung = make(chan struct{}, 1)
		if isSynchronized {
			if _, err := b.Synchronize(background, pods, containers[1:]); err != nil {
				t.Fatal(err)
			}
		} else {
			go b.retry()
		}
		<-b.daemon.hung
		other := newPod("other", nil)
		began := time.Now()
		if err := b.runs(other, newContainer(other, "c")); err != nil {
			t.Error(err)
		}
		if spent := time.Since(began); spent >= limit {
			t.Errorf("%s: the event took %s", name, spent)
		}
	}
}

// The kubelet removes the first sandbox of a pod long after the second has started.
func TestSecondSandboxOfAPodKeepsItsPolicy(t *testing.T) {
	b := newBench(t)
	first := newPod("one", map[string]string{"read-min.data": "1M", "weight": "7"})
	second := newPod("two", map[string]string{"read-min.data": "2M"})
	for _, pod := range []*api.PodSandbox{first, second} {
		if err := b.runs(pod, newContainer(pod, "db")); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{slice: "ReadBandwidthMin /dev/dm-0 2M"}
	b.expect(t, want)
	_ = b.StopPodSandbox(background, first)
	_ = b.RemovePodSandbox(background, first)
	b.expect(t, want)
	_ = b.StopPodSandbox(background, second)
	b.expect(t, map[string]string{})
}

func TestSynchronize(t *testing.T) {
	b := newBench(t)
	kept := newPod("kept", map[string]string{"read-min.data": "1M"})
	gone := newPod("gone", map[string]string{"weight": "5"})
	gone.Linux.CgroupParent = "/kubepods/gone"
	exited := newPod("exited", map[string]string{"weight": "6"})
	exited.Linux.CgroupParent = "/kubepods/exited"
	for _, pod := range []*api.PodSandbox{kept, gone, exited} {
		if err := b.runs(pod, newContainer(pod, "c")); err != nil {
			t.Fatal(err)
		}
	}
	// Started without the plugin; one of them has a mistake.
	missed := newPod("missed", map[string]string{"weight": "8"})
	missed.Linux.CgroupParent = "/kubepods/missed"
	wrong := newPod("wrong", map[string]string{"weight": "many"})
	stopped := newContainer(exited, "c")
	stopped.State = api.ContainerState_CONTAINER_STOPPED
	delete(b.daemon.policies, slice)
	_, err := b.Synchronize(background, []*api.PodSandbox{wrong, kept, exited, missed},
		[]*api.Container{newContainer(wrong, "c"), newContainer(kept, "c"), stopped,
			newContainer(missed, "c")})
	if err != nil {
		t.Fatal(err)
	}
	b.eventually(t, map[string]string{slice: "ReadBandwidthMin /dev/dm-0 1M",
		"/kubepods/missed": "Weight 8"})
	b.expectRecords(t, 2)
}

// sutrod starts after the plugin has connected, when pods run already.
func TestPoliciesAreSetWhenThereIsASutrod(t *testing.T) {
	b := newBench(t)
	pods, containers := []*api.PodSandbox{}, []*api.Container{}
	for _, name := range []string{"kept", "ended", "stopped", "wrong"} {
		pod := newPod(name, map[string]string{"weight": "5"})
		pod.Linux.CgroupParent = "/kubepods/pod" + name
		if name == "wrong" {
			pod.Annotations[Prefix+"weight"] = "many"
		}
		pods = append(pods, pod)
		containers = append(containers, newContainer(pod, "c"))
	}
	volume := newPod("volume", map[string]string{"read-min.data": "1M"})
	missing := newPod("missing", map[string]string{"read-min.none": "1M"})
	missing.Linux.CgroupParent = "/kubepods/podmissing"
	pods = append(pods, volume, missing)
	containers = append(containers, newContainer(volume, "c"), newContainer(missing, "c"))
	b.daemon.isDown(ErrNotRunning)
	expectPending := func(want int) {
		t.Helper()
		eventually(t, fmt.Sprint(want, " pending containers"), func() bool {
			b.mutex.Lock()
			defer b.mutex.Unlock()
			return len(b.pending) == want
		})
	}
	// A runtime that has started again synchronizes a second time.
	for range 2 {
		if _, err := b.Synchronize(background, pods, containers); err != nil {
			t.Fatal(err)
		}
		expectPending(4)
	}
	_ = b.StopPodSandbox(background, pods[1])
	_, _ = b.StopContainer(background, nil, containers[2])
	expectPending(2)
	b.retry()
	b.expect(t, map[string]string{})
	b.daemon.isDown(nil)
	b.retry()
	want := map[string]string{"/kubepods/podkept": "Weight 5", slice: "ReadBandwidthMin /dev/dm-0 1M"}
	b.expect(t, want)
	b.expectRecords(t, 2)
	expectPending(0)
	sets := b.daemon.sets
	b.retry()
	if b.daemon.sets != sets {
		t.Errorf("%d policies were set a second time", b.daemon.sets-sets)
	}
	// The pod that ends before there is a sutrod.
	b.daemon.isDown(ErrNotRunning)
	if _, err := b.Synchronize(background, pods[:1], containers[:1]); err != nil {
		t.Fatal(err)
	}
	expectPending(1)
	_ = b.StopPodSandbox(background, pods[0])
	expectPending(0)
	b.daemon.isDown(nil)
	b.retry()
	b.expect(t, map[string]string{})
}

// A full device refuses the floor of one pod at first, and no other.
func TestRefusedFloorIsTriedAgain(t *testing.T) {
	b := newBench(t)
	floor := newPod("floor", map[string]string{"read-min.data": "1M"})
	weight := newPod("weight", map[string]string{"weight": "5"})
	weight.Linux.CgroupParent = "/kubepods/weight"
	b.daemon.isDown(ErrNotRunning)
	pods := []*api.PodSandbox{floor, weight}
	containers := []*api.Container{newContainer(floor, "c"), newContainer(weight, "c")}
	_, _ = b.Synchronize(background, pods, containers)
	eventually(t, "two pending containers", func() bool {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		return len(b.pending) == 2
	})
	b.daemon.isDown(nil)
	b.daemon.overcommitted = errors.New("/dev/dm-0: more than its capacity")
	b.retry()
	b.expect(t, map[string]string{"/kubepods/weight": "Weight 5"})
	b.daemon.overcommitted = nil
	b.retry()
	b.expect(t, map[string]string{"/kubepods/weight": "Weight 5", slice: "ReadBandwidthMin /dev/dm-0 1M"})
}

func TestPodThatEndsDuringSynchronizeStaysWithoutPolicy(t *testing.T) {
	b := newBench(t)
	pod := newPod("one", map[string]string{"weight": "5"})
	// The rest of Synchronize waits for this.
	b.mutex.Lock()
	done := make(chan struct{})
	go func() {
		b.reconcile([]*api.PodSandbox{pod}, []*api.Container{newContainer(pod, "c")})
		close(done)
	}()
	b.mutex.Unlock()
	<-done
	b.expect(t, map[string]string{})
}

// containerd 1.7 has no events of sandboxes that are older than itself.
func TestLastContainerEndsThePolicy(t *testing.T) {
	b := newBench(t)
	pod := newPod("one", map[string]string{"read-min.data": "1M"})
	first, second := newContainer(pod, "first"), newContainer(pod, "second")
	policy := map[string]string{slice: "ReadBandwidthMin /dev/dm-0 1M"}
	for _, container := range []*api.Container{first, second} {
		if err := b.runs(pod, container); err != nil {
			t.Fatal(err)
		}
	}
	// A new plugin has the containers from the runtime.
	b.Plugin = NewPlugin(b.daemon, b.records, b.host, Allowed{Targets: true})
	if _, err := b.Synchronize(background, []*api.PodSandbox{pod},
		[]*api.Container{first, second}); err != nil {
		t.Fatal(err)
	}
	stop := func(container *api.Container) {
		t.Helper()
		if _, err := b.StopContainer(background, nil, container); err != nil {
			t.Error(err)
		}
		if err := b.RemoveContainer(background, nil, container); err != nil {
			t.Error(err)
		}
	}
	stop(first)
	b.expect(t, policy)
	stop(second)
	b.expect(t, map[string]string{})
	b.expectRecords(t, 0)
	// The kubelet starts a container of the same sandbox again.
	if _, _, err := b.CreateContainer(background, pod, second); err != nil {
		t.Fatal(err)
	}
	b.expect(t, policy)
}

// In the end the policies are those of the pods that run, for any order of events, and of restarts of
// sutrod and of the plugin.
func TestRandomLives(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 20))
		b := newBench(t)
		running := map[string]*api.PodSandbox{}
		for n := range 60 {
			id := fmt.Sprint(random.IntN(6))
			switch pod := running[id]; random.IntN(5) {
			case 0, 1:
				if pod != nil {
					continue
				}
				pod = newPod(fmt.Sprint(id, "-", n), map[string]string{"weight": fmt.Sprint(n + 1)})
				pod.Linux.CgroupParent = "/kubepods/pod" + id
				if b.runs(pod, newContainer(pod, "c")) == nil {
					running[id] = pod
				}
			case 2:
				if pod != nil {
					_ = b.StopPodSandbox(background, pod)
					delete(running, id)
				}
			case 3:
				b.daemon.isDown([]error{nil, ErrNotRunning}[random.IntN(2)])
			case 4:
				b.Plugin = NewPlugin(b.daemon, b.records, b.host, Allowed{Targets: true})
			}
		}
		b.daemon.isDown(nil)
		b.retry()
		want := map[string]string{}
		for id, pod := range running {
			want["/kubepods/pod"+id] = "Weight " + pod.Annotations[Prefix+"weight"]
		}
		b.expect(t, want)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func TestRecordsOfAnotherProgram(t *testing.T) {
	b := newBench(t)
	if err := os.MkdirAll(string(b.records), 0o755); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(string(b.records), "x.json")
	if err := os.WriteFile(broken, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	pod := newPod("one", map[string]string{"weight": "5"})
	if err := b.runs(pod, newContainer(pod, "c")); err != nil {
		t.Fatal(err)
	}
	_ = b.StopPodSandbox(background, pod)
	b.expect(t, map[string]string{})
}
