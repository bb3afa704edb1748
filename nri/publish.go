// SPDX-License-Identifier: LGPL-2.1-or-later

package main

// The API server, as far as the capacity of a node needs it.
//
//	GET   /api/v1/nodes/NODE
//	PATCH /api/v1/nodes/NODE/status   Content-Type: application/json-patch+json
//
// The kubelet keeps extended resources that it does not manage, and makes them allocatable.

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	publishPeriod  = 30 * time.Second
	requestTimeout = 10 * time.Second
	// A node with many images has some 100 kB.
	longestAnswer = 16 << 20
)

// API is an API server and the credentials for it.
type API struct {
	base, folder string
	client       *http.Client
}

// InCluster returns the API server of a pod; folder has the files of its service account.
func InCluster(folder string) (*API, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("no API server: KUBERNETES_SERVICE_HOST and _PORT are set in pods only; " +
			"elsewhere, sutro-nri capacity prints the patch")
	}
	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s/ca.crt has no certificate", folder)
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	return &API{"https://" + net.JoinHostPort(host, port), folder,
		&http.Client{Transport: transport, Timeout: requestTimeout}}, nil
}

func (a *API) do(ctx context.Context, method, path, kind string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	// The kubelet replaces the token now and then.
	token, err := os.ReadFile(filepath.Join(a.folder, "token"))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", kind)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	said, err := io.ReadAll(io.LimitReader(response.Body, longestAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		status := struct{ Message string }{}
		if json.Unmarshal(said, &status) != nil || status.Message == "" {
			status.Message = response.Status
		}
		return fmt.Errorf("%s %s: %s", method, path, status.Message)
	}
	return json.Unmarshal(said, answer)
}

// Publish changes the resources of a node to the given ones; it returns the number of changes.
func (a *API) Publish(ctx context.Context, node string, wanted map[string]uint64) (int, error) {
	path := "/api/v1/nodes/" + url.PathEscape(node)
	answer := struct {
		Status struct{ Capacity map[string]string }
	}{}
	if err := a.do(ctx, http.MethodGet, path, "", nil, &answer); err != nil {
		return 0, err
	}
	operations := Patch(answer.Status.Capacity, wanted)
	if len(operations) == 0 {
		return 0, nil
	}
	return len(operations), a.do(ctx, http.MethodPatch, path+"/status",
		"application/json-patch+json", operations, &answer)
}

// A Publisher publishes the resources of a node again and again.
type Publisher struct {
	api    *API
	daemon Daemon
	node   string
	names  Names
	// The paths that are left out, as they were logged.
	unnamed []string
	// The failure of the last publication, as it was logged, or "".
	failure string
}

// NewPublisher returns a publisher for a node, with the chosen names of paths.
func NewPublisher(api *API, daemon Daemon, node string, names Names) *Publisher {
	return &Publisher{api: api, daemon: daemon, node: node, names: names}
}

// Run publishes the resources until the context ends; a failure is logged once, and its end.
func (p *Publisher) Run(ctx context.Context) {
	for {
		p.publish(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(publishPeriod):
		}
	}
}

func (p *Publisher) publish(ctx context.Context) {
	wanted, unnamed, err := Resources(ctx, p.daemon, p.names)
	changes := 0
	if err == nil {
		p.logUnnamed(unnamed)
		changes, err = p.api.Publish(ctx, p.node, wanted)
	}
	p.logFailure(err)
	if err == nil && changes > 0 {
		log.Printf("node %s: %d resources changed", p.node, changes)
	}
}

// logFailure logs a failure if it is another one than before, and the end of one.
func (p *Publisher) logFailure(err error) {
	failure := ""
	if err != nil {
		failure = err.Error()
	}
	switch {
	case failure == p.failure:
	case failure != "":
		log.Printf("node %s: %s", p.node, failure)
	default:
		log.Printf("node %s: its resources are published again", p.node)
	}
	p.failure = failure
}

// logUnnamed logs each path that is left out since this publication.
func (p *Publisher) logUnnamed(unnamed []string) {
	for _, message := range unnamed {
		if !slices.Contains(p.unnamed, message) {
			log.Printf("node %s: left out: %s", p.node, message)
		}
	}
	p.unnamed = unnamed
}
