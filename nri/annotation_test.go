// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
)

func TestAnnotations(t *testing.T) {
	for _, one := range []struct {
		name, value string
		want        Promise
	}{
		{"read-min.data", "200M", Promise{"ReadBandwidthMin", "data", "200M"}},
		{"write-min.data", "1.5G", Promise{"WriteBandwidthMin", "data", "1.5G"}},
		{"read-max.data", "1", Promise{"ReadBandwidthMax", "data", "1"}},
		{"write-max.pvc-3f0a.b", "1000T", Promise{"WriteBandwidthMax", "pvc-3f0a.b", "1000T"}},
		{"read-iops-min.0", "2K", Promise{"ReadIOPSMin", "0", "2K"}},
		{"write-iops-min.a", "500", Promise{"WriteIOPSMin", "a", "500"}},
		{"read-iops-max.a", "500", Promise{"ReadIOPSMax", "a", "500"}},
		{"write-iops-max.a", "0.001K", Promise{"WriteIOPSMax", "a", "0.001K"}},
		{"latency.data", "5ms", Promise{"LatencyTarget", "data", "5ms"}},
		{"latency.data", "1min P50", Promise{"LatencyTarget", "data", "1min P50"}},
		{"write-latency.data", "0.5s P99.9", Promise{"WriteLatencyTarget", "data", "0.5s P99.9"}},
		{"fsync-latency.data", "1us P99", Promise{"FsyncLatencyTarget", "data", "1us P99"}},
		{"weight.data", "10000", Promise{"Weight", "data", "10000"}},
	} {
		got, err := Parse(map[string]string{Prefix + one.name: one.value, "other/x": "y"}, Allowed{Targets: true})
		if err != nil || len(got.Promises) != 1 || got.Promises[0] != one.want {
			t.Errorf("%s: %s: got %v, %v", one.name, one.value, got, err)
		}
	}
}

func TestAnnotationsOfThePod(t *testing.T) {
	got, err := Parse(map[string]string{
		Prefix + "class": "idle", Prefix + "weight": "300", Prefix + "path.data": "db:/var/lib/db",
		Prefix + "read-min.data": "1M",
	}, Allowed{})
	want := &Request{
		Promises: []Promise{{"ReadBandwidthMin", "data", "1M"}},
		Whole:    []Assignment{{"Class", "idle"}, {"Weight", "300"}},
		Places:   map[string]Place{"data": {"db", "/var/lib/db"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := Parse(map[string]string{Prefix + "class": "rt"}, Allowed{RT: true}); err != nil ||
		got.Whole[0].Value != "rt" {
		t.Errorf("class rt with --allow-rt: %v, %v", got, err)
	}
	if got, err := Parse(map[string]string{"iosutro/read-min.a": "x"}, Allowed{}); err != nil ||
		!got.IsEmpty() {
		t.Errorf("another prefix: %v, %v", got, err)
	}
}

func TestMalformedAnnotationsAreRefusedWithTheForm(t *testing.T) {
	for _, one := range []struct{ name, value, form string }{
		{"read-min.data", "", rateForm},
		{"read-min.data", "0", rateForm},
		{"read-min.data", "0.1", rateForm},
		{"read-min.data", "-1M", rateForm},
		{"read-min.data", "200Mi", rateForm},
		{"read-min.data", "200 M", rateForm},
		{"read-min.data", " 200M", rateForm},
		{"read-min.data", "200M\n", rateForm},
		{"read-min.data", "200m", rateForm},
		{"read-min.data", "1e6", rateForm},
		{"read-min.data", "50%", rateForm},
		{"read-min.data", "1001T", rateForm},
		{"read-min.data", "1.5.2G", rateForm},
		{"read-min.data", ".5G", rateForm},
		{"read-min.data", "٣M", rateForm},
		{"read-min.data", strings.Repeat("9", 400), rateForm},
		{"read-max.data", "infinity", rateForm},
		{"read-iops-min.data", "-", iopsForm},
		{"latency.data", "5", latencyForm},
		{"latency.data", "0ms", latencyForm},
		{"latency.data", "0.5us", latencyForm},
		{"latency.data", "61s", latencyForm},
		{"latency.data", "2min", latencyForm},
		{"latency.data", "5ms P49", latencyForm},
		{"latency.data", "5ms P100", latencyForm},
		{"latency.data", "5ms  P99", latencyForm},
		{"latency.data", "5ms P99.99", latencyForm},
		{"weight.data", "0", weightForm},
		{"weight.data", "10001", weightForm},
		{"weight.data", "1.5", weightForm},
		{"weight", "+1", weightForm},
		{"weight", "", weightForm},
		{"class", "be ", "be or idle"},
		{"class", "rt", "--allow-rt"},
		{"class.data", "idle", keysForm},
		{"read-min", "1M", keysForm},
		{"read-min.", "1M", keysForm},
		{"read-min.-a", "1M", keysForm},
		{"read-min.A", "1M", keysForm},
		{"read-mim.data", "1M", keysForm},
		{"importance", "1", keysForm},
		{"path.data", "db:/data", keysForm}, // without a promise
		{"path.data", "/data", pathForm},
		{"path.data", ":/data", pathForm},
		{"path.data", "db:data", pathForm},
		{"path.data", "db:/data/", pathForm},
		{"path.data", "db:/data/../x", pathForm},
		{"path.data", "db:/a\tb", pathForm},
		{"path.data", "db:/", pathForm},
		{"path", "db:/data", keysForm},
		{"", "1M", keysForm},
	} {
		_, err := Parse(map[string]string{Prefix + one.name: one.value}, Allowed{Targets: true})
		if err == nil || !strings.Contains(err.Error(), one.form) ||
			!strings.Contains(err.Error(), Prefix) {
			t.Errorf("%s: %q: got %v", one.name, one.value, err)
		}
	}
}

// A target delays others, and no capacity bounds it.
func TestTargetsNeedAnOption(t *testing.T) {
	for _, key := range []string{"latency", "write-latency", "fsync-latency"} {
		annotations := map[string]string{Prefix + key + ".data": "1us"}
		if got, err := Parse(annotations, Allowed{RT: true}); err == nil ||
			!strings.Contains(err.Error(), "--allow-targets") {
			t.Errorf("%s: got %v, %v", key, got, err)
		}
	}
}

// A rate that is accepted is a whole value of the daemon's grammar; one out of range is not accepted.
func TestRates(t *testing.T) {
	isRight := func(number uint64, place uint8) bool {
		suffix := []string{"", "K", "M", "G", "T"}[place%5]
		number %= 2e15
		text := fmt.Sprint(number, suffix)
		limit := uint64(1e15) / uint64(suffixes[suffix])
		return isRate(text) == (number >= 1 && number <= limit)
	}
	if err := quick.Check(isRight, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}

// No text makes the parser fail in another way than with an error, and an accepted text has no
// character that would end a line of a policy or begin another word.
func TestAnyText(t *testing.T) {
	isSafe := func(key uint8, volume, value string) bool {
		names := []string{"read-min", "latency", "weight", "path", "class", volume}
		name := Prefix + names[int(key)%len(names)] + "." + volume
		got, err := Parse(map[string]string{name: value}, Allowed{true, true})
		if err != nil {
			return len(err.Error()) < 1500 && !strings.ContainsAny(err.Error(), "\n\x1b\x00")
		}
		for _, p := range got.Promises {
			if strings.ContainsAny(p.Value+p.Volume, "\n\r\t\"'\\/=;") {
				return false
			}
		}
		return true
	}
	if err := quick.Check(isSafe, &quick.Config{MaxCount: 5000}); err != nil {
		t.Error(err)
	}
}
