package main

import (
	"sort"
	"sync"
)

// Count is how many requests (lines, messages) one pod got from one cohort over one protocol. It counts what arrived,
// so it also shows mirrored requests, whose answers nobody sees.
type Count struct {
	Identity
	Protocol string `json:"protocol"`
	Cohort   string `json:"cohort"`
	Received int    `json:"received"`
}

type countKey struct{ namespace, pod, protocol, cohort string }

// Counters keep the counts of all pods, also of those that are gone.
type Counters struct {
	mu     sync.Mutex
	counts map[countKey]*Count
}

// NewCounters returns counters at zero.
func NewCounters() *Counters { return &Counters{counts: map[countKey]*Count{}} }

// Add counts one.
func (c *Counters) Add(identity Identity, protocol, cohort string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := countKey{identity.Namespace, identity.Pod, protocol, cohort}
	if c.counts[key] == nil {
		c.counts[key] = &Count{Identity: identity, Protocol: protocol, Cohort: cohort}
	}
	c.counts[key].Received++
}

// All lists the counts, by pod, protocol and cohort.
func (c *Counters) All() []Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := []Count{}
	for _, count := range c.counts {
		list = append(list, *count)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		return a.Namespace+"/"+a.Pod+"/"+a.Protocol+"/"+a.Cohort < b.Namespace+"/"+b.Pod+"/"+b.Protocol+"/"+b.Cohort
	})
	return list
}
