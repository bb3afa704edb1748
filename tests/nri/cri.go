// SPDX-License-Identifier: LGPL-2.1-or-later

// A client of a container runtime, for the guest: Debian has no crictl.
//
//	cri METHOD JSON
//
// It calls a method of the runtime with a request in JSON, with the names of the fields in the protocol
// and numbers for enumerations, and prints the answer in JSON:
//
//	cri StopPodSandbox '{"pod_sandbox_id": "..."}'
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// An emulated CPU may take minutes for a container.
const limit = 10 * time.Minute

type method struct{ request, answer any }

var methods = map[string]method{
	"Version":          {&cri.VersionRequest{}, &cri.VersionResponse{}},
	"RunPodSandbox":    {&cri.RunPodSandboxRequest{}, &cri.RunPodSandboxResponse{}},
	"StopPodSandbox":   {&cri.StopPodSandboxRequest{}, &cri.StopPodSandboxResponse{}},
	"RemovePodSandbox": {&cri.RemovePodSandboxRequest{}, &cri.RemovePodSandboxResponse{}},
	"ListPodSandbox":   {&cri.ListPodSandboxRequest{}, &cri.ListPodSandboxResponse{}},
	"CreateContainer":  {&cri.CreateContainerRequest{}, &cri.CreateContainerResponse{}},
	"StartContainer":   {&cri.StartContainerRequest{}, &cri.StartContainerResponse{}},
	"ContainerStatus":  {&cri.ContainerStatusRequest{}, &cri.ContainerStatusResponse{}},
}

func call(name, text string) error {
	one, isKnown := methods[name]
	if !isKnown {
		return fmt.Errorf("unknown method %q", name)
	}
	if err := json.Unmarshal([]byte(text), one.request); err != nil {
		return err
	}
	conn, err := grpc.NewClient("unix:///run/containerd/containerd.sock",
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err = conn.Invoke(ctx, "/runtime.v1.RuntimeService/"+name, one.request, one.answer)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(one.answer)
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: cri METHOD JSON")
		os.Exit(2)
	}
	if err := call(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "cri: %v\n", err)
		os.Exit(1)
	}
}
