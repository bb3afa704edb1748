// SPDX-License-Identifier: LGPL-2.1-or-later

package main

// Records of policies that the plugin has set, in /run/sutro-nri: one for each unit or cgroup, named
// after it.
//
// Sandboxes of one pod that follow each other share a cgroup. The record has the sandbox that the
// policy is for, so the removal of an earlier one changes nothing.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// A Record is a policy that the plugin has set.
type Record struct {
	// The unit or the cgroup.
	Subject string `json:"subject"`
	// The ID of the sandbox.
	Sandbox string `json:"sandbox"`
	// The volume for each key and device, "ReadBandwidthMin /dev/dm-0".
	Set map[string]string `json:"set"`
	// The pod has ended, and the policy is not reset yet.
	Ended bool `json:"ended,omitempty"`
}

// Records is the folder of all of them.
type Records string

func (r Records) file(subject string) string {
	return filepath.Join(string(r), url.PathEscape(subject)+".json")
}

// Read returns the record of a unit or a cgroup, nil without one.
func (r Records) Read(subject string) (*Record, error) {
	return read(r.file(subject))
}

func read(file string) (*Record, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	record := &Record{}
	err = json.Unmarshal(text, record)
	if err == nil && (record.Sandbox == "" || record.Set == nil ||
		Records(filepath.Dir(file)).file(record.Subject) != file) {
		err = errors.New("it has no sandbox or set, or the subject of another file")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: this is no record of a policy (%w); if the pod has ended, remove it",
			file, err)
	}
	return record, nil
}

// Write replaces a record at once.
func (r Records) Write(record *Record) error {
	if err := os.MkdirAll(string(r), 0o755); err != nil {
		return err
	}
	text, err := json.Marshal(record)
	if err != nil {
		return err
	}
	file := r.file(record.Subject)
	if err := os.WriteFile(file+".new", text, 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// Remove removes a record.
func (r Records) Remove(subject string) error {
	return os.Remove(r.file(subject))
}

// All returns all records that can be read.
func (r Records) All() ([]*Record, error) {
	files, err := filepath.Glob(filepath.Join(string(r), "*.json"))
	if err != nil {
		return nil, err
	}
	found, failures := []*Record{}, []error{}
	for _, file := range files {
		record, err := read(file)
		if err != nil {
			failures = append(failures, err)
		} else if record != nil {
			found = append(found, record)
		}
	}
	return found, errors.Join(failures...)
}
