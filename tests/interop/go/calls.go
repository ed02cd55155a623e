package main

import (
	"sort"
	"sync"
	"time"

	"github.com/argoproj/argo-rollouts/pkg/apis/rollouts/v1alpha1"
)

// call is one call of the controller; which fields mean something depends on Method.
type call struct {
	Method       string                       `json:"method"`
	Rollout      v1alpha1.Rollout             `json:"rollout"`
	Weight       int32                        `json:"weight"`
	Destinations []v1alpha1.WeightDestination `json:"destinations"`
	CanaryHash   string                       `json:"canary_hash"`
	StableHash   string                       `json:"stable_hash"`
	HeaderRoute  v1alpha1.SetHeaderRoute      `json:"header_route"`
	MirrorRoute  v1alpha1.SetMirrorRoute      `json:"mirror_route"`
}

func (p *runningPlugin) call(c call) result {
	began := time.Now()
	answer := p.answer(c)
	answer["seconds"] = time.Since(began).Seconds()
	return answer
}

func (p *runningPlugin) answer(c call) result {
	switch c.Method {
	case "InitPlugin":
		return rpcError(p.router.InitPlugin())
	case "UpdateHash":
		return rpcError(p.router.UpdateHash(&c.Rollout, c.CanaryHash, c.StableHash, c.Destinations))
	case "SetWeight":
		return rpcError(p.router.SetWeight(&c.Rollout, c.Weight, c.Destinations))
	case "SetHeaderRoute":
		return rpcError(p.router.SetHeaderRoute(&c.Rollout, &c.HeaderRoute))
	case "SetMirrorRoute":
		return rpcError(p.router.SetMirrorRoute(&c.Rollout, &c.MirrorRoute))
	case "RemoveManagedRoutes":
		return rpcError(p.router.RemoveManagedRoutes(&c.Rollout))
	case "VerifyWeight":
		verified, err := p.router.VerifyWeight(&c.Rollout, c.Weight, c.Destinations)
		return result{"error": err.ErrorString, "verified": verified}
	case "Type":
		return result{"type": p.router.Type(), "error": ""}
	}
	return result{"host_error": "unknown method " + c.Method}
}

// parallel makes the same call count times at once.
func (p *runningPlugin) parallel(c call, count int) result {
	answers := make([]result, count)
	var group sync.WaitGroup
	began := time.Now()
	for index := range count {
		group.Go(func() { answers[index] = p.call(c) })
	}
	group.Wait()
	return result{"answers": answers, "seconds": time.Since(began).Seconds()}
}

// bench makes count calls from some goroutines, the weights in turn, and answers how long they took.
func (p *runningPlugin) bench(c call, weights []int32, count, goroutines int) result {
	times := make([][]float64, goroutines)
	errors := make([]string, goroutines)
	var group sync.WaitGroup
	began := time.Now()
	for worker := range goroutines {
		group.Go(func() {
			mine := c
			for index := range count / goroutines {
				mine.Weight = weights[index%len(weights)]
				answer := p.call(mine)
				times[worker] = append(times[worker], answer["seconds"].(float64))
				if message := answer["error"].(string); message != "" {
					errors[worker] = message
				}
			}
		})
	}
	group.Wait()
	elapsed := time.Since(began).Seconds()
	var all []float64
	first := ""
	for worker := range goroutines {
		all = append(all, times[worker]...)
		first += errors[worker]
	}
	sort.Float64s(all)
	at := func(share float64) float64 { return all[min(len(all)-1, int(share*float64(len(all))))] }
	return result{
		"calls": len(all), "seconds": elapsed, "per_second": float64(len(all)) / elapsed,
		"p50": at(0.50), "p99": at(0.99), "max": all[len(all)-1], "error": first,
	}
}
