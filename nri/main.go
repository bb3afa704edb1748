// SPDX-License-Identifier: LGPL-2.1-or-later

// sutro-nri: guarantees of pods for containerd and other runtimes with NRI.
//
//	sutro-nri plugin     policies of pods, from their annotations
//	sutro-nri publish    capacities of the node, at the API server
//	sutro-nri capacity   the same as a JSON patch
//	sutro-nri reset      no policies of pods, before the package is removed
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/containerd/nri/pkg/stub"
)

// Version is set by the build.
var Version = "unknown"

const (
	usage = `usage: sutro-nri plugin [--socket PATH] [--records FOLDER] [--pods FOLDER]
                        [--allow-rt] [--allow-targets]
       sutro-nri publish --node NAME [--account FOLDER] [--name NAME=PATH]...
       sutro-nri capacity [--name NAME=PATH]...
       sutro-nri reset [--records FOLDER]
       sutro-nri --version
See sutro-nri(8).
`
	reconnectPeriod = time.Second
	// A runtime that does not answer a registration is given up.
	startLimit = time.Minute
)

// connected serves the runtime until the connection ends.
func connected(ctx context.Context, plugin *Plugin, socket string) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	closed := make(chan struct{})
	one, err := stub.New(plugin, stub.WithPluginName("sutro"), stub.WithPluginIdx("50"),
		stub.WithConnection(conn), stub.WithOnClose(func() { close(closed) }))
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	go func() { started <- one.Start(ctx) }()
	select {
	case err = <-started:
	case <-time.After(startLimit):
		// The stub cannot be interrupted here.
		log.Fatal("the runtime did not answer the registration")
	}
	if err != nil {
		return err
	}
	select {
	case <-closed:
		return errors.New("the runtime closed the connection")
	case <-ctx.Done():
		one.Stop()
		return nil
	}
}

func servePlugin(ctx context.Context, plugin *Plugin, socket string) {
	go plugin.Retry(ctx)
	last := ""
	for ctx.Err() == nil {
		err := connected(ctx, plugin, socket)
		if err != nil && err.Error() != last {
			last = err.Error()
			log.Printf("%s: %v; trying again", socket, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(reconnectPeriod):
		}
	}
}

func run(ctx context.Context, verb string, words []string) error {
	flags := flag.NewFlagSet("sutro-nri "+verb, flag.ExitOnError)
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	socket := flags.String("socket", "/var/run/nri/nri.sock", "")
	records := flags.String("records", "/run/sutro-nri", "")
	pods := flags.String("pods", "/var/lib/kubelet/pods", "")
	allowsRT := flags.Bool("allow-rt", false, "")
	allowsTargets := flags.Bool("allow-targets", false, "")
	node := flags.String("node", os.Getenv("NODE_NAME"), "")
	account := flags.String("account", "/var/run/secrets/kubernetes.io/serviceaccount", "")
	names := Names{}
	flags.Var(names, "name", "")
	if err := flags.Parse(words); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	switch verb {
	case "plugin":
		host := Host{Pods: *pods, Mounts: "/proc/1/mountinfo"}
		allowed := Allowed{RT: *allowsRT, Targets: *allowsTargets}
		servePlugin(ctx, NewPlugin(Bus{}, Records(*records), host, allowed), *socket)
		return nil
	case "publish":
		if *node == "" {
			return errors.New("no name of the node: set NODE_NAME or --node")
		}
		api, err := InCluster(*account)
		if err == nil {
			NewPublisher(api, Bus{}, *node, names).Run(ctx)
		}
		return err
	case "capacity":
		return printCapacity(ctx, Bus{}, names)
	case "reset":
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		return NewPlugin(Bus{}, Records(*records), Host{}, Allowed{}).Reset(ctx)
	case "--help", "-h":
		fmt.Print(usage)
		return nil
	case "--version":
		fmt.Printf("sutro-nri %s\n", Version)
		return nil
	}
	return fmt.Errorf("unknown verb %q; there are plugin, publish, capacity and reset", verb)
}

func printCapacity(ctx context.Context, daemon Daemon, names Names) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resources, unnamed, err := Resources(ctx, daemon, names)
	if err != nil {
		return err
	}
	for _, message := range unnamed {
		fmt.Fprintf(os.Stderr, "sutro-nri: left out: %s\n", message)
	}
	switch {
	case len(resources) == 0 && len(unnamed) == 0:
		return errors.New("no capacity is declared; see [Capacity] in sutrod.conf(5)")
	case len(resources) == 0:
		return errors.New("no resource is left: no declared path has a name")
	}
	text, err := json.MarshalIndent(Patch(nil, resources), "", "  ")
	if err != nil {
		return err
	}
	fmt.Printf("%s\n", text)
	return nil
}

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintf(os.Stderr, "sutro-nri: %v\n", err)
		os.Exit(1)
	}
}
