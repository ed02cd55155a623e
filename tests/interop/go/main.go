// Command host plays the controller's side of the plugin protocol for tests, with the code that the controller uses:
// go-plugin's client and the RPC package of Argo Rollouts.
//
// It reads commands from standard input, one JSON object each, and answers each with one JSON line on standard output.
// With the argument `reference` it is a plugin itself, on Go's own server.
//
// Its environment is the plugin's, as in the controller. What go-plugin and yamux complain about goes to standard error.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/argoproj/argo-rollouts/utils/plugin/types"
)

// command is one line of input; which fields mean something depends on Do.
type command struct {
	Do       string      `json:"do"`
	Start    startConfig `json:"start"`
	Call     call        `json:"call"`
	Count    int         `json:"count"`
	Parallel int         `json:"parallel"`
	Weights  []int32     `json:"weights"`
	ID       string      `json:"id"`
	Method   string      `json:"method"`
	Name     string      `json:"name"`
}

type result map[string]any

// host is the state between commands.
type host struct {
	plugin     *runningPlugin
	background map[string]chan result
	lock       sync.Mutex
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "reference" {
		serveReference()
		return
	}
	h := &host{background: map[string]chan result{}}
	input := json.NewDecoder(bufio.NewReaderSize(os.Stdin, 1<<20))
	output := json.NewEncoder(os.Stdout)
	for {
		var c command
		if err := input.Decode(&c); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			fail(fmt.Errorf("command: %w", err))
		}
		if err := output.Encode(h.run(c)); err != nil {
			fail(err)
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "host:", err)
	os.Exit(1)
}

// run does one command. An error of the host itself (not one that the plugin reports) is under "host_error".
func (h *host) run(c command) result {
	if c.Do == "start" {
		plugin, started := start(c.Start)
		h.plugin = plugin
		return started
	}
	if h.plugin == nil {
		return result{"host_error": "no plugin was started"}
	}
	switch c.Do {
	case "call":
		return h.plugin.call(c.Call)
	case "ping":
		return h.plugin.ping()
	case "background":
		return h.runBackground(c)
	case "await":
		h.lock.Lock()
		done := h.background[c.ID]
		delete(h.background, c.ID)
		h.lock.Unlock()
		return <-done
	case "parallel":
		return h.plugin.parallel(c.Call, c.Count)
	case "bench":
		return h.plugin.bench(c.Call, c.Weights, c.Count, c.Parallel)
	case "raw":
		return h.plugin.raw(c.Method)
	case "dispense":
		return h.plugin.dispense(c.Name)
	case "reattach":
		return h.plugin.reattach(c.Call)
	case "logs":
		return result{"logs": h.plugin.logs.lines(), "stderr": h.plugin.stderr.lines()}
	case "exited":
		return result{"exited": h.plugin.client.Exited()}
	case "kill":
		return h.plugin.kill()
	}
	return result{"host_error": "unknown command " + c.Do}
}

// runBackground starts a command and answers at once; "await" with the same id answers its result.
func (h *host) runBackground(c command) result {
	done := make(chan result, 1)
	h.lock.Lock()
	h.background[c.ID] = done
	h.lock.Unlock()
	go func() {
		if c.Count > 0 {
			done <- h.plugin.parallel(c.Call, c.Count)
		} else {
			done <- h.plugin.call(c.Call)
		}
	}()
	return result{}
}

func rpcError(err types.RpcError) result {
	return result{"error": err.ErrorString}
}
