// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// A fakeDaemon keeps policies as sutrod does: by key and path, the last value counts.
type fakeDaemon struct {
	mutex sync.Mutex
	// The device of a path; "" stands for none.
	devices  map[string]string
	policies map[string]map[string]string
	// The error of each call, and of floors.
	down, overcommitted error
	// The time of a call of SetPolicy.
	delay time.Duration
	// The calls of SetPolicy.
	sets int
	// Calls for policies have no answer: each ends with its context. Not nil, it gets the start of each.
	hung       chan struct{}
	capacities []Capacity
	states     []State
	// Each is called after a call of Capacities and of States.
	onCapacities, onStates func()
}

func newFakeDaemon() *fakeDaemon {
	return &fakeDaemon{devices: map[string]string{}, policies: map[string]map[string]string{}}
}

func (d *fakeDaemon) Device(_ context.Context, path string) (string, error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	device, isKnown := d.devices[path]
	switch {
	case d.down != nil:
		return "", d.down
	case !isKnown:
		return "", errors.New(path + ": No such file or directory.")
	case device == "":
		return "", ErrNoDevice
	}
	return device, nil
}

// hang waits for the end of a context if the daemon does not answer.
func (d *fakeDaemon) hang(ctx context.Context) error {
	d.mutex.Lock()
	hung := d.hung
	d.mutex.Unlock()
	if hung == nil {
		return nil
	}
	select {
	case hung <- struct{}{}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

func (d *fakeDaemon) SetPolicy(ctx context.Context, subject string, assignments []Assignment) error {
	if err := d.hang(ctx); err != nil {
		return err
	}
	d.mutex.Lock()
	delay := d.delay
	d.mutex.Unlock()
	time.Sleep(delay)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.sets++
	if d.down != nil {
		return d.down
	}
	policy := maps.Clone(d.policies[subject])
	if policy == nil {
		policy = map[string]string{}
	}
	for _, one := range assignments {
		if d.overcommitted != nil && strings.HasSuffix(one.Key, "Min") {
			return d.overcommitted
		}
		path, value, hasPath := strings.Cut(one.Value, " ")
		if hasPath {
			policy[one.Key+" "+path] = value
		} else {
			policy[one.Key] = path
		}
	}
	d.policies[subject] = policy
	return nil
}

func (d *fakeDaemon) ResetPolicy(ctx context.Context, subject string) error {
	if err := d.hang(ctx); err != nil {
		return err
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.down != nil {
		return d.down
	}
	delete(d.policies, subject)
	return nil
}

func (d *fakeDaemon) Capacities(context.Context) ([]Capacity, error) {
	defer func() {
		if d.onCapacities != nil {
			d.onCapacities()
		}
	}()
	return d.capacities, d.down
}

func (d *fakeDaemon) States(context.Context) ([]State, error) {
	defer func() {
		if d.onStates != nil {
			d.onStates()
		}
	}()
	return d.states, d.down
}

// isDown makes each call fail, or end the failures with nil.
func (d *fakeDaemon) isDown(err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.down = err
}

// takes makes each call of SetPolicy take a time.
func (d *fakeDaemon) takes(delay time.Duration) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.delay = delay
}

// all returns each policy as a sorted text.
func (d *fakeDaemon) all() map[string]string {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	found := map[string]string{}
	for subject, policy := range d.policies {
		parts := []string{}
		for _, key := range slices.Sorted(maps.Keys(policy)) {
			parts = append(parts, key+" "+policy[key])
		}
		found[subject] = strings.Join(parts, "; ")
	}
	return found
}
