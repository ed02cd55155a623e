package main

import (
	"encoding/gob"
	"os"
	"reflect"
)

// Everything has a field of each kind that gob knows.
type Everything struct {
	Bool      bool
	Int       int64
	Uint      uint64
	Float     float64
	Complex   complex128
	String    string
	Bytes     []byte
	Slice     []string
	Array     [3]int
	Map       map[string]int
	Points    map[Point]Point
	Struct    Point
	Recursive []Everything
	Interface any
	Many      []any
	Opaque    Kept
}

// Kept is an opaque type that gives back what it got.
type Kept struct{ data []byte }

func (k Kept) GobEncode() ([]byte, error) { return k.data, nil }

func (k *Kept) GobDecode(data []byte) error {
	k.data = append([]byte{}, data...)
	return nil
}

// check reads one Everything from standard input with Go's decoder and writes its notation.
func check() {
	var value Everything
	must(gob.NewDecoder(os.Stdin).Decode(&value))
	_, err := os.Stdout.Write(marshal(notation(reflect.ValueOf(value))))
	must(err)
}
