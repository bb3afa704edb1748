// SPDX-License-Identifier: LGPL-2.1-or-later

package main

// Annotations of a pod, and the policy that follows from them.
//
//	io.sutro/read-min.data: 200M       ReadBandwidthMin= of the device under the volume data
//	io.sutro/path.data: db:/var/lib/db the volume data is the mount of the container db there
//	io.sutro/class: idle               Class= of the whole pod
//
// Annotations of other prefixes are ignored; an unknown one of this prefix is an error, because a
// misspelled promise would be none.

import (
	"fmt"
	"math/big"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Prefix of all annotations and extended resources.
const Prefix = "io.sutro/"

const (
	rateForm    = "1 to 1000T bytes per second, such as 200M or 1.5G (K, M, G, T: powers of 1000)"
	iopsForm    = "1 to 1000T requests per second, such as 500 or 2K"
	latencyForm = "a time from 1us to 1min and, if wanted, a percentile, such as 5ms or 5ms P99"
	weightForm  = "a whole number from 1 to 10000"
	keysForm    = "io.sutro/KEY.VOLUME with KEY read-min, write-min, read-max, write-max, " +
		"read-iops-min, write-iops-min, read-iops-max, write-iops-max, latency, write-latency, " +
		"fsync-latency or weight; io.sutro/path.VOLUME; io.sutro/weight and io.sutro/class"
	pathForm = "CONTAINER:PATH with the absolute path of the volume in that container, " +
		"such as db:/var/lib/db"
)

// A promiseKey is a key of a policy that has a value for a device.
type promiseKey struct {
	policy string
	form   string
	isGood func(string) bool
}

var promiseKeys = map[string]promiseKey{
	"read-min":       {"ReadBandwidthMin", rateForm, isRate},
	"write-min":      {"WriteBandwidthMin", rateForm, isRate},
	"read-max":       {"ReadBandwidthMax", rateForm, isRate},
	"write-max":      {"WriteBandwidthMax", rateForm, isRate},
	"read-iops-min":  {"ReadIOPSMin", iopsForm, isRate},
	"write-iops-min": {"WriteIOPSMin", iopsForm, isRate},
	"read-iops-max":  {"ReadIOPSMax", iopsForm, isRate},
	"write-iops-max": {"WriteIOPSMax", iopsForm, isRate},
	"latency":        {"LatencyTarget", latencyForm, isLatency},
	"write-latency":  {"WriteLatencyTarget", latencyForm, isLatency},
	"fsync-latency":  {"FsyncLatencyTarget", latencyForm, isLatency},
	"weight":         {"Weight", weightForm, isWeight},
}

// A Place is where a container has a volume.
type Place struct {
	Container, Path string
}

// A Promise is a value for the device under a volume.
type Promise struct {
	Key, Volume, Value string
}

// An Assignment is a key of a policy with its value, as SetPolicy takes it.
type Assignment struct {
	Key, Value string
}

// A Request has the requests of the annotations of a pod.
type Request struct {
	Promises []Promise
	// Those without a device.
	Whole []Assignment
	// Of volumes whose folder the kubelet does not name after the volume.
	Places map[string]Place
}

// Allowed are the annotations that need an option of the plugin.
type Allowed struct {
	// The class rt.
	RT bool
	// Latency targets: sutrod delays others for them, and no capacity bounds them.
	Targets bool
}

// IsEmpty returns true without a request.
func (r *Request) IsEmpty() bool {
	return len(r.Promises) == 0 && len(r.Whole) == 0
}

var (
	rateText    = regexp.MustCompile(`^([0-9]{1,15}(?:\.[0-9]{1,9})?)([KMGT]?)$`)
	latencyText = regexp.MustCompile(
		`^([0-9]{1,8}(?:\.[0-9]{1,6})?)(us|ms|s|min)(?: P([0-9]{1,2}(?:\.[0-9])?))?$`)
	weightText = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
	volumeText = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	// Also a control character would do harm in a log.
	pathText = regexp.MustCompile(`^/[^\x00-\x1f\x7f]+$`)

	suffixes = map[string]int64{"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
	timesUS  = map[string]int64{"us": 1, "ms": 1e3, "s": 1e6, "min": 60e6}
)

// product returns number times factor, exactly.
func product(number string, factor int64) *big.Rat {
	r, ok := new(big.Rat).SetString(number)
	if !ok {
		return new(big.Rat)
	}
	return r.Mul(r, big.NewRat(factor, 1))
}

func isBetween(r *big.Rat, least, most int64) bool {
	return r.Cmp(big.NewRat(least, 1)) >= 0 && r.Cmp(big.NewRat(most, 1)) <= 0
}

func isRate(text string) bool {
	m := rateText.FindStringSubmatch(text)
	return m != nil && isBetween(product(m[1], suffixes[m[2]]), 1, 1e15)
}

func isLatency(text string) bool {
	m := latencyText.FindStringSubmatch(text)
	if m == nil || !isBetween(product(m[1], timesUS[m[2]]), 1, 60e6) {
		return false
	}
	percentile := product(m[3], 10)
	return m[3] == "" || isBetween(percentile, 500, 999)
}

func isWeight(text string) bool {
	return weightText.MatchString(text) && isBetween(product(text, 1), 1, 10000)
}

func isClass(text string, allowed Allowed) bool {
	return text == "be" || text == "idle" || text == "rt" && allowed.RT
}

// malformed is the error for an annotation; it has the accepted form.
func malformed(name, value, form string) error {
	return fmt.Errorf("annotation %s: %.80q is malformed; allowed is %s", name, value, form)
}

// Parse returns the requests of annotations.
func Parse(annotations map[string]string, allowed Allowed) (*Request, error) {
	request := &Request{Places: map[string]Place{}}
	names := []string{}
	for name := range annotations {
		if strings.HasPrefix(name, Prefix) {
			names = append(names, name)
		}
	}
	// One order for messages and policies.
	slices.Sort(names)
	for _, name := range names {
		if err := request.add(name, annotations[name], allowed); err != nil {
			return nil, err
		}
	}
	for volume := range request.Places {
		used := func(p Promise) bool { return p.Volume == volume }
		if !slices.ContainsFunc(request.Promises, used) {
			return nil, fmt.Errorf("annotation %spath.%s: no annotation makes a promise for this "+
				"volume; allowed is %s", Prefix, volume, keysForm)
		}
	}
	return request, nil
}

func (r *Request) add(name, value string, allowed Allowed) error {
	key, volume, hasVolume := strings.Cut(strings.TrimPrefix(name, Prefix), ".")
	if hasVolume && !volumeText.MatchString(volume) {
		return fmt.Errorf("annotation %.80q is malformed; allowed is %s", name, keysForm)
	}
	known, isPromise := promiseKeys[key]
	switch {
	case !hasVolume && key == "class":
		if !isClass(value, allowed) {
			form := "be or idle"
			if value == "rt" {
				form += "; the plugin runs without --allow-rt"
			}
			return malformed(name, value, form)
		}
		r.Whole = append(r.Whole, Assignment{"Class", value})
	case !hasVolume && key == "weight":
		if !isWeight(value) {
			return malformed(name, value, weightForm)
		}
		r.Whole = append(r.Whole, Assignment{"Weight", value})
	case hasVolume && key == "path":
		container, place, isPair := strings.Cut(value, ":")
		if !isPair || container == "" || !pathText.MatchString(place) || path.Clean(place) != place {
			return malformed(name, value, pathForm)
		}
		r.Places[volume] = Place{container, place}
	case hasVolume && isPromise:
		if strings.HasSuffix(known.policy, "LatencyTarget") && !allowed.Targets {
			return fmt.Errorf("annotation %.80q: the plugin runs without --allow-targets; "+
				"allowed is a floor, a limit or a weight", name)
		}
		if !known.isGood(value) {
			return malformed(name, value, known.form)
		}
		r.Promises = append(r.Promises, Promise{known.policy, volume, value})
	default:
		return fmt.Errorf("annotation %.80q is unknown; allowed is %s", name, keysForm)
	}
	return nil
}
