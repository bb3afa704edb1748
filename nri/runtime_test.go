// SPDX-License-Identifier: LGPL-2.1-or-later

package main

// The plugin behind the runtime's side of NRI, over its socket, as containerd uses it.

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
)

// A fakeRuntime has pods and containers, and the runtime's side of NRI.
type fakeRuntime struct {
	mutex      sync.Mutex
	nri        *adaptation.Adaptation
	pods       []*api.PodSandbox
	containers []*api.Container
	syncs      int
}

func startRuntime(t *testing.T, socket string, runtime *fakeRuntime) {
	t.Helper()
	synchronize := func(ctx context.Context, call adaptation.SyncCB) error {
		runtime.mutex.Lock()
		defer runtime.mutex.Unlock()
		_, err := call(ctx, runtime.pods, runtime.containers)
		runtime.syncs++
		return err
	}
	update := func(context.Context, []*api.ContainerUpdate) ([]*api.ContainerUpdate, error) {
		return nil, nil
	}
	folder := t.TempDir()
	nri, err := adaptation.New("fake", "1", synchronize, update, adaptation.WithSocketPath(socket),
		adaptation.WithPluginPath(folder), adaptation.WithPluginConfigPath(folder))
	if err != nil {
		t.Fatal(err)
	}
	if err := nri.Start(); err != nil {
		t.Fatal(err)
	}
	runtime.nri = nri
}

func eventually(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for range 3000 {
		if isSo() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not within 30 s: %s", what)
}

func TestLifeBehindARuntime(t *testing.T) {
	b := newBench(t)
	socket := filepath.Join(t.TempDir(), "nri.sock")
	runtime := &fakeRuntime{}
	startRuntime(t, socket, runtime)
	ctx, cancel := context.WithCancel(background)
	served := make(chan struct{})
	go func() {
		servePlugin(ctx, b.Plugin, socket)
		close(served)
	}()

	pod := newPod("one", map[string]string{"read-min.data": "200M"})
	container := newContainer(pod, "db")
	create := func(pod *api.PodSandbox, container *api.Container) error {
		_, err := runtime.nri.CreateContainer(background,
			&api.CreateContainerRequest{Pod: pod, Container: container})
		return err
	}
	// A runtime adds a plugin to its list some time after Synchronize.
	eventually(t, "a policy", func() bool {
		return create(pod, container) == nil && len(b.daemon.all()) == 1
	})
	b.expect(t, map[string]string{slice: "ReadBandwidthMin /dev/dm-0 200M"})

	bad := newPod("two", map[string]string{"read-min.data": "fast"})
	err := runtime.nri.RunPodSandbox(background, &api.StateChangeEvent{Pod: bad})
	if err == nil || !strings.Contains(err.Error(), rateForm) {
		t.Errorf("a malformed annotation: %v", err)
	}
	missing := newPod("three", map[string]string{"read-min.x": "1M", "path.x": "db:/x"})
	if err := create(missing, newContainer(missing, "db")); err == nil ||
		!strings.Contains(err.Error(), `volume "x" is missing`) {
		t.Errorf("a missing volume: %v", err)
	}

	// A runtime closes the connection of a plugin that misses its deadline. The pod ends meanwhile, and
	// another one is there when the plugin has connected again.
	later := newPod("four", map[string]string{"weight": "7"})
	later.Linux.CgroupParent = "/kubepods/later"
	runtime.mutex.Lock()
	runtime.pods = []*api.PodSandbox{later}
	runtime.containers = []*api.Container{newContainer(later, "db")}
	syncs := runtime.syncs
	runtime.mutex.Unlock()
	b.daemon.takes(adaptation.DefaultPluginRequestTimeout * 3 / 2)
	_ = create(pod, container)
	b.daemon.takes(0)
	b.eventually(t, map[string]string{"/kubepods/later": "Weight 7"})
	runtime.mutex.Lock()
	if runtime.syncs == syncs {
		t.Error("the plugin has not connected again")
	}
	runtime.mutex.Unlock()
	eventually(t, "no policy", func() bool {
		err := runtime.nri.StopPodSandbox(background, &api.StateChangeEvent{Pod: later})
		return err == nil && len(b.daemon.all()) == 0
	})

	cancel()
	<-served
	runtime.nri.Stop()
}
