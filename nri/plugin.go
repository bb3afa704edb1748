// SPDX-License-Identifier: LGPL-2.1-or-later

package main

// The events of a runtime, and the policies that follow from them.
//
//	RunPodSandbox      annotations are read; a malformed one or a missing volume refuses the pod
//	CreateContainer    the policy of the pod's cgroup gets the devices under the volumes; those of a
//	                   container that is not there yet are logged
//	StopContainer,     without another container that runs, the policy is reset, now or as soon as
//	RemoveContainer    there is a sutrod; the next CreateContainer sets it again
//	StopPodSandbox,    the policy is reset
//	RemovePodSandbox
//	Synchronize        after each connection: policies of pods that are gone are reset, those of
//	                   the others are set again, now or as soon as there is a sutrod
//
// A policy is set in CreateContainer and not before, because a sandbox that fails has no further
// event, while a pod with a container has StopPodSandbox. containerd 1.7 loses StopPodSandbox and
// RemovePodSandbox of pods that are older than its own start; it has the events of their containers.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
)

const (
	retryPeriod = 5 * time.Second
	// Without a deadline of the runtime. With one, a call to sutrod has a part of it: the runtime
	// closes the connection of a plugin that misses it.
	callTimeout = 10 * time.Second
	// Work that no event waits for. No event of the runtime is handled meanwhile, and the runtime waits for
	// 2 s.
	stepTimeout = time.Second
	stepPause   = time.Millisecond
)

// Plugin handles the events. Its exported methods are those that the stub of NRI looks for.
type Plugin struct {
	daemon  Daemon
	records Records
	host    Host
	allowed Allowed

	// One event at a time, and the next members.
	mutex sync.Mutex
	// The containers of each sandbox that have not stopped.
	running map[string]map[string]bool
	// Containers of Synchronize whose policies could not be set, by ID.
	pending map[string]pendingPolicy
	// The volumes of each sandbox whose container has not been created, and that were logged.
	waiting map[string]map[string]Place
	// The failures that were logged, by the subject of a record; "" stands for the folder.
	failures map[string]string
}

// A pendingPolicy is the policy of a container that runs, with the failure of the last attempt.
type pendingPolicy struct {
	pod       *api.PodSandbox
	container *api.Container
	failure   string
}

// A temporary failure is none of the pod: a later attempt may succeed.
type temporary struct{ error }

func (t temporary) Unwrap() error { return t.error }

// NewPlugin returns a plugin without a connection.
func NewPlugin(daemon Daemon, records Records, host Host, allowed Allowed) *Plugin {
	return &Plugin{daemon: daemon, records: records, host: host, allowed: allowed,
		running: map[string]map[string]bool{}, pending: map[string]pendingPolicy{},
		waiting: map[string]map[string]Place{}, failures: map[string]string{}}
}

// subject returns the unit, or the path of the cgroup, of a pod.
func subject(pod *api.PodSandbox) (string, error) {
	parent := pod.GetLinux().GetCgroupParent()
	base := path.Base(parent)
	switch {
	case strings.HasSuffix(base, ".slice"):
		return base, nil
	case strings.HasPrefix(parent, "/") && base != "/":
		return path.Clean(parent), nil
	}
	return "", fmt.Errorf("the pod has no cgroup of its own (cgroup parent %q)", parent)
}

func named(pod *api.PodSandbox, err error) error {
	return fmt.Errorf("sutro: pod %s/%s: %w", pod.GetNamespace(), pod.GetName(), err)
}

func withLimit(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, hasDeadline := ctx.Deadline(); hasDeadline {
		return context.WithTimeout(ctx, time.Until(deadline)*3/4)
	}
	return context.WithTimeout(ctx, callTimeout)
}

// RunPodSandbox refuses a pod whose requests cannot be met.
func (p *Plugin) RunPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	request, err := Parse(pod.GetAnnotations(), p.allowed)
	if err != nil {
		return named(pod, err)
	}
	if request.IsEmpty() {
		return nil
	}
	ctx, cancel := withLimit(ctx)
	defer cancel()
	if _, err := subject(pod); err != nil {
		return named(pod, err)
	}
	for _, promise := range request.Promises {
		if _, isLater := request.Places[promise.Volume]; isLater {
			continue
		}
		source, err := p.host.kubeletVolume(pod.GetUid(), promise.Volume)
		if err == nil {
			_, err = p.device(ctx, promise.Volume, source)
		}
		if err != nil {
			return named(pod, err)
		}
	}
	return nil
}

// device returns the node of the device under the source of a volume.
func (p *Plugin) device(ctx context.Context, volume, source string) (string, error) {
	device, err := p.daemon.Device(ctx, source)
	if err == nil || errors.Is(err, ErrNoDevice) {
		// sutrod looks up no file, so a socket has the device of its file system there.
		if kind := special(source); kind != "" {
			return "", fmt.Errorf("volume %q is out of reach: %s is %s", volume, shown(source), kind)
		}
	}
	if errors.Is(err, ErrNoDevice) {
		return "", fmt.Errorf("volume %q is out of reach: %s is on %s", volume, shown(source),
			p.host.outOfReach(source))
	}
	if err != nil {
		return "", fmt.Errorf("volume %q: %w", volume, temporary{err})
	}
	return device, nil
}

// CreateContainer sets the policy of the pod for the volumes that can be found now.
func (p *Plugin) CreateContainer(ctx context.Context, pod *api.PodSandbox, container *api.Container) (
	*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	ctx, cancel := withLimit(ctx)
	defer cancel()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if err := p.apply(ctx, pod, container); err != nil {
		return nil, nil, named(pod, err)
	}
	delete(p.pending, container.GetId())
	p.addContainer(container)
	return nil, nil, nil
}

func (p *Plugin) addContainer(container *api.Container) {
	sandbox := container.GetPodSandboxId()
	if p.running[sandbox] == nil {
		p.running[sandbox] = map[string]bool{}
	}
	p.running[sandbox][container.GetId()] = true
}

// A volumePolicy is a promise with its device.
type volumePolicy struct {
	Promise
	device string
}

// found returns the promises whose volumes can be found with this container.
func (p *Plugin) found(ctx context.Context, pod *api.PodSandbox, container *api.Container,
	request *Request) ([]volumePolicy, error) {
	policies, devices := []volumePolicy{}, map[string]string{}
	for _, promise := range request.Promises {
		place, hasPlace := request.Places[promise.Volume]
		if hasPlace && place.Container != container.GetName() {
			continue
		}
		if devices[promise.Volume] == "" {
			var source string
			var err error
			if hasPlace {
				source, err = containerVolume(container, promise.Volume, place)
			} else {
				source, err = p.host.kubeletVolume(pod.GetUid(), promise.Volume)
			}
			if err != nil {
				return nil, err
			}
			devices[promise.Volume], err = p.device(ctx, promise.Volume, source)
			if err != nil {
				return nil, err
			}
		}
		policies = append(policies, volumePolicy{promise, devices[promise.Volume]})
	}
	return policies, nil
}

func (p *Plugin) apply(ctx context.Context, pod *api.PodSandbox, container *api.Container) error {
	request, err := Parse(pod.GetAnnotations(), p.allowed)
	if err != nil || request.IsEmpty() {
		return err
	}
	who, err := subject(pod)
	if err != nil {
		return err
	}
	policies, err := p.found(ctx, pod, container, request)
	if err != nil {
		return err
	}
	record, err := p.ownRecord(ctx, who, pod.GetId())
	if err != nil {
		return temporary{err}
	}
	assignments := slices.Clone(request.Whole)
	for _, one := range policies {
		which := one.Key + " " + one.device
		if other := record.Set[which]; other != "" && other != one.Volume {
			return fmt.Errorf("volumes %q and %q are both on %s: make the promise for one of them",
				other, one.Volume, one.device)
		}
		record.Set[which] = one.Volume
		assignments = append(assignments, Assignment{one.Key, one.device + " " + one.Value})
	}
	if len(assignments) == 0 {
		p.logWaiting(pod, container, request, record)
		return nil
	}
	// Before the policy: a plugin that is killed between the two leaves nothing in force.
	if err := p.records.Write(record); err != nil {
		return temporary{err}
	}
	if err := p.daemon.SetPolicy(ctx, who, assignments); err != nil {
		return temporary{err}
	}
	p.logWaiting(pod, container, request, record)
	return nil
}

// logWaiting logs volumes of containers that have not been created, once for each sandbox. Only the API
// server has the list of a pod's containers: a later one may have this name, or none, if it is misspelt.
func (p *Plugin) logWaiting(pod *api.PodSandbox, container *api.Container, request *Request,
	record *Record) {
	waiting := maps.Clone(request.Places)
	for _, volume := range record.Set {
		delete(waiting, volume)
	}
	logged := p.waiting[pod.GetId()]
	for _, volume := range slices.Sorted(maps.Keys(waiting)) {
		if _, isLogged := logged[volume]; !isLogged {
			log.Print(named(pod, fmt.Errorf("the guarantees of volume %q wait for container %q, which "+
				"annotation %spath.%s names; container %q was created", volume,
				waiting[volume].Container, Prefix, volume, container.GetName())))
		}
	}
	if len(waiting) > 0 {
		p.waiting[pod.GetId()] = waiting
	} else {
		delete(p.waiting, pod.GetId())
	}
}

// logEnd logs volumes whose container was not created until the end of a pod.
func (p *Plugin) logEnd(pod *api.PodSandbox) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	waiting := p.waiting[pod.GetId()]
	for _, volume := range slices.Sorted(maps.Keys(waiting)) {
		log.Printf("sutro: pod %s/%s has ended, and the guarantees of volume %q still waited for "+
			"container %q", pod.GetNamespace(), pod.GetName(), volume, waiting[volume].Container)
	}
	delete(p.waiting, pod.GetId())
}

// ownRecord returns the record of a cgroup for this sandbox; the policy of an earlier one goes.
func (p *Plugin) ownRecord(ctx context.Context, who, sandbox string) (*Record, error) {
	record, err := p.records.Read(who)
	if err != nil {
		return nil, err
	}
	if record != nil && record.Sandbox == sandbox && !record.Ended {
		return record, nil
	}
	if record != nil {
		if err := p.daemon.ResetPolicy(ctx, who); err != nil {
			return nil, err
		}
	}
	return &Record{Subject: who, Sandbox: sandbox, Set: map[string]string{}}, nil
}

// StopContainer resets the policy with the last container.
func (p *Plugin) StopContainer(ctx context.Context, _ *api.PodSandbox, container *api.Container) (
	[]*api.ContainerUpdate, error) {
	p.endContainer(ctx, container)
	return nil, nil
}

// RemoveContainer resets the policy where StopContainer did not.
func (p *Plugin) RemoveContainer(ctx context.Context, _ *api.PodSandbox,
	container *api.Container) error {
	p.endContainer(ctx, container)
	return nil
}

// endContainer does without the pod, which is nil where the runtime has removed it already.
func (p *Plugin) endContainer(ctx context.Context, container *api.Container) {
	ctx, cancel := withLimit(ctx)
	defer cancel()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	sandbox := container.GetPodSandboxId()
	delete(p.running[sandbox], container.GetId())
	delete(p.pending, container.GetId())
	if len(p.running[sandbox]) == 0 {
		p.endRunning(ctx, sandbox)
	}
}

// StopPodSandbox resets the policy.
func (p *Plugin) StopPodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	p.logEnd(pod)
	p.endSandbox(ctx, pod.GetId())
	return nil
}

// RemovePodSandbox resets the policy where StopPodSandbox did not.
func (p *Plugin) RemovePodSandbox(ctx context.Context, pod *api.PodSandbox) error {
	p.logEnd(pod)
	p.endSandbox(ctx, pod.GetId())
	return nil
}

func (p *Plugin) endSandbox(ctx context.Context, sandbox string) {
	ctx, cancel := withLimit(ctx)
	defer cancel()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.endRunning(ctx, sandbox)
}

func (p *Plugin) endRunning(ctx context.Context, sandbox string) {
	delete(p.running, sandbox)
	maps.DeleteFunc(p.pending, func(_ string, one pendingPolicy) bool {
		return one.pod.GetId() == sandbox
	})
	p.endAll(ctx, func(record *Record) bool { return record.Sandbox == sandbox })
}

// endAll resets the policies of some records.
func (p *Plugin) endAll(ctx context.Context, isOver func(*Record) bool) {
	for _, record := range p.allRecords() {
		if isOver(record) {
			p.logFailure(record.Subject, p.end(ctx, record), "its policy is reset later")
		}
	}
}

// allRecords returns those that can be read.
func (p *Plugin) allRecords() []*Record {
	records, err := p.records.All()
	p.logFailure("", err, "these records are left out")
	return records
}

// logFailure logs a failure, and one that stays the same once: late resets are tried every 5 s.
func (p *Plugin) logFailure(subject string, err error, consequence string) {
	if err == nil {
		delete(p.failures, subject)
		return
	}
	if text := err.Error(); text != p.failures[subject] {
		p.failures[subject] = text
		log.Printf("%s: %v; %s", cmp.Or(subject, "records"), err, consequence)
	}
}

func (p *Plugin) end(ctx context.Context, record *Record) error {
	if !record.Ended {
		record.Ended = true
		if err := p.records.Write(record); err != nil {
			return err
		}
	}
	if err := p.daemon.ResetPolicy(ctx, record.Subject); err != nil {
		return err
	}
	return p.records.Remove(record.Subject)
}

// Reset resets the policies of all records, also those of pods that run.
func (p *Plugin) Reset(ctx context.Context) error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	records, err := p.records.All()
	failures := []error{err}
	for _, record := range records {
		if err := p.end(ctx, record); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", record.Subject, err))
		}
	}
	return errors.Join(failures...)
}

// Synchronize takes the state of the runtime, and marks the records of pods that are gone. The rest is
// done after it has returned, since the runtime waits no longer than for an event.
func (p *Plugin) Synchronize(_ context.Context, pods []*api.PodSandbox,
	containers []*api.Container) ([]*api.ContainerUpdate, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.running, p.pending = map[string]map[string]bool{}, map[string]pendingPolicy{}
	p.waiting = map[string]map[string]Place{}
	for _, container := range containers {
		if container.GetState() != api.ContainerState_CONTAINER_STOPPED {
			p.addContainer(container)
		}
	}
	for _, record := range p.allRecords() {
		if len(p.running[record.Sandbox]) > 0 {
			continue
		}
		record.Ended = true
		if err := p.records.Write(record); err != nil {
			log.Printf("%s: %v", record.Subject, err)
		}
	}
	go p.reconcile(pods, containers)
	return nil, nil
}

// reconcile resets the policies of ended pods, and sets those of pods with containers.
func (p *Plugin) reconcile(pods []*api.PodSandbox, containers []*api.Container) {
	p.step(p.endMarked)
	known := map[string]*api.PodSandbox{}
	for _, pod := range pods {
		known[pod.GetId()] = pod
	}
	for _, container := range containers {
		pod := known[container.GetPodSandboxId()]
		p.step(func(ctx context.Context) {
			// It may have stopped meanwhile.
			if pod != nil && p.running[pod.GetId()][container.GetId()] {
				_ = p.applyOrKeep(ctx, pendingPolicy{pod: pod, container: container})
			}
		})
	}
}

// applyOrKeep sets a policy, and keeps it for a later attempt after a temporary failure. A failure that
// stays the same is logged once.
func (p *Plugin) applyOrKeep(ctx context.Context, one pendingPolicy) error {
	id := one.container.GetId()
	delete(p.pending, id)
	err := p.apply(ctx, one.pod, one.container)
	if err == nil {
		if one.failure != "" {
			log.Printf("pod %s/%s: its policy is set now", one.pod.GetNamespace(), one.pod.GetName())
		}
		return nil
	}
	text := named(one.pod, err).Error()
	if errors.As(err, &temporary{}) {
		p.pending[id] = pendingPolicy{one.pod, one.container, text}
		text += "; trying again"
	}
	if p.pending[id].failure != one.failure || one.failure == "" {
		log.Print(text)
	}
	return err
}

func (p *Plugin) endMarked(ctx context.Context) {
	p.endAll(ctx, func(record *Record) bool { return record.Ended })
}

// step does a part of the work between two events.
func (p *Plugin) step(work func(context.Context)) {
	p.mutex.Lock()
	// The wait for an event does not count.
	ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
	work(ctx)
	cancel()
	p.mutex.Unlock()
	// An event that waits is next, and not another step.
	time.Sleep(stepPause)
}

// retry resets the policies of ended pods that could not be reset before, and sets those of pods with
// containers that could not be set before.
func (p *Plugin) retry() {
	p.step(p.endMarked)
	p.mutex.Lock()
	ids := slices.Sorted(maps.Keys(p.pending))
	p.mutex.Unlock()
	for _, id := range ids {
		isDown := false
		p.step(func(ctx context.Context) {
			if one, isPending := p.pending[id]; isPending {
				err := p.applyOrKeep(ctx, one)
				isDown = errors.Is(err, ErrNotRunning) || ctx.Err() != nil
			}
		})
		if isDown {
			// The others would wait as long.
			return
		}
	}
}

// Retry does this again and again.
func (p *Plugin) Retry(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(retryPeriod):
			p.retry()
		}
	}
}
