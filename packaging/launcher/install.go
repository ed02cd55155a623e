package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// `install DIR` copies this executable into a directory: the init-container way of bringing it to the controller. It is
// done here, and not in the tree, since an init container has no place to unpack the tree, and needs none.

// installedName is the file's name in the directory, whatever the copied file is called.
const installedName = "rollouts-gwapi-plugin"

// install writes the result for people: the digest that the controller's configuration can pin, and the path.
func install(directory string, out io.Writer) error {
	if directory == "" { // an unset variable in a manifest, not the current folder
		return failf(exitNoDirectory, "install needs the directory to copy to, and was given an empty name")
	}
	own, err := os.Open("/proc/self/exe")
	if err != nil {
		path, lost := ownPath(os.Args[0])
		if lost != nil {
			return failf(exitNotRunnable, "the path of this executable can't be found: %v", lost)
		}
		own, err = os.Open(path)
	}
	if err != nil {
		return failf(exitNotRunnable, "this executable can't be read: %v", err)
	}
	defer own.Close()
	target := filepath.Join(directory, installedName)
	digest, err := digestOf(own)
	if err != nil {
		return failf(exitNotRunnable, "this executable can't be read: %v", err)
	}
	note := " (already there)"
	if !holds(target, digest) {
		note = ""
		if err := copyTo(target, own); err != nil {
			return failf(exitNoDirectory, "%s can't be written: %v", target, err)
		}
	}
	_, err = fmt.Fprintf(out, "%s  %s%s\n", digest, target, note)
	return err
}

func digestOf(file io.ReadSeeker) (string, error) {
	hash := sha256.New()
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	if _, err := io.Copy(hash, file); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

// holds tells whether the target is this executable, and can be executed.
func holds(target, digest string) bool {
	file, err := os.Open(target)
	if err != nil {
		return false
	}
	defer file.Close()
	status, err := file.Stat()
	if err != nil || status.Mode().Perm()&0o111 == 0 {
		return false
	}
	found, err := digestOf(file)
	return err == nil && found == digest
}

// copyTo writes beside the target and renames: who reads the target finds the whole old file, or the whole new one.
func copyTo(target string, own io.ReadSeeker) error {
	part := fmt.Sprintf("%s.%d.part", target, os.Getpid())
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = own.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(out, own)
	}
	// The copy may be meant for another user than the one that an umask had in mind.
	err = errors.Join(err, out.Chmod(0o755), out.Sync(), out.Close())
	if err == nil {
		err = os.Rename(part, target)
	}
	if err != nil {
		_ = os.Remove(part)
	}
	return err
}
