// SPDX-License-Identifier: LGPL-2.1-or-later

package main

// The client of sutrod against a fake sutrod on a bus of its own.

import (
	"bufio"
	"context"
	"errors"
	"maps"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// newBus starts a message bus that is the system bus of this test.
func newBus(t *testing.T) string {
	t.Helper()
	command := exec.Command("dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(address)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
	return address
}

// A fakeService has the methods of sutrod, in front of a fakeDaemon.
type fakeService struct{ daemon *fakeDaemon }

func newError(name string, err error) *dbus.Error {
	return dbus.NewError(name, []any{err.Error()})
}

func (s fakeService) ResolvePath(path string) (string, []string, []map[string]dbus.Variant, *dbus.Error) {
	device, err := s.daemon.Device(background, path)
	if errors.Is(err, ErrNoDevice) {
		return "", nil, nil, newError("org.sutro1.Error.NoQueue", err)
	}
	if err != nil {
		return "", nil, nil, newError("org.sutro1.Error.NoSuchPath", err)
	}
	return device, []string{"/dev/sda"}, []map[string]dbus.Variant{}, nil
}

func (s fakeService) SetPolicy(subject string, assignments []Assignment, life string) *dbus.Error {
	if life != "runtime" {
		return newError("org.sutro1.Error.BadPolicy", errors.New(life))
	}
	if err := s.daemon.SetPolicy(background, subject, assignments); err != nil {
		return newError("org.sutro1.Error.Overcommitted", err)
	}
	return nil
}

func (s fakeService) ResetPolicy(subject, _ string) *dbus.Error {
	_ = s.daemon.ResetPolicy(background, subject)
	return nil
}

func (s fakeService) ListCapacities() ([]map[string]dbus.Variant, *dbus.Error) {
	return []map[string]dbus.Variant{{
		"path": dbus.MakeVariant("/srv"), "device": dbus.MakeVariant("/dev/dm-0"),
		"key": dbus.MakeVariant("ReadBandwidthMin"), "capacity": dbus.MakeVariant(uint64(4e8)),
		"promised": dbus.MakeVariant(uint64(19e7)), "left": dbus.MakeVariant(uint64(1)), "later": dbus.MakeVariant("key"),
	}}, nil
}

// The floor of the pod is 10 %: the daemon promises 40M of 400M, and the device has 90M for it now.
func (s fakeService) ListPromises() ([]map[string]dbus.Variant, *dbus.Error) {
	row := func(cgroup string, value uint64, percent float64) map[string]dbus.Variant {
		return map[string]dbus.Variant{"unit": dbus.MakeVariant(""), "cgroup": dbus.MakeVariant(cgroup),
			"key": dbus.MakeVariant("ReadBandwidthMin"), "path": dbus.MakeVariant("/srv"),
			"device": dbus.MakeVariant("/dev/dm-0"), "value": dbus.MakeVariant(value),
			"percent": dbus.MakeVariant(percent)}
	}
	return []map[string]dbus.Variant{row("/system.slice/db.service", 1e8, 0),
		row("/kubepods.slice/kubepods-pod1.slice", 9e7, 10)}, nil
}

func serveBus(t *testing.T, address string, daemon *fakeDaemon) {
	t.Helper()
	conn, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.Export(fakeService{daemon}, "/org/sutro1", manager); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.RequestName(service, dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
}

func TestBus(t *testing.T) {
	address := newBus(t)
	ctx, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	bus := Bus{}
	if err := bus.ResetPolicy(ctx, slice); !errors.Is(err, ErrNotRunning) {
		t.Errorf("without sutrod: %v", err)
	}
	daemon := newFakeDaemon()
	daemon.devices = map[string]string{"/srv": "/dev/dm-0", "/tank": ""}
	serveBus(t, address, daemon)
	if got, err := bus.Device(ctx, "/srv"); err != nil || got != "/dev/dm-0" {
		t.Errorf("a device: got %q, %v", got, err)
	}
	if _, err := bus.Device(ctx, "/tank"); !errors.Is(err, ErrNoDevice) {
		t.Errorf("no device: got %v", err)
	}
	if _, err := bus.Device(ctx, "/none"); err == nil || !strings.Contains(err.Error(), "No such file") {
		t.Errorf("no path: got %v", err)
	}
	set := []Assignment{{"ReadBandwidthMin", "/dev/dm-0 200M"}, {"Class", "idle"}}
	if err := bus.SetPolicy(ctx, slice, set); err != nil {
		t.Error(err)
	}
	want := map[string]string{slice: "Class idle; ReadBandwidthMin /dev/dm-0 200M"}
	if got := daemon.all(); !maps.Equal(got, want) {
		t.Errorf("policies are %v", got)
	}
	daemon.overcommitted = errors.New("too much on /dev/dm-0")
	if err := bus.SetPolicy(ctx, slice, set); err == nil || err.Error() != "too much on /dev/dm-0" {
		t.Errorf("beyond the capacity: %v", err)
	}
	if err := bus.ResetPolicy(ctx, slice); err != nil || len(daemon.all()) > 0 {
		t.Errorf("reset: %v, %v", daemon.all(), err)
	}
	got, _, err := Resources(ctx, bus, Names{})
	if err != nil || !maps.Equal(got, map[string]uint64{"io.sutro/read.srv": 250}) {
		t.Errorf("resources: %v, %v", got, err)
	}
}

func TestNoBus(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nowhere")
	if err := (Bus{}).ResetPolicy(background, slice); err == nil ||
		!strings.Contains(err.Error(), "no connection to the system bus") {
		t.Errorf("got %v", err)
	}
}
