package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// Names below a cache directory. A tree with its final name is whole: it was renamed to it. A tree's `.use` file is
// locked (shared) by every process that runs from it.
const (
	lockName      = "lock"
	partSuffix    = ".part"
	useSuffix     = ".use"
	privateFolder = 0o700
	privateFile   = 0o600
)

// The host gives a plugin 60 s until its handshake; what remains after the wait must do for a start or for the text.
const lockPatience = 45 * time.Second

// lockPause is how long a waiter sleeps between two tries; unpacking takes about half a second.
const lockPause = 20 * time.Millisecond

// zstdWindow bounds the decoder's memory, which counts against the controller's limit. The build uses half of it
// (WINDOW_LOG in payload.py).
const zstdWindow = 16 << 20

// useMark keeps a tree from being swept: a shared lock that the kernel drops when the process ends.
type useMark struct{ descriptor int }

func (u useMark) close() { _ = unix.Close(u.descriptor) }

// settle makes sure that the tree lies below directory and marks it as used.
func settle(directory string, wanted tree) (string, useMark, error) {
	if err := checkMount(directory); err != nil {
		return "", useMark{}, err
	}
	cache, err := cacheDirectory(directory)
	if err != nil {
		return "", useMark{}, err
	}
	lock, err := takeLock(filepath.Join(cache, lockName), lockPatience)
	if err != nil {
		return "", useMark{}, err
	}
	defer unix.Close(lock) // dropping the lock last
	root := filepath.Join(cache, wanted.name)
	if err := provide(root, wanted); err != nil {
		return "", useMark{}, err
	}
	mark, err := markUsed(root)
	if err != nil {
		return "", useMark{}, err
	}
	sweep(cache, wanted.name)
	return root, mark, nil
}

// provide unpacks the tree unless it is there, whole.
func provide(root string, wanted tree) error {
	if _, err := os.Lstat(root); err == nil {
		if whole(root, wanted) {
			return nil
		}
		if err := discard(root); err != nil {
			return failf(exitNoDirectory, "%v", err)
		}
	}
	part := root + partSuffix
	if err := os.RemoveAll(part); err != nil {
		return failf(exitNoDirectory, "%v", err)
	}
	if err := checkRoom(filepath.Dir(root), wanted.bytes); err != nil {
		return err
	}
	err := walk(part, wanted, writeFile)
	if err == nil {
		err = writeBoot(part)
	}
	if err == nil {
		err = os.Rename(part, root)
	}
	if err != nil {
		_ = os.RemoveAll(part)
		var known *failure
		if errors.As(err, &known) {
			return known
		}
		return failf(exitNoDirectory, "%v", err)
	}
	return nil
}

// cacheDirectory is private to the user: files that others can write to are not executed.
func cacheDirectory(directory string) (string, error) {
	cache := filepath.Join(directory, ".rollouts-gwapi-plugin-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(cache, privateFolder); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", failf(exitNoDirectory, "%v", err)
	}
	var status unix.Stat_t
	if err := unix.Lstat(cache, &status); err != nil {
		return "", failf(exitNoDirectory, "%v", err)
	}
	if status.Mode&unix.S_IFMT != unix.S_IFDIR || int(status.Uid) != os.Geteuid() || status.Mode&0o022 != 0 {
		return "", failf(exitNoDirectory, "%s is not a directory of user %d that only this user can write to",
			cache, os.Geteuid())
	}
	return cache, nil
}

// takeLock waits for the one lock of a cache directory. Its holder's end frees it, however the holder ends.
func takeLock(path string, patience time.Duration) (int, error) {
	descriptor, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, privateFile)
	if err != nil {
		return -1, failf(exitNoDirectory, "%s: %v", path, err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(lockPause) {
		err = unix.Flock(descriptor, unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return descriptor, nil
		}
		busy := errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR)
		if !busy || time.Now().After(deadline) {
			_ = unix.Close(descriptor)
			return -1, failf(exitLockTimeout, "%s stayed locked by another start for %s: %v", path, patience, err)
		}
	}
}

// markUsed leaves its descriptor open across execve on purpose: the lock lives as long as the process.
func markUsed(root string) (useMark, error) {
	descriptor, err := unix.Open(root+useSuffix, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW, privateFile)
	if err != nil {
		return useMark{}, failf(exitNoDirectory, "%s: %v", root+useSuffix, err)
	}
	if err := unix.Flock(descriptor, unix.LOCK_SH|unix.LOCK_NB); err != nil {
		_ = unix.Close(descriptor)
		return useMark{}, failf(exitNoDirectory, "%s: %v", root+useSuffix, err)
	}
	return useMark{descriptor}, nil
}

// sweep removes what earlier versions and interrupted starts left. Trouble with it is not the start's trouble.
func sweep(cache, keep string) {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case !entry.IsDir() || name == keep:
		case strings.HasSuffix(name, partSuffix): // the lock is ours, so nobody is unpacking
			_ = os.RemoveAll(filepath.Join(cache, name))
		default:
			sweepTree(filepath.Join(cache, name))
		}
	}
}

func sweepTree(root string) {
	descriptor, err := unix.Open(root+useSuffix, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, privateFile)
	if err != nil {
		return
	}
	defer unix.Close(descriptor)
	if unix.Flock(descriptor, unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	if discard(root) == nil {
		_ = os.Remove(root + useSuffix)
	}
}

// discard takes the final name away first, so that an interrupted removal is never taken for a whole tree.
func discard(root string) error {
	part := root + partSuffix
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.Rename(root, part); err != nil {
		return err
	}
	return os.RemoveAll(part)
}

// walk calls each with every file of the payload and the path that it has below root.
func walk(root string, wanted tree, each func(path string, header *tar.Header, content io.Reader) error) error {
	packed, err := wanted.open()
	if err != nil {
		return err
	}
	defer packed.Close()
	plain, err := zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
	if err != nil {
		return failf(exitDamaged, "the carried tree can't be read: %v", err)
	}
	defer plain.Close()
	for reader := tar.NewReader(plain); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failf(exitDamaged, "the carried tree can't be read: %v", err)
		}
		if !filepath.IsLocal(header.Name) {
			return failf(exitDamaged, "the carried tree has a file outside of itself: %s", header.Name)
		}
		if err := each(filepath.Join(root, header.Name), header, reader); err != nil {
			return err
		}
	}
}

// writeFile needs no parents made ahead: the payload lists each folder before its files.
func writeFile(path string, header *tar.Header, content io.Reader) error {
	if header.Typeflag == tar.TypeDir {
		return os.MkdirAll(path, privateFolder)
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, header.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}
