// SPDX-License-Identifier: LGPL-2.1-or-later

package main

// sutrod on the system bus. Documentation/org.sutro1.xml has its interface.
//
// Each call has a connection of its own: calls are rare, and a restart of the bus needs no care.

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/godbus/dbus/v5"
)

const (
	service = "org.sutro1"
	manager = "org.sutro1.Manager"
	// Runtime policies outlive a restart of sutrod, and end with the machine.
	lifetime = "runtime"
)

// Errors of a call, for errors.Is.
var (
	ErrNoDevice   = errors.New("on no block device")
	ErrNotRunning = errors.New("sutrod is not running; start it: systemctl start sutrod")
)

// A Capacity is a row of ListCapacities.
type Capacity struct {
	Path, Device, Key  string
	Capacity, Promised uint64
}

// A State is the part of a row of ListPromises that capacity needs.
type State struct {
	Cgroup, Key, Device string
	Value               uint64
	// A part of the device. There is no value then: the rate that it has now changes with the load.
	Percent float64
}

// A Daemon is the part of sutrod that is used here.
type Daemon interface {
	// Device returns the node of the block device under a path, or ErrNoDevice.
	Device(ctx context.Context, path string) (string, error)
	// SetPolicy adds to the policy of a unit or a cgroup by path.
	SetPolicy(ctx context.Context, subject string, assignments []Assignment) error
	// ResetPolicy removes all that SetPolicy added.
	ResetPolicy(ctx context.Context, subject string) error
	// Capacities returns the declared capacities of devices and their promised parts.
	Capacities(ctx context.Context) ([]Capacity, error)
	// States returns all promises.
	States(ctx context.Context) ([]State, error)
}

// Bus is sutrod itself.
type Bus struct{}

func (Bus) call(ctx context.Context, member string, results []any, arguments ...any) error {
	conn, err := dbus.ConnectSystemBus(dbus.WithContext(ctx))
	if err != nil {
		return fmt.Errorf("no connection to the system bus: %w", err)
	}
	defer conn.Close()
	object := conn.Object(service, "/org/sutro1")
	call := object.CallWithContext(ctx, manager+"."+member, 0, arguments...)
	if call.Err != nil {
		return failure(member, call.Err)
	}
	return call.Store(results...)
}

// failure returns the error of a call in the words of sutrod.
func failure(member string, err error) error {
	var remote dbus.Error
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("sutrod did not answer %s in time", member)
	}
	if !errors.As(err, &remote) {
		return err
	}
	text := remote.Error()
	if len(remote.Body) > 0 {
		text = fmt.Sprint(remote.Body[0])
	}
	switch remote.Name {
	case "org.sutro1.Error.NoQueue":
		return ErrNoDevice
	case "org.freedesktop.DBus.Error.ServiceUnknown", "org.freedesktop.DBus.Error.NameHasNoOwner",
		"org.freedesktop.DBus.Error.NoReply":
		return ErrNotRunning
	}
	return errors.New(strings.TrimSpace(text))
}

// Device implements Daemon.
func (b Bus) Device(ctx context.Context, path string) (string, error) {
	var device string
	var leaves []string
	var steps []map[string]dbus.Variant
	err := b.call(ctx, "ResolvePath", []any{&device, &leaves, &steps}, path)
	return device, err
}

// SetPolicy implements Daemon.
func (b Bus) SetPolicy(ctx context.Context, subject string, assignments []Assignment) error {
	return b.call(ctx, "SetPolicy", nil, subject, assignments, lifetime)
}

// ResetPolicy implements Daemon.
func (b Bus) ResetPolicy(ctx context.Context, subject string) error {
	return b.call(ctx, "ResetPolicy", nil, subject, lifetime)
}

// Capacities implements Daemon.
func (b Bus) Capacities(ctx context.Context) ([]Capacity, error) {
	var rows []map[string]dbus.Variant
	if err := b.call(ctx, "ListCapacities", []any{&rows}); err != nil {
		return nil, err
	}
	found := []Capacity{}
	for _, row := range rows {
		one := Capacity{}
		one.Path, _ = row["path"].Value().(string)
		one.Device, _ = row["device"].Value().(string)
		one.Key, _ = row["key"].Value().(string)
		one.Capacity, _ = row["capacity"].Value().(uint64)
		one.Promised, _ = row["promised"].Value().(uint64)
		found = append(found, one)
	}
	return found, nil
}

// States implements Daemon.
func (b Bus) States(ctx context.Context) ([]State, error) {
	var rows []map[string]dbus.Variant
	if err := b.call(ctx, "ListPromises", []any{&rows}); err != nil {
		return nil, err
	}
	found := []State{}
	for _, row := range rows {
		one := State{}
		one.Cgroup, _ = row["cgroup"].Value().(string)
		one.Key, _ = row["key"].Value().(string)
		one.Device, _ = row["device"].Value().(string)
		one.Percent, _ = row["percent"].Value().(float64)
		if one.Percent == 0 {
			one.Value, _ = row["value"].Value().(uint64)
		}
		found = append(found, one)
	}
	return found, nil
}
