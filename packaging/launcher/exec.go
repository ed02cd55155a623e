package main

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The layout of the tree, agreed on with the tree builder (packaging/builder/tree.py).
const (
	loaderPath = "bin/rollouts-gwapi" // the dynamic loader: the kernel takes a process's name from this file
	pythonPath = "bin/python3.11"
	libraries  = "lib"
	mainPath   = "main.pyc"
)

const executableVariable = "ROLLOUTS_GWAPI_PLUGIN_EXECUTABLE"

// Where distributions keep the certificate authorities; the bundled OpenSSL looks in Debian's place only.
var authorityFiles = []string{
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
}

// enter becomes the program in the tree; it returns only if that failed.
func enter(root, own string) error {
	loader := filepath.Join(root, loaderPath)
	python := filepath.Join(root, pythonPath)
	arguments := append([]string{
		"rollouts-gwapi-plugin",
		// The container's own libraries were built for its own loader.
		"--inhibit-cache",
		"--library-path", filepath.Join(root, libraries),
		"--argv0", python, // the interpreter finds its standard library from it
		python,
		"-I", "-S", "-B", filepath.Join(root, mainPath),
	}, os.Args[1:]...)
	if err := unix.Exec(loader, arguments, environment(os.Environ(), own)); err != nil {
		return failf(exitNotRunnable, "%s can't be executed: %v", loader, err)
	}
	return nil
}

// environment is the given one, with our path, without what was meant for another loader, and with the certificate
// authorities named if the user named none.
func environment(given []string, own string) []string {
	made := make([]string, 0, len(given)+2)
	authorities := false
	for _, entry := range given {
		name, _, _ := strings.Cut(entry, "=")
		switch name {
		case executableVariable, "LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT":
			continue
		case "SSL_CERT_FILE", "SSL_CERT_DIR":
			authorities = true
		}
		made = append(made, entry)
	}
	if !authorities {
		for _, file := range authorityFiles {
			if unix.Access(file, unix.R_OK) == nil {
				made = append(made, "SSL_CERT_FILE="+file)
				break
			}
		}
	}
	return append(made, executableVariable+"="+own)
}
