package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"
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
	group     string // who else may connect to a socket there
}

func hostFromEnvironment(getenv func(string) string, arguments []string) hostEnvironment {
	versions := strings.Split(getenv("PLUGIN_PROTOCOL_VERSIONS"), ",")
	return hostEnvironment{
		startedUs: getenv("ARGO_ROLLOUTS_RPC_PLUGIN") == "trafficrouter",
		protocol:  slices.Contains(versions, "1") && getenv("PLUGIN_CLIENT_CERT") == "" && transportOf(arguments) != "grpc",
		sockets:   getenv("PLUGIN_UNIX_SOCKET_DIR"),
		group:     getenv("PLUGIN_UNIX_SOCKET_GROUP"),
	}
}

// transportOf reads one flag as the program does: with one dash or two, `=` or a space; the last one counts.
func transportOf(arguments []string) string {
	transport := ""
	for index, argument := range arguments {
		name, value, joined := strings.Cut(argument, "=")
		if name != "--transport" && name != "-transport" {
			continue
		}
		if !joined && index+1 < len(arguments) {
			value = arguments[index+1]
		}
		transport = value
	}
	return transport
}

func (h hostEnvironment) canBeAnswered() bool { return h.startedUs && h.protocol }

// respond returns when the host needs us no more.
func respond(host hostEnvironment, cause string) error {
	listener, err := host.listen()
	if err != nil {
		return err
	}
	defer listener.Close()
	fmt.Printf("1|1|unix|%s|netrpc|\n", listener.Addr())
	return serveUntilDone(listener, cause)
}

// listen opens a socket's file to our own user alone, or to the group that the host names.
func (h hostEnvironment) listen() (*net.UnixListener, error) {
	// An abstract address needs no directory that can be written to, and leaves nothing behind.
	address := fmt.Sprintf("@rollouts-gwapi-plugin-%d-%d", os.Getpid(), time.Now().UnixNano())
	if h.sockets != "" {
		address = filepath.Join(h.sockets, fmt.Sprintf("rollouts-gwapi-plugin-%d", os.Getpid()))
	}
	umask := unix.Umask(0o177)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	unix.Umask(umask)
	if err != nil || h.sockets == "" || h.group == "" {
		return listener, err
	}
	if err := giveToGroup(address, h.group); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("the group %q of PLUGIN_UNIX_SOCKET_GROUP: %w", h.group, err)
	}
	return listener, nil
}

func giveToGroup(path, group string) error {
	number, err := strconv.Atoi(group)
	if err != nil {
		found, err := user.LookupGroup(group)
		if err != nil {
			return err
		}
		if number, err = strconv.Atoi(found.Gid); err != nil {
			return err
		}
	}
	if err := os.Chown(path, -1, number); err != nil {
		return err
	}
	return os.Chmod(path, 0o660)
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
