// SPDX-License-Identifier: LGPL-2.1-or-later

package main

// The host path of a volume of a pod.
//
// The kubelet mounts a volume below a folder that has the name of the volume for most kinds, and of
// the persistent volume for a claim:
//
//	/var/lib/kubelet/pods/UID/volumes/kubernetes.io~empty-dir/data
//	/var/lib/kubelet/pods/UID/volumes/kubernetes.io~csi/pvc-3f0a.../mount
//
// For all others, such as a hostPath and a claim whose persistent volume has no known name, an
// annotation has the path in a container, and NRI has the mounts and block devices of that.

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/containerd/nri/pkg/api"
)

// The time of a lookup of a file. A runtime gives an event 2 s.
const statLimit = 500 * time.Millisecond

// A Host is where the plugin finds files of the machine.
type Host struct {
	// The kubelet's folder of pods.
	Pods string
	// The mount table of the machine.
	Mounts string
}

// kubeletVolume returns the folder of a volume that the kubelet has mounted.
func (h Host) kubeletVolume(uid, volume string) (string, error) {
	if uid == "" || strings.ContainsAny(uid, "/*?[\\") {
		return "", fmt.Errorf("volume %q: the pod has no UID", volume)
	}
	found, err := filepath.Glob(filepath.Join(h.Pods, uid, "volumes", "*", volume))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("volume %q is missing: %d folders %s/%s/volumes/*/%s; a hostPath or a "+
			"claim needs the annotation %spath.%s: %s", volume, len(found), h.Pods, uid, volume, Prefix,
			volume, pathForm)
	}
	// CSI mounts one level below.
	inner := filepath.Join(found[0], "mount")
	if _, err := os.Lstat(inner); err == nil && strings.Contains(found[0], "~csi/") {
		return inner, nil
	}
	return found[0], nil
}

// containerVolume returns the source of the mount or the block device of a container at a path.
func containerVolume(c *api.Container, volume string, place Place) (string, error) {
	for _, mount := range c.GetMounts() {
		if path.Clean(mount.GetDestination()) != place.Path {
			continue
		}
		if !strings.HasPrefix(mount.GetSource(), "/") {
			return "", fmt.Errorf("volume %q: container %s has a file system of type %q at %s, which is "+
				"out of reach: no block device is under it", volume, c.GetName(), mount.GetType(),
				place.Path)
		}
		return mount.GetSource(), nil
	}
	for _, device := range c.GetLinux().GetDevices() {
		if device.GetPath() == place.Path && device.GetType() == "b" {
			return fmt.Sprintf("/dev/block/%d:%d", device.GetMajor(), device.GetMinor()), nil
		}
	}
	return "", fmt.Errorf("volume %q is missing: container %s has no mount and no block device at %s",
		volume, c.GetName(), place.Path)
}

// kinds are file systems of which Sutro has no device, with the reason.
var kinds = map[string]string{
	"zfs":        "ZFS schedules requests in its own pool",
	"nfs":        "its server has the disks",
	"nfs4":       "its server has the disks",
	"cifs":       "its server has the disks",
	"smb3":       "its server has the disks",
	"ceph":       "its servers have the disks",
	"lustre":     "its servers have the disks",
	"9p":         "its server has the disks",
	"virtiofs":   "its server has the disks",
	"tmpfs":      "it is in memory",
	"overlay":    "name a volume instead of the image of a container",
	"fuse.spdk":  "SPDK bypasses the block layer",
	"fuse":       "a program serves it",
	"fuseblk":    "a program serves it",
	"fuse.ceph":  "its servers have the disks",
	"fuse.sshfs": "its server has the disks",
}

// special returns the reason why the file is none on the device of its file system, "" for a folder, a
// regular file and a block device. A file that cannot be looked up in time is taken as one of these:
// of a dead file server sutrod finds no device.
func special(source string) string {
	answer := make(chan fs.FileMode, 1)
	go func() {
		if info, err := os.Stat(source); err == nil {
			answer <- info.Mode()
		} else {
			answer <- 0
		}
	}()
	var mode fs.FileMode
	select {
	case mode = <-answer:
	case <-time.After(statLimit):
	}
	switch {
	case mode&fs.ModeSocket != 0:
		return "a socket (SPDK, vhost-user): its requests bypass the block layer"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO, and no block device is behind it"
	case mode&fs.ModeCharDevice != 0:
		return "a character device, and no block device is behind it"
	}
	return ""
}

// shown returns a path as messages have it: a path of a pod may have any characters, and is quoted then.
func shown(path string) string {
	if quoted := strconv.Quote(path); quoted != `"`+path+`"` {
		return quoted
	}
	return path
}

// outOfReach returns the reason why no block device was found under a path.
func (h Host) outOfReach(source string) string {
	kind := h.fileSystem(source)
	if kind == "" {
		return "no block device with a request queue"
	}
	reason, isKnown := kinds[kind]
	if !isKnown {
		reason = "it is on no block device with a request queue"
	}
	return fmt.Sprintf("a file system of type %s: %s", kind, reason)
}

// fileSystem returns the type of the file system at the deepest mount point above a path.
func (h Host) fileSystem(source string) string {
	file, err := os.Open(h.Mounts)
	if err != nil {
		return ""
	}
	defer file.Close()
	deepest, kind := "", ""
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// 36 35 98:0 /root /point options tags... - type source options
		left, right, isWhole := strings.Cut(lines.Text(), " - ")
		fields, rest := strings.Fields(left), strings.Fields(right)
		if !isWhole || len(fields) < 5 || len(rest) < 1 {
			continue
		}
		point := unescaped.Replace(fields[4])
		isAbove := point == "/" || source == point || strings.HasPrefix(source, point+"/")
		// A later mount at one point hides an earlier one.
		if isAbove && len(point) >= len(deepest) {
			deepest, kind = point, rest[0]
		}
	}
	return kind
}

// The kernel's escapes in a mount table.
var unescaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
