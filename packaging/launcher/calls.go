package main

import (
	"bufio"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// net/rpc's server is not used: it ends a connection whose arguments have types that are not registered here, and all
// of the controller's have. Requests are read by encoding/gob, their arguments skipped by the types on the wire.

// Go's own names on the wire; a struct is matched by its fields.
type request struct {
	ServiceMethod string
	Seq           uint64
}

type response struct {
	ServiceMethod string
	Seq           uint64
	Error         string
}

type rpcError struct{ ErrorString string }

type verifyWeightResponse struct {
	Verified int32
	Err      rpcError
}

type empty struct{}

// The streams that the host opens first, in this order.
const (
	controlStream = 1
	stdoutStream  = 2
	stderrStream  = 3
)

// After Quit the answer needs a moment to leave: the host kills at once if it gets none.
const quitGrace = 200 * time.Millisecond

// teller answers the calls of one session with the cause.
type teller struct {
	cause     string
	dispensed atomic.Uint32
	used      atomic.Bool
	once      sync.Once
	done      chan struct{}
}

func newTeller(cause string) *teller { return &teller{cause: cause, done: make(chan struct{})} }

func (t *teller) finish() { t.once.Do(func() { close(t.done) }) }

func (t *teller) serveStream(number int, stream io.ReadWriteCloser) {
	switch number {
	case controlStream:
	case stdoutStream, stderrStream: // carry the plugin's output; there is none
		return
	default:
		// A dispensed plugin's stream starts with its number, which is sent back.
		var id uint32
		if binary.Read(stream, binary.LittleEndian, &id) != nil || binary.Write(stream, binary.LittleEndian, id) != nil {
			_ = stream.Close()
			return
		}
	}
	defer stream.Close()
	_ = t.serveCalls(stream)
}

func (t *teller) serveCalls(stream io.ReadWriter) error {
	out := bufio.NewWriter(stream)
	decoder, encoder := gob.NewDecoder(stream), gob.NewEncoder(out)
	for {
		var called request
		if err := decoder.Decode(&called); err != nil {
			return err
		}
		if err := skipArgument(decoder, called.ServiceMethod); err != nil {
			return err
		}
		body, err := t.answer(called.ServiceMethod)
		header := response{ServiceMethod: called.ServiceMethod, Seq: called.Seq}
		if err != nil {
			header.Error = err.Error()
		}
		if err := errors.Join(encoder.Encode(header), encoder.Encode(body), out.Flush()); err != nil {
			return err
		}
		if called.ServiceMethod == "Control.Quit" {
			time.AfterFunc(quitGrace, t.finish)
		}
	}
}

// skipArgument reads nil interfaces as what they are: skipping one, gob would wait for a type that never comes.
func skipArgument(decoder *gob.Decoder, method string) error {
	if method == "Plugin.InitPlugin" || method == "Plugin.Type" {
		var none any
		return decoder.Decode(&none)
	}
	return decoder.DecodeValue(reflect.Value{})
}

func (t *teller) answer(method string) (any, error) {
	service, name, _ := strings.Cut(method, ".")
	switch {
	case method == "Control.Ping" || method == "Control.Quit":
		return empty{}, nil
	case method == "Dispenser.Dispense":
		return t.dispensed.Add(1), nil
	case method == "Plugin.Type":
		return "GatewayAPI", nil
	case method == "Plugin.VerifyWeight":
		// Not an error: the controller goes on with the rollout on one.
		return verifyWeightResponse{}, nil
	case service == "Plugin":
		return rpcError{t.cause}, nil
	}
	return empty{}, fmt.Errorf("rpc: can't find method %s of service %s", name, service)
}
