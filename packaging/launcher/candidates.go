package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// cacheVariable names a directory to be tried before all others.
const cacheVariable = "ROLLOUTS_GWAPI_PLUGIN_CACHE"

// ownPath is the absolute path of this executable. /proc may be absent; then the name that we were called by says it,
// since the controller always calls a plugin by its path.
func ownPath(calledAs string) (string, error) {
	if path, err := os.Readlink("/proc/self/exe"); err == nil {
		return strings.TrimSuffix(path, " (deleted)"), nil
	}
	if !strings.Contains(calledAs, "/") {
		return "", errors.New("/proc is not mounted and the program was not called by its path")
	}
	return filepath.Abs(calledAs)
}

// candidates are the directories that may take the tree, best first. The controller copies a plugin to plugin-bin and
// executes it there, so the first is executable whenever we run at all; it may be full or, outside of the controller,
// read-only.
func candidates(own string, getenv func(string) string) []string {
	temporary := getenv("TMPDIR")
	if temporary == "" {
		temporary = "/tmp"
	}
	found := []string{}
	seen := map[string]bool{}
	for _, directory := range []string{getenv(cacheVariable), filepath.Dir(own), temporary, "/dev/shm"} {
		if directory == "" || !filepath.IsAbs(directory) || seen[directory] {
			continue
		}
		seen[directory] = true
		found = append(found, directory)
	}
	return found
}

// checkMount refuses file systems whose files can't be executed. Their flags are enough: a file system that hides them
// is found out by execve, and the next candidate is tried.
func checkMount(directory string) error {
	var status unix.Statfs_t
	if err := unix.Statfs(directory, &status); err != nil {
		return failf(exitNoDirectory, "%v", err)
	}
	if status.Flags&unix.ST_NOEXEC != 0 {
		return failf(exitNoDirectory, "mounted noexec")
	}
	return nil
}

// checkRoom refuses, before a byte is written, a file system that can't take the tree.
func checkRoom(directory string, needed uint64) error {
	var status unix.Statfs_t
	if err := unix.Statfs(directory, &status); err != nil {
		return failf(exitNoDirectory, "%v", err)
	}
	if status.Flags&unix.ST_RDONLY != 0 {
		return failf(exitNoDirectory, "read-only file system")
	}
	free := status.Bavail * uint64(status.Bsize)
	// A tmpfs without a limit reports no blocks at all.
	if status.Blocks != 0 && free < needed {
		return failf(exitNoDirectory, "%d MiB free, %d MiB needed", free>>20, (needed+(1<<20)-1)>>20)
	}
	return nil
}
