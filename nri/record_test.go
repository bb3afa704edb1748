// SPDX-License-Identifier: LGPL-2.1-or-later

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The error has the name of the file and a remedy, and the other records are read.
func TestCorruptRecord(t *testing.T) {
	good := Record{Subject: "/a.slice", Sandbox: "1", Set: map[string]string{}}
	for _, text := range []string{
		"", "x", "{", "[]", "null", "{}", `"x"`, `{"subject": 3}`, `{"subject": "/b.slice"}`,
		`{"subject": "/b.slice", "sandbox": "1"}`,
		`{"subject": "/b.slice", "sandbox": "1", "set": null}`,
		`{"subject": "/b.slice", "sandbox": "1", "set": {"x": 3}}`,
		`{"subject": "/b.slice", "sandbox": "", "set": {}}`,
		`{"subject": "/c.slice", "sandbox": "1", "set": {}}`,
		strings.Repeat("[", 100000),
	} {
		records := Records(t.TempDir())
		if err := records.Write(&good); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(string(records), "%2Fb.slice.json")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		all, failure := records.All()
		if len(all) != 1 || all[0].Subject != good.Subject {
			t.Errorf("%.40q: the other record is not read: %v", text, all)
		}
		record, err := records.Read("/b.slice")
		if record != nil {
			t.Errorf("%.40q is a record: %v", text, record)
		}
		for _, one := range []error{failure, err} {
			if one == nil || !strings.HasPrefix(one.Error(), file+": this is no record of a policy") ||
				!strings.HasSuffix(one.Error(), "if the pod has ended, remove it") {
				t.Errorf("%.40q: the error is %v", text, one)
			}
		}
	}
}
