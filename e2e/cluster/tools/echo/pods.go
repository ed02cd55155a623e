package main

import (
	"crypto/tls"
	"encoding/json"
	"log"
	"net"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"sync"
)

// annotation of a ReplicaSet that holds its revision
const revisionAnnotation = "rollout.argoproj.io/revision"

// annotation of a pod that is not to be Ready if it is "false" (manifests/kwok.yaml)
const readyAnnotation = "e2e/ready"

// Identity is what every answer says.
type Identity struct {
	Namespace  string `json:"namespace"`
	Pod        string `json:"pod"`
	ReplicaSet string `json:"replicaSet"`
	Hash       string `json:"hash"`
	Revision   int    `json:"revision"`
	Version    string `json:"version"`
	Address    string `json:"address"`
}

// Pod is one address with the ports that are open at it.
type Pod struct {
	Identity
	Ports     []int
	Datagrams []int // UDP ports
	Status    int   // what HTTP answers: 200, or what the pod's environment asks for (a broken release)
}

// World is the set of pods that are answered for.
type World struct {
	counters    *Counters
	certificate tls.Certificate
	mu          sync.Mutex
	served      map[string]*servedPod // by namespace/name
	revisions   map[string]int        // of ReplicaSets, by namespace/name
}

// NewWorld returns an empty set.
func NewWorld(counters *Counters, certificate tls.Certificate) *World {
	return &World{
		counters: counters, certificate: certificate,
		served: map[string]*servedPod{}, revisions: map[string]int{},
	}
}

// Served lists the pods that are answered for, by namespace and name.
func (w *World) Served() []Identity {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := []Identity{}
	for _, pod := range w.served {
		list = append(list, pod.Identity)
	}
	sort.Slice(list, func(i, j int) bool {
		return list[i].Namespace+"/"+list[i].Pod < list[j].Namespace+"/"+list[j].Pod
	})
	return list
}

// revision is looked up at each answer: the controller numbers a ReplicaSet anew when it is rolled back to.
func (w *World) revision(identity Identity) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if found, ok := w.revisions[identity.Namespace+"/"+identity.ReplicaSet]; ok {
		return found
	}
	return identity.Revision
}

// ReplicaSets takes the state of all ReplicaSets.
func (w *World) ReplicaSets(objects map[string]json.RawMessage) {
	revisions := map[string]int{}
	for key, raw := range objects {
		var set struct{ Metadata objectMeta }
		if json.Unmarshal(raw, &set) == nil {
			revisions[key], _ = strconv.Atoi(set.Metadata.Annotations[revisionAnnotation])
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revisions = revisions
}

// Pods takes the state of all pods: it opens the ports of those that became Ready and resets those of the others.
func (w *World) Pods(objects map[string]json.RawMessage) {
	wanted := map[string]Pod{}
	for key, raw := range objects {
		if pod, ready := readPod(raw); ready {
			wanted[key] = pod
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, served := range w.served {
		if pod, ok := wanted[key]; !ok || !reflect.DeepEqual(pod, served.Pod) {
			served.reset()
			delete(w.served, key)
		}
	}
	for key, pod := range wanted {
		if _, ok := w.served[key]; ok {
			continue
		}
		served, err := w.serve(pod, pod.Address)
		if err != nil {
			log.Printf("echo: %s: %v", key, err)
			continue
		}
		w.served[key] = served
	}
}

// serve opens the pod's ports at the address ("" = every address).
func (w *World) serve(pod Pod, address string) (*servedPod, error) {
	served := newServedPod(pod, w)
	for _, port := range pod.Ports {
		listener, err := net.Listen("tcp4", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			served.reset()
			return nil, err
		}
		served.accept(listener)
	}
	for _, port := range pod.Datagrams {
		socket, err := net.ListenPacket("udp4", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			served.reset()
			return nil, err
		}
		served.receive(socket)
	}
	return served, nil
}

type objectMeta struct {
	Namespace, Name     string
	Labels, Annotations map[string]string
	OwnerReferences     []struct{ Kind, Name string }
}

type podObject struct {
	Metadata objectMeta
	Spec     struct {
		Containers []struct {
			Image string
			Env   []struct{ Name, Value string }
			Ports []struct {
				ContainerPort int
				Protocol      string
			}
		}
	}
	Status struct {
		PodIP      string
		Conditions []struct{ Type, Status string }
	}
}

// readPod returns the pod and whether it is Ready. A pod that is being deleted stays Ready until it is gone: that is
// its grace period.
func readPod(raw json.RawMessage) (Pod, bool) {
	var object podObject
	if err := json.Unmarshal(raw, &object); err != nil {
		return Pod{}, false
	}
	// A program listens before its pod is Ready, which it is half a second after it got its address; unless it is told
	// never to be.
	ready := object.Metadata.Annotations[readyAnnotation] != "false"
	for _, condition := range object.Status.Conditions {
		ready = ready || condition.Type == "Ready" && condition.Status == "True"
	}
	if !ready || object.Status.PodIP == "" {
		return Pod{}, false
	}
	pod := Pod{Status: 200, Identity: Identity{
		Namespace: object.Metadata.Namespace, Pod: object.Metadata.Name, Address: object.Status.PodIP,
		Hash: object.Metadata.Labels["rollouts-pod-template-hash"],
	}}
	for _, owner := range object.Metadata.OwnerReferences {
		if owner.Kind == "ReplicaSet" {
			pod.ReplicaSet = owner.Name
		}
	}
	readContainers(object, &pod)
	return pod, true
}

// readContainers fills in ports and version: the environment variable VERSION, else the first image's tag.
func readContainers(object podObject, pod *Pod) {
	for _, container := range object.Spec.Containers {
		if pod.Version == "" {
			pod.Version = container.Image[strings.LastIndexAny(container.Image, ":/")+1:]
		}
		for _, variable := range container.Env {
			switch variable.Name {
			case "VERSION":
				pod.Version = variable.Value
			case "ECHO_STATUS":
				pod.Status = statusFrom(variable.Value)
			}
		}
		for _, port := range container.Ports {
			switch port.Protocol {
			case "", "TCP":
				pod.Ports = append(pod.Ports, port.ContainerPort)
			case "UDP":
				pod.Datagrams = append(pod.Datagrams, port.ContainerPort)
			}
		}
	}
}

func statusFrom(text string) int {
	if status, err := strconv.Atoi(text); err == nil && status >= 200 && status < 600 {
		return status
	}
	return 200
}
