// Echo answers for pods and says in each answer which pod, ReplicaSet, revision and version it was.
//
// With --server it watches the pods of a cluster whose kubelet is kwok and answers at the address of each Ready one: the
// addresses must be local to the network namespace that it runs in. With --self it is an ordinary container that
// answers as the pod whose name stands in its environment. Both ways one port speaks HTTP/1, HTTP/2 without TLS (and so
// gRPC), TLS, and lines over plain TCP: the first bytes tell which. Datagrams are answered at ports of UDP, with --self
// at the same ports.
package main

import (
	"context"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	server := flag.String("server", "", "URL of the API server whose pods are played")
	ca := flag.String("ca", "", "certificate authority of the API server")
	cert := flag.String("cert", "", "client certificate for the API server")
	key := flag.String("key", "", "key of the client certificate")
	self := flag.Bool("self", false, "answer as the one pod named by the environment")
	ports := flag.String("ports", "8080", "ports to answer on with --self, with commas between")
	grace := flag.Duration("grace", 5*time.Second, "how long --self goes on after SIGTERM, as a preStop hook would")
	control := flag.String("control", ":9100", "address of the counters")
	flag.Parse()

	certificate, err := selfSigned()
	if err != nil {
		log.Fatalf("echo: can't make a certificate: %v", err)
	}
	counters := NewCounters()
	world := NewWorld(counters, certificate)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	go serveControl(*control, counters, world)
	if *self {
		serveSelf(ctx, world, *ports, *grace)
		return
	}
	api, err := NewAPI(*server, *ca, *cert, *key)
	if err != nil {
		log.Fatalf("echo: can't use the API server's credentials: %v", err)
	}
	go api.Follow(ctx, "/apis/apps/v1/replicasets", world.ReplicaSets)
	api.Follow(ctx, "/api/v1/pods", world.Pods)
}

func serveControl(address string, counters *Counters, world *World) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /counts", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, counters.All()) })
	mux.HandleFunc("GET /pods", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, world.Served()) })
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	log.Fatalf("echo: counters: %v", server.ListenAndServe())
}

// serveSelf plays the pod that this process runs in.
func serveSelf(ctx context.Context, world *World, ports string, grace time.Duration) {
	revision, _ := strconv.Atoi(os.Getenv("POD_REVISION"))
	pod := Pod{
		Identity: Identity{
			Namespace: os.Getenv("POD_NAMESPACE"), Pod: os.Getenv("POD_NAME"), Hash: os.Getenv("POD_HASH"),
			Revision: revision, Version: os.Getenv("VERSION"), Address: os.Getenv("POD_IP"),
		},
		Status: statusFrom(os.Getenv("ECHO_STATUS")),
	}
	for _, port := range strings.Split(ports, ",") {
		number, err := strconv.Atoi(strings.TrimSpace(port))
		if err != nil {
			log.Fatalf("echo: --ports %q: %v", ports, err)
		}
		pod.Ports = append(pod.Ports, number)
		pod.Datagrams = append(pod.Datagrams, number)
	}
	served, err := world.serve(pod, "")
	if err != nil {
		log.Fatalf("echo: %v", err)
	}
	<-ctx.Done()
	time.Sleep(grace)
	served.reset()
}
