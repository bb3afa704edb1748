// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/containerd/nri/pkg/api"
)

const uid = "6f1c8b9e-0c3c-4a8e-9c3e-2f6f7c1d0a11"

// makeFolders makes folders below a new one, which it returns.
func makeFolders(t *testing.T, names ...string) string {
	t.Helper()
	top := t.TempDir()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(top, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return top
}

func TestVolumesOfTheKubelet(t *testing.T) {
	top := makeFolders(t, uid+"/volumes/kubernetes.io~empty-dir/data",
		uid+"/volumes/kubernetes.io~csi/pvc-1/mount", uid+"/volumes/kubernetes.io~local-volume/twice",
		uid+"/volumes/kubernetes.io~empty-dir/twice", "other/volumes/kubernetes.io~empty-dir/theirs")
	host := Host{Pods: top}
	for volume, want := range map[string]string{
		"data":   "kubernetes.io~empty-dir/data",
		"pvc-1":  "kubernetes.io~csi/pvc-1/mount",
		"twice":  "",
		"none":   "",
		"theirs": "",
	} {
		got, err := host.kubeletVolume(uid, volume)
		if want != "" && (err != nil || got != filepath.Join(top, uid, "volumes", want)) {
			t.Errorf("%s: got %s, %v", volume, got, err)
		}
		if want == "" && (err == nil || !strings.Contains(err.Error(), pathForm)) {
			t.Errorf("%s: got %s, %v", volume, got, err)
		}
	}
	for _, bad := range []string{"", "*", "../other", "[a"} {
		if got, err := host.kubeletVolume(bad, "theirs"); err == nil {
			t.Errorf("UID %q: got %s", bad, got)
		}
	}
}

func TestVolumesOfAContainer(t *testing.T) {
	container := &api.Container{
		Name: "db",
		Mounts: []*api.Mount{
			{Destination: "/data/", Type: "bind", Source: "/srv/db"},
			{Destination: "/tmp", Type: "tmpfs", Source: "tmpfs"},
		},
		Linux: &api.LinuxContainer{Devices: []*api.LinuxDevice{
			{Path: "/dev/xvda", Type: "b", Major: 254, Minor: 3},
			{Path: "/dev/null", Type: "c", Major: 1, Minor: 3},
		}},
	}
	for place, want := range map[string]string{
		"/data": "/srv/db", "/dev/xvda": "/dev/block/254:3", "/tmp": "out of reach",
		"/dev/null": "is missing", "/none": "is missing",
	} {
		got, err := containerVolume(container, "v", Place{"db", place})
		if strings.HasPrefix(want, "/") && (err != nil || got != want) {
			t.Errorf("%s: got %s, %v", place, got, err)
		}
		if !strings.HasPrefix(want, "/") && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %s, %v", place, got, err)
		}
	}
}

const mountTable = `21 1 254:1 / / rw - ext4 /dev/vda1 rw
30 21 0:50 / /tank rw shared:1 - zfs tank rw
31 21 0:51 / /home rw - nfs4 server:/home rw
32 31 0:52 / /home/local\040disk rw master:2 - btrfs /dev/vdb rw
33 21 0:53 / /over rw - tmpfs tmpfs rw
34 33 0:54 / /over rw - fuse.something x rw
broken
`

func TestFileSystemsOutOfReach(t *testing.T) {
	mounts := filepath.Join(t.TempDir(), "mountinfo")
	if err := os.WriteFile(mounts, []byte(mountTable), 0o644); err != nil {
		t.Fatal(err)
	}
	host := Host{Mounts: mounts}
	for source, want := range map[string]string{
		"/tank": "zfs", "/tank/data": "zfs", "/tankless": "ext4", "/home/me": "nfs4", "/": "ext4",
		"/home/local disk/x": "btrfs", "/over": "fuse.something",
	} {
		if got := host.fileSystem(source); got != want {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
	for source, want := range map[string]string{
		"/tank/data": "ZFS", "/home/me": "its server has the disks", "/over": "no block device",
	} {
		if got := host.outOfReach(source); !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", source, got, want)
		}
	}
	if got := (Host{Mounts: "/nowhere"}).outOfReach("/x"); got == "" {
		t.Error("no reason without a mount table")
	}
}

// listenAt makes a socket as SPDK does for vhost-user.
func listenAt(t *testing.T, file string) {
	t.Helper()
	listener, err := net.Listen("unix", file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
}

func TestFilesThatAreNoVolumes(t *testing.T) {
	folder := t.TempDir()
	socket, fifo := filepath.Join(folder, "vhost.0"), filepath.Join(folder, "fifo")
	listenAt(t, socket)
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(folder, "link")
	if err := os.Symlink(socket, link); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		socket: "a socket", link: "a socket", fifo: "a FIFO", "/dev/null": "a character device",
		folder: "", filepath.Join(folder, "gone"): "",
	} {
		if got := special(file); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
	b := newBench(t)
	for file, device := range map[string]string{socket: "/dev/dm-0", link: ""} {
		// The file system of the socket has a block device, or none.
		b.daemon.devices[file] = device
		pod := newPod("one", map[string]string{"read-min.x": "1M", "path.x": "db:/x"})
		err := b.runs(pod, newContainer(pod, "db", file+":/x"))
		want := `volume "x" is out of reach: ` + file + " is a socket (SPDK, vhost-user)"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s on %q: got %v", file, device, err)
		}
	}
	b.expect(t, map[string]string{})
}
