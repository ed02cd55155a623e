package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"sync"
	"time"
)

// firstBytes is how long a client may think before its first bytes; Envoy opens connections ahead of need.
const firstBytes = 10 * time.Minute

// httpMethods are the first four bytes of HTTP/1 requests and of the HTTP/2 preface.
var httpMethods = map[string]bool{
	"GET ": true, "POST": true, "PUT ": true, "HEAD": true, "DELE": true, "OPTI": true, "PATC": true, "TRAC": true,
	"CONN": true, "PRI ": true,
}

// servedPod is a Ready pod: its listeners and its open connections. No listener, no answer: the kernel resets what
// comes to the address of no Ready pod.
type servedPod struct {
	Pod
	world     *World
	listeners []io.Closer
	handOver  *handOver
	http      *http.Server
	mu        sync.Mutex
	open      map[*net.TCPConn]struct{}
	gone      bool
}

func newServedPod(pod Pod, world *World) *servedPod {
	p := &servedPod{Pod: pod, world: world, handOver: newHandOver(), open: map[*net.TCPConn]struct{}{}}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	p.http = &http.Server{
		Handler: http.HandlerFunc(p.answerHTTP), Protocols: protocols, ReadHeaderTimeout: firstBytes,
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = p.http.Serve(p.handOver) }()
	return p
}

func (p *servedPod) accept(listener net.Listener) {
	p.mu.Lock()
	p.listeners = append(p.listeners, listener)
	p.mu.Unlock()
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			if tcp, ok := connection.(*net.TCPConn); ok && p.track(tcp) {
				go p.dispatch(tcp, "tcp", func() { p.forget(tcp) })
			}
		}
	}()
}

// receive answers each datagram with one that has the identity.
func (p *servedPod) receive(socket net.PacketConn) {
	p.mu.Lock()
	p.listeners = append(p.listeners, socket)
	p.mu.Unlock()
	go func() {
		received := make([]byte, 65_536)
		for {
			_, from, err := socket.ReadFrom(received)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil {
				continue // what an earlier answer met, say a client that is gone
			}
			p.world.counters.Add(p.Identity, "udp", "")
			body, _ := json.Marshal(p.identity())
			_, _ = socket.WriteTo(body, from)
		}
	}()
}

func (p *servedPod) track(connection *net.TCPConn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		resetConnection(connection)
		return false
	}
	p.open[connection] = struct{}{}
	return true
}

func (p *servedPod) forget(connection *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, connection)
}

// reset ends the pod as the end of its process would: nothing listens, open connections get a RST.
func (p *servedPod) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = true
	for _, listener := range p.listeners {
		_ = listener.Close()
	}
	for connection := range p.open {
		resetConnection(connection)
	}
	p.open = map[*net.TCPConn]struct{}{}
	_ = p.handOver.Close()
}

func resetConnection(connection *net.TCPConn) {
	_ = connection.SetLinger(0)
	_ = connection.Close()
}

// dispatch looks at the first four bytes and serves the protocol that they begin. plain is the name under which lines
// are counted: tcp, or tls once the TLS is taken off.
func (p *servedPod) dispatch(connection net.Conn, plain string, done func()) {
	peeked := &peekedConn{Conn: connection, reader: bufio.NewReader(connection), done: done}
	_ = connection.SetReadDeadline(time.Now().Add(firstBytes))
	first, err := peeked.reader.Peek(4)
	_ = connection.SetReadDeadline(time.Time{})
	switch {
	case err != nil:
		_ = peeked.Close()
	case first[0] == 0x16 && plain == "tcp":
		secure := tls.Server(peeked, &tls.Config{
			Certificates: []tls.Certificate{p.world.certificate}, NextProtos: []string{"h2", "http/1.1"},
			MinVersion: tls.VersionTLS12,
		})
		p.dispatch(secure, "tls", func() {})
	case httpMethods[string(first)]:
		p.handOver.give(peeked)
	default:
		p.answerLines(peeked, plain)
	}
}

// answerLines answers each line with the identity on one line.
func (p *servedPod) answerLines(connection net.Conn, protocol string) {
	defer func() { _ = connection.Close() }()
	lines := bufio.NewScanner(connection)
	for lines.Scan() {
		p.world.counters.Add(p.Identity, protocol, "")
		if json.NewEncoder(connection).Encode(p.identity()) != nil {
			return
		}
	}
}

func (p *servedPod) identity() Identity {
	identity := p.Identity
	identity.Revision = p.world.revision(identity)
	return identity
}

// peekedConn gives back the bytes that were looked at.
type peekedConn struct {
	net.Conn
	reader *bufio.Reader
	done   func()
	once   sync.Once
}

func (c *peekedConn) Read(into []byte) (int, error) { return c.reader.Read(into) }

func (c *peekedConn) Close() error {
	c.once.Do(c.done)
	return c.Conn.Close()
}

// handOver is a listener whose connections were accepted elsewhere.
type handOver struct {
	connections chan net.Conn
	closed      chan struct{}
	once        sync.Once
}

func newHandOver() *handOver {
	return &handOver{connections: make(chan net.Conn), closed: make(chan struct{})}
}

func (h *handOver) give(connection net.Conn) {
	select {
	case h.connections <- connection:
	case <-h.closed:
		_ = connection.Close()
	}
}

func (h *handOver) Accept() (net.Conn, error) {
	select {
	case connection := <-h.connections:
		return connection, nil
	case <-h.closed:
		return nil, errors.New("the pod is gone")
	}
}

func (h *handOver) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

func (h *handOver) Addr() net.Addr { return &net.TCPAddr{} }

// selfSigned makes the certificate that TLS connections get; clients of the tests do not verify it.
func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "echo"}, DNSNames: []string{"*.e2e.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}
