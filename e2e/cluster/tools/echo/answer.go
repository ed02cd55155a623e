package main

import (
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxMessage bounds a gRPC message that a client can make us hold.
const maxMessage = 4 << 20

// answer is the identity with what was received, so that header filters and rewrites can be seen.
type answer struct {
	Identity
	Protocol string            `json:"protocol"`
	Method   string            `json:"method"`
	Host     string            `json:"host"`
	Path     string            `json:"path"`
	Headers  map[string]string `json:"headers"`
}

// answerHTTP answers HTTP and gRPC. X-Echo-Status and X-Echo-Delay in the request choose status and delay; X-Cohort is
// the name under which the request is counted.
func (p *servedPod) answerHTTP(w http.ResponseWriter, r *http.Request) {
	if delay, err := time.ParseDuration(r.Header.Get("X-Echo-Delay")); err == nil {
		select {
		case <-time.After(delay):
		case <-r.Context().Done():
			return
		}
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		p.answerGRPC(w, r)
		return
	}
	p.world.counters.Add(p.Identity, "http", r.Header.Get("X-Cohort"))
	status := p.Status
	if asked := r.Header.Get("X-Echo-Status"); asked != "" {
		status = statusFrom(asked)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(p.describe(r, "http"))
}

// answerGRPC answers each message of a call with one message: the identity as JSON. Any service and method will do.
func (p *servedPod) answerGRPC(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
	w.WriteHeader(http.StatusOK)
	header := make([]byte, 5)
	for {
		if _, err := io.ReadFull(r.Body, header); err != nil {
			break
		}
		size := binary.BigEndian.Uint32(header[1:])
		if size > maxMessage {
			w.Header().Set("Grpc-Status", "8")
			w.Header().Set("Grpc-Message", "message of "+strconv.Itoa(int(size))+" bytes")
			return
		}
		if _, err := io.CopyN(io.Discard, r.Body, int64(size)); err != nil {
			return
		}
		p.world.counters.Add(p.Identity, "grpc", r.Header.Get("X-Cohort"))
		body, _ := json.Marshal(p.describe(r, "grpc"))
		binary.BigEndian.PutUint32(header[1:], uint32(len(body)))
		header[0] = 0
		if _, err := w.Write(append(append([]byte{}, header...), body...)); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
	}
	status := "0"
	if p.Status != http.StatusOK {
		status = "14"
	}
	w.Header().Set("Grpc-Status", status)
	w.Header().Set("Grpc-Message", "")
}

func (p *servedPod) describe(r *http.Request, protocol string) answer {
	headers := map[string]string{}
	for name, values := range r.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	return answer{
		Identity: p.identity(), Protocol: protocol, Method: r.Method, Host: r.Host, Path: r.URL.RequestURI(),
		Headers: headers,
	}
}

func writeJSON(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}
