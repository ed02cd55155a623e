package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/yamux"
)

// The responder is the least plugin that can tell a cause: it finishes go-plugin's handshake (netrpc) and answers
// InitPlugin and every other call with it. It ends when the host asks for it, goes away, or has been told for a
// while: then the next reconcile starts a new process, which may find the cause gone.

// A host that never connects, as after a refused handshake, must not keep us.
const connectPatience = 60 * time.Second

// How long calls are answered with the cause before the process ends and is started anew by the next reconcile.
// Shorter means more futile unpacking while the cause lasts, longer a later recovery.
const tellingTime = 20 * time.Second

// hostEnvironment is what the host said by environment and arguments.
type hostEnvironment struct {
	startedUs bool   // the magic cookie is there
	protocol  bool   // our protocol version is accepted, and no TLS or gRPC is asked for
	sockets   string // folder for unix sockets, if the host wants them in one
}

func hostFromEnvironment(getenv func(string) string, arguments []string) hostEnvironment {
	versions := strings.Split(getenv("PLUGIN_PROTOCOL_VERSIONS"), ",")
	grpc := slices.ContainsFunc(arguments, func(argument string) bool { return strings.Contains(argument, "grpc") })
	return hostEnvironment{
		startedUs: getenv("ARGO_ROLLOUTS_RPC_PLUGIN") == "trafficrouter",
		protocol:  slices.Contains(versions, "1") && getenv("PLUGIN_CLIENT_CERT") == "" && !grpc,
		sockets:   getenv("PLUGIN_UNIX_SOCKET_DIR"),
	}
}

func (h hostEnvironment) canBeAnswered() bool { return h.startedUs && h.protocol }

// respond returns when the host needs us no more.
func respond(host hostEnvironment, cause string) error {
	// An abstract address needs no directory that can be written to, and leaves nothing behind.
	address := fmt.Sprintf("@rollouts-gwapi-plugin-%d-%d", os.Getpid(), time.Now().UnixNano())
	if host.sockets != "" {
		address = filepath.Join(host.sockets, fmt.Sprintf("rollouts-gwapi-plugin-%d", os.Getpid()))
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return err
	}
	defer listener.Close()
	fmt.Printf("1|1|unix|%s|netrpc|\n", address)
	return serveUntilDone(listener, cause)
}

func serveUntilDone(listener *net.UnixListener, cause string) error {
	for {
		if err := listener.SetDeadline(time.Now().Add(connectPatience)); err != nil {
			return err
		}
		connection, err := listener.Accept()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return errors.New("the host did not connect")
		}
		if err != nil {
			return err
		}
		answered := serveConnection(connection, cause)
		_ = connection.Close()
		if answered { // a reattaching host first connects once without a byte
			return nil
		}
	}
}

// serveConnection reports whether the connection carried a session.
func serveConnection(connection net.Conn, cause string) bool {
	configuration := yamux.DefaultConfig()
	configuration.LogOutput = io.Discard
	session, err := yamux.Server(connection, configuration)
	if err != nil {
		return false
	}
	defer session.Close()
	told := newTeller(cause)
	time.AfterFunc(tellingTime, told.finish)
	go func() {
		defer told.finish()
		for number := 1; ; number++ {
			stream, err := session.AcceptStream()
			if err != nil {
				return
			}
			told.used.Store(true)
			go told.serveStream(number, stream)
		}
	}()
	<-told.done
	return told.used.Load()
}
