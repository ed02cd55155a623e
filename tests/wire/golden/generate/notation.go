package main

import (
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"sort"
	"strconv"
	"unicode/utf8"
)

// notation returns a Go value as the JSON that a decoder of its gob should show (see wire/gob/notation.py). It never looks
// at the gob itself: what gob leaves out is left out here by its documented rules.
func notation(value reflect.Value) any {
	for value.Kind() == reflect.Pointer {
		if opaque, ok := opaqueBytes(value); ok {
			return object("$opaque", hex.EncodeToString(opaque))
		}
		value = value.Elem()
	}
	if opaque, ok := opaqueBytes(value); ok {
		return object("$opaque", hex.EncodeToString(opaque))
	}
	switch value.Kind() {
	case reflect.Bool:
		return value.Bool()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return json.Number(strconv.FormatInt(value.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return json.Number(strconv.FormatUint(value.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		return float(value.Float())
	case reflect.Complex64, reflect.Complex128:
		c := value.Complex()
		return object("$complex", []any{float(real(c)), float(imag(c))})
	case reflect.String:
		return text(value.String())
	case reflect.Slice, reflect.Array:
		return list(value)
	case reflect.Map:
		return mapping(value)
	case reflect.Interface:
		return interfaceValue(value)
	case reflect.Struct:
		return structure(value)
	}
	panic(fmt.Sprintf("gob does not send %s", value.Type()))
}

func object(key string, value any) map[string]any { return map[string]any{key: value} }

func opaqueBytes(value reflect.Value) ([]byte, bool) {
	if !value.CanInterface() || value.Kind() == reflect.Interface {
		return nil, false
	}
	for _, candidate := range []reflect.Value{value, addressOf(value)} {
		switch encoder := candidate.Interface().(type) {
		case gob.GobEncoder:
			data, err := encoder.GobEncode()
			must(err)
			return data, true
		case interface{ MarshalBinary() ([]byte, error) }:
			data, err := encoder.MarshalBinary()
			must(err)
			return data, true
		}
	}
	return nil, false
}

func addressOf(value reflect.Value) reflect.Value {
	pointer := reflect.New(value.Type())
	pointer.Elem().Set(value)
	return pointer
}

func float(f float64) any {
	switch {
	case math.IsNaN(f):
		return object("$float", "NaN")
	case math.IsInf(f, 1):
		return object("$float", "+Inf")
	case math.IsInf(f, -1):
		return object("$float", "-Inf")
	}
	written := strconv.FormatFloat(f, 'g', -1, 64)
	if _, err := strconv.ParseInt(written, 10, 64); err == nil {
		written += ".0"
	}
	return json.Number(written)
}

func text(s string) any {
	if utf8.ValidString(s) {
		return s
	}
	return object("$string", hex.EncodeToString([]byte(s)))
}

func list(value reflect.Value) any {
	if value.Kind() == reflect.Slice && value.Type().Elem().Kind() == reflect.Uint8 {
		return object("$bytes", hex.EncodeToString(value.Bytes()))
	}
	elements := []any{}
	for i := range value.Len() {
		elements = append(elements, notation(value.Index(i)))
	}
	return elements
}

func mapping(value reflect.Value) any {
	plain := value.Type().Key().Kind() == reflect.String
	named := map[string]any{}
	pairs := [][]any{}
	for entry := value.MapRange(); entry.Next(); {
		plain = plain && utf8.ValidString(entry.Key().String())
		element := notation(entry.Value())
		named[entry.Key().String()] = element
		pairs = append(pairs, []any{notation(entry.Key()), element})
	}
	if plain {
		return named
	}
	sort.Slice(pairs, func(i, j int) bool { return compact(pairs[i][0]) < compact(pairs[j][0]) })
	return object("$map", pairs)
}

func interfaceValue(value reflect.Value) any {
	if value.IsNil() {
		return nil
	}
	content := value.Elem()
	base := content.Type()
	for base.Kind() == reflect.Pointer {
		base = base.Elem()
	}
	return map[string]any{"$iface": registered[base], "$value": notation(content)}
}

func structure(value reflect.Value) any {
	fields := map[string]any{}
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if !field.IsExported() || !isSent(value.Field(i)) {
			continue
		}
		fields[field.Name] = notation(value.Field(i))
	}
	return fields
}

// isSent tells whether gob sends a field with this value.
func isSent(value reflect.Value) bool {
	for value.Kind() == reflect.Pointer {
		if value.IsNil() {
			return false
		}
		value = value.Elem()
	}
	if _, ok := opaqueBytes(value); ok {
		return !value.IsZero()
	}
	switch value.Kind() {
	case reflect.Chan, reflect.Func:
		return false
	case reflect.Struct, reflect.Array:
		return true
	case reflect.Slice:
		return value.Len() > 0
	case reflect.Map, reflect.Interface:
		return !value.IsNil()
	case reflect.Float32, reflect.Float64:
		return value.Float() != 0 // -0 equals 0
	case reflect.Complex64, reflect.Complex128:
		return value.Complex() != 0
	}
	return !value.IsZero()
}

func compact(value any) string {
	return string(marshal(value))
}
