package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The launcher as a program is tested from outside (tests/packaging); here are the cases that can't be made there.

func TestLockPatienceEnds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := takeLock(path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(held)

	_, err = takeLock(path, 50*time.Millisecond)

	var known *failure
	if !errors.As(err, &known) || known.code != exitLockTimeout || !strings.Contains(known.text, path) {
		t.Fatalf("a held lock gave %v", err)
	}
}

func TestLockIsFreedWithItsHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := takeLock(path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(30*time.Millisecond, func() { _ = unix.Close(held) })

	again, err := takeLock(path, 10*time.Second)

	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(again)
}

func TestHostEnvironment(t *testing.T) {
	asked := map[string]string{"ARGO_ROLLOUTS_RPC_PLUGIN": "trafficrouter", "PLUGIN_PROTOCOL_VERSIONS": "1,2"}
	with := func(name, value string) func(string) string {
		return func(wanted string) string {
			if wanted == name {
				return value
			}
			return asked[wanted]
		}
	}
	cases := map[string]struct {
		environment func(string) string
		arguments   []string
		answered    bool
	}{
		"the controller":          {with("", ""), []string{"serve"}, true},
		"by hand":                 {with("ARGO_ROLLOUTS_RPC_PLUGIN", ""), nil, false},
		"another kind of plugin":  {with("ARGO_ROLLOUTS_RPC_PLUGIN", "step"), nil, false},
		"another protocol":        {with("PLUGIN_PROTOCOL_VERSIONS", "2"), nil, false},
		"TLS, which needs more":   {with("PLUGIN_CLIENT_CERT", "PEM"), nil, false},
		"gRPC, which needs more":  {with("", ""), []string{"--transport", "grpc"}, false},
		"gRPC, with an equals":    {with("", ""), []string{"--transport=grpc"}, false},
		"gRPC, with one dash":     {with("", ""), []string{"-transport=grpc"}, false},
		"gRPC, taken back":        {with("", ""), []string{"--transport=grpc", "--transport", "netrpc"}, true},
		"a name like gRPC":        {with("", ""), []string{"--plugin-name=acme/grpc-router"}, true},
		"a value like gRPC":       {with("", ""), []string{"--plugin-name", "grpc"}, true},
		"a flag without a value":  {with("", ""), []string{"--transport"}, true},
		"sockets in a folder":     {with("PLUGIN_UNIX_SOCKET_DIR", "/run"), nil, true},
		"version among several":   {with("PLUGIN_PROTOCOL_VERSIONS", "3,1"), nil, true},
		"no protocol version set": {with("PLUGIN_PROTOCOL_VERSIONS", ""), nil, false},
	}
	for name, given := range cases {
		if answered := hostFromEnvironment(given.environment, given.arguments).canBeAnswered(); answered != given.answered {
			t.Errorf("%s: can be answered: %v", name, answered)
		}
	}
}

func TestASocketIsOpenToThoseTheHostNames(t *testing.T) {
	cases := map[string]os.FileMode{"": 0o600, strconv.Itoa(os.Getegid()): 0o660}
	for group, wanted := range cases {
		listener, err := hostEnvironment{sockets: t.TempDir(), group: group}.listen()
		if err != nil {
			t.Fatal(err)
		}
		status, err := os.Stat(listener.Addr().String())
		_ = listener.Close()
		if err != nil || status.Mode().Perm() != wanted {
			t.Errorf("group %q: %v, %v", group, status, err)
		}
	}
}

func TestAnUnknownGroupIsAnError(t *testing.T) {
	folder := t.TempDir()

	_, err := hostEnvironment{sockets: folder, group: "no such group"}.listen()

	if err == nil || !strings.Contains(err.Error(), "no such group") {
		t.Fatalf("an unknown group gave %v", err)
	}
	if left, _ := os.ReadDir(folder); len(left) != 0 {
		t.Fatalf("left behind: %v", left)
	}
}

func TestCandidates(t *testing.T) {
	environment := map[string]string{"TMPDIR": "/var/tmp", cacheVariable: "relative"}

	found := candidates("/var/tmp/plugin", func(name string) string { return environment[name] })

	if wanted := []string{"/var/tmp", "/dev/shm"}; !slices.Equal(found, wanted) {
		t.Fatalf("candidates are %v, not %v", found, wanted)
	}
}

func TestAnExecutableWithoutPayloadSaysSo(t *testing.T) {
	_, _, err := settle(t.TempDir(), carriedTree())

	var known *failure
	if !errors.As(err, &known) || known.code != exitDamaged {
		t.Fatalf("no payload gave %v", err)
	}
}
