package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// What makes a tree that lies there trusted. Two things damage one: cleaners of temporary directories, which remove
// seldom-read files one by one, and a crash of the machine, after which a renamed tree may have lost what was not yet
// on the disk. Names and sizes, which show the first, are looked at by each start; all bytes once a boot.
const (
	bootName   = "boot"
	bootIDPath = "/proc/sys/kernel/random/boot_id"
)

// whole tells whether the tree has what the payload has.
func whole(root string, wanted tree) bool {
	if !sizesMatch(root, wanted.files) {
		return false
	}
	if sameBoot(root) {
		return true
	}
	if walk(root, wanted, compareFile) != nil {
		return false
	}
	_ = writeBoot(root)
	return true
}

// sizesMatch looks at every file in a list of lines `BYTES PATH`; it is part of each start, and takes a few ms.
func sizesMatch(root string, files []byte) bool {
	folder, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(folder)
	for line := range bytes.Lines(files) {
		size, name, _ := bytes.Cut(bytes.TrimSuffix(line, []byte{'\n'}), []byte{' '})
		wanted, err := strconv.ParseInt(string(size), 10, 64)
		if err != nil {
			return false
		}
		var status unix.Stat_t
		err = unix.Fstatat(folder, string(name), &status, unix.AT_SYMLINK_NOFOLLOW)
		if err != nil || status.Mode&unix.S_IFMT != unix.S_IFREG || status.Size != wanted {
			return false
		}
	}
	return true
}

var errDiffers = errors.New("differs from the payload")

func compareFile(path string, header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeDir {
		return nil
	}
	wanted, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	found, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(wanted, found) {
		return errDiffers
	}
	return nil
}

// bootID is empty where /proc is not mounted; then trees are trusted across boots.
func bootID() []byte {
	id, err := os.ReadFile(bootIDPath)
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(id)
}

func sameBoot(root string) bool {
	id := bootID()
	written, err := os.ReadFile(filepath.Join(root, bootName))
	return err == nil && (id == nil || bytes.Equal(id, written))
}

func writeBoot(root string) error {
	return os.WriteFile(filepath.Join(root, bootName), bootID(), privateFile)
}

// forgetBoot makes the next start compare the tree with the payload: its program could not run.
func forgetBoot(root string) { _ = os.Remove(filepath.Join(root, bootName)) }

// forgetBoots is for a program that ran and found itself broken: it does not say from which directory it came.
func forgetBoots(own string, wanted tree) {
	for _, directory := range candidates(own, os.Getenv) {
		if cache, err := cacheDirectory(directory); err == nil {
			forgetBoot(filepath.Join(cache, wanted.name))
		}
	}
}
