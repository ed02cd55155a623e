package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"
)

// Between two tries to list: the API server is restarted in some tests.
const pause = 200 * time.Millisecond

// API follows collections of one API server.
type API struct {
	server string
	client *http.Client
}

// NewAPI returns a client with a client certificate.
func NewAPI(server, ca, cert, key string) (*API, error) {
	authority, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, TLSHandshakeTimeout: 10 * time.Second,
	}
	return &API{server: server, client: &http.Client{Transport: transport}}, nil
}

// Follow calls changed with all objects of the collection, by namespace/name, at each change, until ctx ends. While the
// API server can't be reached the last state stands.
func (a *API) Follow(ctx context.Context, path string, changed func(map[string]json.RawMessage)) {
	for ctx.Err() == nil {
		if err := a.listAndWatch(ctx, path, changed); err != nil && ctx.Err() == nil {
			log.Printf("echo: %s: %v", path, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (a *API) listAndWatch(ctx context.Context, path string, changed func(map[string]json.RawMessage)) error {
	var list struct {
		Metadata struct{ ResourceVersion string }
		Items    []json.RawMessage
	}
	response, err := a.get(ctx, path, nil)
	if err != nil {
		return err
	}
	err = json.NewDecoder(response.Body).Decode(&list)
	_ = response.Body.Close()
	if err != nil {
		return err
	}
	objects := map[string]json.RawMessage{}
	for _, raw := range list.Items {
		objects[keyOf(raw)] = raw
	}
	changed(objects)
	response, err = a.get(ctx, path, url.Values{"watch": {"1"}, "resourceVersion": {list.Metadata.ResourceVersion}})
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return readEvents(json.NewDecoder(response.Body), objects, changed)
}

func readEvents(events *json.Decoder, objects map[string]json.RawMessage, changed func(map[string]json.RawMessage)) error {
	for {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		if err := events.Decode(&event); err != nil {
			return err
		}
		switch event.Type {
		case "ADDED", "MODIFIED":
			objects[keyOf(event.Object)] = event.Object
		case "DELETED":
			delete(objects, keyOf(event.Object))
		default:
			return errors.New("the watch ended: " + string(event.Object))
		}
		changed(objects)
	}
}

func (a *API) get(ctx context.Context, path string, query url.Values) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.server+path+"?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("the API server answered %s", response.Status)
	}
	return response, nil
}

func keyOf(raw json.RawMessage) string {
	var object struct{ Metadata objectMeta }
	_ = json.Unmarshal(raw, &object)
	return object.Metadata.Namespace + "/" + object.Metadata.Name
}
