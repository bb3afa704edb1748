// SPDX-License-Identifier: LGPL-2.1-or-later

package main

// A fake API server: it replays testdata/node.json, a node in the form of the API, and applies JSON
// patches of its status as RFC 6902 has it. It is no API server: nothing here shows that a real one
// grants the request.

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const token = "eyJ.fake.token"

type fakeAPI struct {
	mutex    sync.Mutex
	node     map[string]any
	requests []string
}

func (f *fakeAPI) capacity() map[string]any {
	return f.node["status"].(map[string]any)["capacity"].(map[string]any)
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.requests = append(f.requests, r.Method+" "+r.URL.Path)
	refuse := func(code int, text string) {
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":%d}`,
			text, code)
	}
	const node = "/api/v1/nodes/worker-1"
	switch {
	case r.Header.Get("Authorization") != "Bearer "+token:
		refuse(http.StatusUnauthorized, "Unauthorized")
		return
	case r.Method == http.MethodGet && r.URL.Path == node:
	case r.Method == http.MethodPatch && r.URL.Path == node+"/status":
		if r.Header.Get("Content-Type") != "application/json-patch+json" {
			refuse(http.StatusUnsupportedMediaType, "the body of the request was in an unknown format")
			return
		}
		if text := f.patch(r); text != "" {
			refuse(http.StatusUnprocessableEntity, text)
			return
		}
	default:
		refuse(http.StatusNotFound, fmt.Sprintf("nodes %q not found", filepath.Base(r.URL.Path)))
		return
	}
	_ = json.NewEncoder(w).Encode(f.node)
}

// canonical returns an amount in the form in which the API server keeps it: 5000 is 5k.
func canonical(amount string) string {
	suffix := ""
	for _, next := range "kMGTPE" {
		rest, isWhole := strings.CutSuffix(amount, "000")
		if !isWhole || rest == "" {
			break
		}
		amount, suffix = rest, string(next)
	}
	return amount + suffix
}

func (f *fakeAPI) patch(r *http.Request) string {
	operations := []map[string]any{}
	if err := json.NewDecoder(r.Body).Decode(&operations); err != nil {
		return err.Error()
	}
	changed := maps.Clone(f.capacity())
	for _, one := range operations {
		path, _ := one["path"].(string)
		name, isCapacity := strings.CutPrefix(path, "/status/capacity/")
		if !isCapacity || strings.Contains(name, "/") {
			return "a path of something else: " + path
		}
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		value, isText := one["value"].(string)
		_, isThere := changed[name]
		switch {
		case one["op"] == "add" && isText:
			changed[name] = canonical(value)
		case one["op"] == "remove" && isThere:
			delete(changed, name)
		default:
			return fmt.Sprintf("cannot apply %v", one)
		}
	}
	f.node["status"].(map[string]any)["capacity"] = changed
	return ""
}

// serve starts a fake and returns it with a client that has a service account for it.
func serve(t *testing.T) (*fakeAPI, *API, string) {
	t.Helper()
	text, err := os.ReadFile("testdata/node.json")
	if err != nil {
		t.Fatal(err)
	}
	fake := &fakeAPI{}
	if err := json.Unmarshal(text, &fake.node); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(fake)
	t.Cleanup(server.Close)
	folder := t.TempDir()
	authority := pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, content := range map[string]string{"ca.crt": string(authority), "token": token + "\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	where, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", where.Hostname())
	t.Setenv("KUBERNETES_SERVICE_PORT", where.Port())
	api, err := InCluster(folder)
	if err != nil {
		t.Fatal(err)
	}
	return fake, api, folder
}

func TestPublish(t *testing.T) {
	fake, api, _ := serve(t)
	before := maps.Clone(fake.capacity())
	publish := func(changes int, wanted map[string]uint64) {
		t.Helper()
		if got, err := api.Publish(background, "worker-1", wanted); err != nil || got != changes {
			t.Errorf("%d changes, want %d; %v", got, changes, err)
		}
		for name, amount := range wanted {
			if want := canonical(fmt.Sprint(amount)); fake.capacity()[name] != want {
				t.Errorf("%s is %v, want %s", name, fake.capacity()[name], want)
			}
		}
	}
	wanted := map[string]uint64{"io.sutro/read.vg.scratch": 400, "io.sutro/read-iops.vg.scratch": 120_000}
	// The node of the file has another Sutro resource of an earlier configuration.
	publish(3, wanted)
	requests := len(fake.requests)
	publish(0, wanted)
	if len(fake.requests) != requests+1 {
		t.Errorf("without a change: %v", fake.requests[requests:])
	}
	publish(2, map[string]uint64{"io.sutro/read.vg.scratch": 350})
	publish(1, nil)
	delete(before, "io.sutro/read.old")
	if !maps.Equal(before, fake.capacity()) {
		t.Errorf("resources of others changed: %v", fake.capacity())
	}
}

// The path of one volume blocks no other, and its message is no flood of the log.
func TestPathsWithoutANameOfAResource(t *testing.T) {
	fake, api, _ := serve(t)
	daemon := newFakeDaemon()
	row := func(path string, capacity uint64) Capacity {
		return Capacity{path, "/dev/dm-0", "ReadIOPSMin", capacity, 0}
	}
	unnamed, good := Capacity{"/", "/dev/dm-0", "WriteIOPSMin", 9, 0}, row("/srv/web", 30)
	// The second row of a path is another kind of capacity.
	daemon.capacities = []Capacity{row("/", 10), unnamed, row("/dev/srv/db", 20), good, row("/srv/db", 40)}
	publisher := NewPublisher(api, daemon, "worker-1", Names{})
	lines := logged(t)
	publish := func(messages ...string) {
		t.Helper()
		publisher.publish(background)
		got := lines()
		if len(got) != len(messages) {
			t.Fatalf("got %q, want %q", got, messages)
		}
		for i, want := range messages {
			if !strings.Contains(got[i], want) {
				t.Errorf("got %q, want %q", got[i], want)
			}
		}
		names := []string{}
		for name, amount := range fake.capacity() {
			if strings.HasPrefix(name, Prefix) {
				names = append(names, fmt.Sprint(name, " ", amount))
			}
		}
		if len(names) != 1 || names[0] != Prefix+"read-iops.srv.web 30" {
			t.Errorf("published are %v", names)
		}
	}
	rootMessage, pairMessage := "/ gives no name", "/dev/srv/db and /srv/db give one name"
	publish(rootMessage, pairMessage, "2 resources changed")
	publish("")
	// A mistake that comes back is a new one.
	declared := daemon.capacities
	daemon.capacities = []Capacity{good}
	publish("")
	daemon.capacities = declared
	publish(rootMessage, pairMessage)
	publish("")
}

// A day without the API server is no flood of the log.
func TestPublishFailuresAreLoggedOnce(t *testing.T) {
	_, api, folder := serve(t)
	daemon := newFakeDaemon()
	publisher := NewPublisher(api, daemon, "worker-1", Names{})
	lines := logged(t)
	publish := func(messages ...string) {
		t.Helper()
		for _, want := range messages {
			publisher.publish(background)
			got := lines()
			if len(got) != 1 || !strings.Contains(got[0], want) || (want == "" && got[0] != "") {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
	account := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, "token"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	publish("resources changed", "")
	account("old")
	publish("Unauthorized", "", "")
	daemon.isDown(ErrNotRunning)
	publish("sutrod is not running", "")
	daemon.isDown(nil)
	publish("Unauthorized", "")
	account(token)
	publish("published again", "", "")
}

func TestPublishFailures(t *testing.T) {
	_, api, folder := serve(t)
	if _, err := api.Publish(background, "worker-2", nil); err == nil ||
		!strings.Contains(err.Error(), "not found") {
		t.Errorf("another node: %v", err)
	}
	if err := os.WriteFile(filepath.Join(folder, "token"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := api.Publish(background, "worker-1", nil); err == nil ||
		!strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("a wrong token: %v", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := InCluster(folder); err == nil || !strings.Contains(err.Error(), "capacity") {
		t.Errorf("outside of a cluster: %v", err)
	}
}
