// Command golden writes gob streams and what they mean, for the tests of the decoder.
//
//	go run . ../gob-extra
//	go run . check < stream
//
// Each NAME.bin is one stream of encoding/gob, each NAME.json lists its values in the notation of the decode command.
// The second form reads a stream that somebody else has written, and writes what it means.
package main

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
)

// registered has the name under which each type goes in an interface.
var registered = map[reflect.Type]string{}

func register(name string, value any) {
	gob.RegisterName(name, value)
	base := reflect.TypeOf(value)
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	registered[base] = name
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func marshal(value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	must(encoder.Encode(value))
	return bytes.TrimSpace(buffer.Bytes())
}

func write(folder, name string, values []any) {
	var stream bytes.Buffer
	encoder := gob.NewEncoder(&stream)
	meanings := []any{}
	for _, value := range values {
		must(encoder.Encode(value))
		meanings = append(meanings, notation(reflect.ValueOf(value)))
	}
	must(os.WriteFile(filepath.Join(folder, name+".bin"), stream.Bytes(), 0o644))
	meaning := append(marshal(map[string]any{"kind": "gob", "name": name, "values": meanings}), '\n')
	must(os.WriteFile(filepath.Join(folder, name+".json"), meaning, 0o644))
}

func main() {
	registerAll()
	folder := os.Args[1]
	if folder == "check" {
		check()
		return
	}
	must(os.MkdirAll(folder, 0o755))
	for _, stream := range streams() {
		write(folder, stream.name, stream.values)
	}
}
