// Command launcher is the outer shell of the one-file plugin: it carries a relocatable CPython tree, unpacks it once
// and becomes it.
//
// The plan, in order:
//
//  1. Find the own file (its folder is the first place for the tree, and its path names the plugin).
//  2. Walk the candidate directories (candidates.go); in the first that can hold and execute the tree, take the one
//     lock, unpack if the tree is not there, whole (trust.go), sweep older trees that no process uses (tree.go).
//  3. execve the bundled loader (exec.go): same pid, one process, nothing left behind but the tree.
//
// What must always hold: standard output is never written to except for a handshake line; no way out is silent; the
// exit codes below are the interface. Where the host started us as its plugin and no tree can be had, the cause is
// told over the plugin protocol (responder.go), since the host shows the death of a plugin only as "exec: Stdout
// already set".
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// Exit codes, sysexits(3) where one fits.
const (
	exitDamaged      = 70  // EX_SOFTWARE: the carried tree can't be read
	exitNoDirectory  = 73  // EX_CANTCREAT: no directory can hold and execute the tree
	exitLockTimeout  = 75  // EX_TEMPFAIL: another process held the unpacking lock for too long
	exitNotRunnable  = 126 // as a shell's "found, but can't be executed"
	exitBrokenPlugin = 1   // the unpacked program reported that it can't run
)

// failureVariable is set by the bootstrap inside the tree when its own imports fail: it executes this launcher again,
// which then tells the host.
const failureVariable = "ROLLOUTS_GWAPI_PLUGIN_FAILURE"

// failure is a cause with the exit code that goes with it.
type failure struct {
	code int
	text string
}

func (f *failure) Error() string { return f.text }

func failf(code int, format string, arguments ...any) *failure {
	return &failure{code: code, text: fmt.Sprintf(format, arguments...)}
}

func main() {
	if directory, asked := installAsked(os.Args[1:]); asked {
		if err := install(directory, os.Stdout); err != nil {
			tell(os.Stderr, false, err.Error())
			os.Exit(codeOf(err))
		}
		return
	}
	err := run()
	code := codeOf(err)
	host := hostFromEnvironment(os.Getenv, os.Args[1:])
	tell(os.Stderr, host.startedUs, err.Error())
	if host.canBeAnswered() {
		if problem := respond(host, err.Error()); problem != nil {
			tell(os.Stderr, true, "the host could not be told: "+problem.Error())
		}
	}
	os.Exit(code)
}

// installAsked leaves flags, as `install --help`, to the command line in the tree.
func installAsked(arguments []string) (string, bool) {
	if len(arguments) != 2 || arguments[0] != "install" || strings.HasPrefix(arguments[1], "-") {
		return "", false
	}
	return arguments[1], true
}

func codeOf(err error) int {
	var known *failure
	if errors.As(err, &known) {
		return known.code
	}
	return exitNotRunnable
}

// run returns only if the tree could not be entered.
func run() error {
	own, err := ownPath(os.Args[0])
	if err != nil {
		return failf(exitNotRunnable, "the path of this executable can't be found: %v", err)
	}
	tree := carriedTree()
	if cause := os.Getenv(failureVariable); cause != "" {
		forgetBoots(own, tree)
		return failf(exitBrokenPlugin, "the plugin can't run: %s", cause)
	}
	var problems []string
	worst := exitNoDirectory
	for _, directory := range candidates(own, os.Getenv) {
		root, use, err := settle(directory, tree)
		if err == nil {
			// Returns only on failure; the next directory may be executable where this one is not.
			err = enter(root, own)
			forgetBoot(root)
			use.close()
			worst = exitNotRunnable
		}
		var known *failure
		if errors.As(err, &known) && known.code == exitDamaged {
			return known // no other directory would help
		}
		if known != nil && known.code != exitNoDirectory {
			worst = known.code
		}
		problems = append(problems, fmt.Sprintf("%s: %v", directory, err))
	}
	return failf(worst, "no directory can hold and execute the %d MiB that this plugin unpacks once: %s. "+
		"Mount an emptyDir of at least %d MiB where the executable lies (plugin-bin), or name a writable, executable "+
		"directory in %s", tree.mebibytes(), strings.Join(problems, "; "), tree.neededMebibytes(), cacheVariable)
}

// tell writes one line; the host reads the level from a plugin's line start.
func tell(out *os.File, asPlugin bool, text string) {
	level := ""
	if asPlugin {
		level = "[ERROR] "
	}
	fmt.Fprintf(out, "%srollouts-gwapi-plugin: %s\n", level, strings.ReplaceAll(text, "\n", " "))
}
