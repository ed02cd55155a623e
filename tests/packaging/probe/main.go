// Command probe stands in the tree where the dynamic loader stands: it tells how it was executed.
//
// Behind the launcher's own arguments, which end with main.pyc: `tell` prints a JSON object, `exit N` ends with that
// code, `wait` prints and waits for a signal, `fail` does as the bootstrap does when the program can't be imported.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	arguments := os.Args
	for index, argument := range arguments {
		if strings.HasSuffix(argument, "/main.pyc") {
			arguments = arguments[index+1:]
			break
		}
	}
	if len(arguments) > 0 && arguments[0] == "exit" {
		code, _ := strconv.Atoi(arguments[1])
		os.Exit(code)
	}
	if len(arguments) > 0 && arguments[0] == "fail" {
		launcher := os.Getenv("ROLLOUTS_GWAPI_PLUGIN_EXECUTABLE")
		environment := append(os.Environ(), "ROLLOUTS_GWAPI_PLUGIN_FAILURE=ImportError: half a tree")
		fmt.Fprintln(os.Stderr, syscall.Exec(launcher, []string{launcher}, environment))
		os.Exit(99)
	}
	tell()
	if len(arguments) > 0 && arguments[0] == "wait" {
		time.Sleep(time.Hour)
	}
}

func tell() {
	name, _ := os.ReadFile("/proc/self/comm")
	descriptors := map[string]string{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		// The Go runtime opens its own.
		own := strings.HasPrefix(target, "anon_inode") || strings.HasPrefix(target, "/sys/fs/cgroup") || target == "/proc"
		if number, _ := strconv.Atoi(entry.Name()); err == nil && number > 2 && !own {
			descriptors[entry.Name()] = target
		}
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{
		"pid": os.Getpid(), "arguments": os.Args, "environment": os.Environ(),
		"name": strings.TrimSpace(string(name)), "descriptors": descriptors,
	})
}
