package main

import (
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"time"
)

type (
	Byte    uint8
	Bytes   []byte
	Words   []Byte
	Named   map[string]int
	Tree    []Tree
	Forest  map[string]Forest
	Ring    struct{ Next *Ring }
	Point   struct{ X, Y int }
	Corner  struct{ At [2]Point }
	Empty   struct{}
	Base    struct{ ID, Gone int }
	Derived struct {
		Base
		*Point
		Name string
	}
	Ignored struct {
		Before int
		C      chan int
		F      func()
		After  int
		p      int
	}
	Box    struct{ V any }
	Boxes  struct{ List []any }
	Pair   struct{ A, B any }
	Leaf   struct{ Text string }
	Fork   struct{ L, R any }
	Late1  struct{ A int }
	Late2  struct{ B []string }
	Late3  struct{ C map[string]Late1 }
	Late4  struct{ D any }
	Late5  struct{ E [2]any }
	Late6  struct{ F map[int]any }
	Scalar int
	Title  string
	Grid   [2][3]int
	Zero   [0]int
	Own    struct{ n int }
	Times  struct {
		T   time.Time
		P   *time.Time
		D   time.Duration
		B   *big.Int
		R   *big.Rat
		A   netip.Addr
		Own Own
		L   []Own
		M   map[string]time.Time
	}
	Pointers struct {
		I  *int
		S  **string
		P  *Point
		L  []*Point
		M  map[string]*Point
		A  *[2]int
		MP *map[string]int
		V  *any
	}
	Zeros struct {
		B    bool
		I    int
		F    float64
		C    complex128
		S    string
		Y    []byte
		L    []int
		LE   []int
		M    map[string]int
		ME   map[string]int
		MI   map[int]string
		A    [2]int
		AE   [0]int
		P    Point
		E    Empty
		V    any
		LZ   []float64
		LB   [][]byte
		LS   []string
		LE2  []Empty
		LV   []any
		AP   [1]Point
		MapZ map[string]float64
	}
)

func (o Own) GobEncode() ([]byte, error) { return []byte{byte(o.n), 0xff}, nil }
func (o *Own) GobDecode([]byte) error    { return nil }

func registerAll() {
	register("Point", Point{})
	register("main.Leaf", Leaf{})
	register("Fork", Fork{})
	register("größe/🚦", Late1{})
	register("Late2", Late2{})
	register("*main.Late3", &Late3{})
	register("Late4", Late4{})
	register("Late5", Late5{})
	register("Late6", Late6{})
	register("Box", Box{})
	register("Scalar", Scalar(0))
	register("Title", Title(""))
	register("Grid", Grid{})
	register("Tree", Tree{})
	register("Forest", Forest{})
	register("Empty", Empty{})
	register("Bytes", Bytes{})
	register("Own", Own{})
	register(strings.Repeat("n", 1024), Corner{})
	register("map[string]interface {}", map[string]any{})
	register("[]interface {}", []any{})
	for _, basic := range []any{int(0), int64(0), uint8(0), "", true, 0.5, complex(0, 0), []byte{}, []string{}} {
		registered[reflect.TypeOf(basic)] = reflect.TypeOf(basic).String() // gob does so by itself
	}
	register("time.Time", time.Time{})
}

type stream struct {
	name   string
	values []any
}

func streams() []stream {
	negativeZero := math.Copysign(0, -1)
	nan := math.NaN()
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("odd", 3661))
	seven := 7
	word := "word"
	pointer := &word
	var null any
	var box any = Late1{1}
	var leaf any = Leaf{"x"}
	all := []stream{
		{"integers", []any{uint8(255), uint16(65535), uint32(1 << 31), uint64(math.MaxUint64), uint64(1 << 63), uintptr(128),
			uint(127), int8(-128), int16(-32768), int64(math.MinInt64), int64(math.MaxInt64), Scalar(-65)}},
		{"floats", []any{negativeZero, nan, math.Inf(-1), math.SmallestNonzeroFloat64, 1e15, 1e16, 1e21, 1e22, 123456789.0,
			1.5e-7, float32(0.1), 1 << 53, float64(1 << 53), complex(nan, math.Inf(1)), complex64(complex(1, -2)),
			complex(negativeZero, 0)}},
		{"bytes", []any{[]byte{}, Bytes("b"), Words{1, 2}, [][]byte{{}, {0, 255}}, [3]byte{1, 2, 255}, []uint16{1, 300},
			map[string][]byte{"k": nil, "l": {1}}, []int8{-1}}},
		{"strings", []any{"", Title("named"), "\x00", "\ud7ff\ue000\U0010ffff", "\xed\xa0\x80", "\xc0\x80", "a\xffb",
			strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("ä", 40000), []string{"", "\xfe"}}},
		{"maps", []any{map[int]string{}, map[string]int{}, map[string]int{"z": 0, "": 1, "é": 2, "\xff": 3}, Named{"a": 1},
			map[bool]int{true: 1, false: 0}, map[uint64]bool{math.MaxUint64: true, 10: true, 9: false},
			map[int]string{-1: "a", 10: "b", 9: "c"}, map[float64]int{1: 1, 0.5: 2, 1e21: 3, math.Inf(1): 4, -2.5: 5},
			map[float64]string{nan: "n"}, map[complex128]int{1i: 1}, map[Point]string{{1, 0}: "x", {0, 2}: "y", {}: "o"},
			map[[2]int]Point{{1, 2}: {3, 4}, {}: {}}, map[Corner]int{{[2]Point{{1, 2}, {}}}: 1}, map[Point]int{},
			map[string]map[int][]string{"a": {1: {"b"}, 2: nil}}, map[string]Point{"p": {0, 1}, "q": {}},
			map[any]int{"s": 1, 2: 2, Point{1, 2}: 3, true: 4, Scalar(5): 5}, map[string]Empty{"e": {}},
			map[string]any{"n": nil, "i": 1, "m": map[string]any{"x": []any{}}}}},
		{"arrays", []any{Grid{{1, 2, 3}, {0, 0, 6}}, Zero{}, [1]string{""}, [2][]string{{"a"}, nil}, [2]Point{{1, 0}, {}},
			[3]any{nil, 1, "x"}, [200]int{199: 1}}},
		{"structs", []any{Empty{}, []Empty{{}, {}}, Derived{Base{1, 0}, &Point{0, 2}, "n"}, Derived{},
			Ignored{Before: 1, After: 2}, []struct{ A, B int }{{1, 0}, {}}, struct{ S struct{ T struct{} } }{}}},
		{"zeros", []any{Zeros{}, Zeros{F: negativeZero, C: complex(negativeZero, negativeZero), Y: []byte{}, LE: []int{},
			ME: map[string]int{}, MI: map[int]string{}, LZ: []float64{0, negativeZero}, LB: [][]byte{nil, {}},
			LS: []string{"", ""}, LE2: []Empty{{}}, LV: []any{nil, 0, "", false}, MapZ: map[string]float64{"": 0}}}},
		{"pointers", []any{&seven, &pointer, &Point{1, 2}, Pointers{}, Pointers{I: &seven, S: &pointer, P: &Point{},
			L: []*Point{{}, {1, 1}}, M: map[string]*Point{"": {}}, A: &[2]int{}, MP: &map[string]int{}, V: &null},
			Pointers{I: new(int), V: &box}}},
		{"opaque", []any{Times{}, Times{T: now, P: &now, D: 1, B: big.NewInt(-5), R: big.NewRat(1, 3),
			A: netip.MustParseAddr("fe80::1%eth0"), Own: Own{1}, L: []Own{{}, {2}}, M: map[string]time.Time{"t": now.UTC()}},
			now, &now, Own{3}, []time.Time{{}, now}, map[Own]int{{4}: 1}, struct{ V any }{Own{5}}, []any{now}}},
		{"recursive", []any{Tree{}, Tree{{}, {{}, {}}}, Forest{"a": {"b": {}}, "c": nil}, Ring{}, Ring{&Ring{&Ring{}}},
			chain(60), []any{Tree{{}}, Forest{}}}},
		{"interfaces", []any{&null, &leaf, Box{}, Box{1}, Box{Scalar(0)}, Box{Title("")}, Box{""}, Box{[]byte{1}}, Box{Point{}},
			Box{Empty{}}, Box{Grid{}}, Box{Box{}}, Box{Box{Box{Box{Leaf{"deep"}}}}}, Boxes{}, Boxes{[]any{nil, nil}},
			Box{Corner{}}, Box{int64(-1)}, Box{uint8(255)}, Box{complex(1, 2)}, Box{Bytes("b")}, Box{[]string{}}, Box{true}}},
		{"spanning-list", []any{Boxes{[]any{Late1{1}, 2, Late2{[]string{"b"}}, nil, &Late3{map[string]Late1{"c": {3}}},
			Late4{Late5{[2]any{Late6{map[int]any{1: Late1{4}}}, nil}}}}}, Boxes{[]any{Late6{}, Late5{}}}}},
		{"spanning-map", []any{map[string]any{"a": Late4{Late5{[2]any{Late6{map[int]any{7: Point{7, 0}}}, Late2{}}}},
			"b": Fork{Fork{Leaf{"l"}, Late1{1}}, Tree{{}}}, "c": Forest{"x": {}}}, Pair{Grid{}, Grid{{1}}}}},
		{"spanning-nested", []any{Box{Fork{Fork{Fork{nil, Late3{}}, Late2{[]string{""}}}, Late4{Late4{Late6{}}}}},
			Box{Late4{Late5{[2]any{Own{1}, now}}}}}},
		{"spanning-array", []any{[2]any{Late4{Late4{Late1{}}}, Late6{map[int]any{0: Late5{}}}}, [1]any{Late2{}}}},
		{"spanning-pair", []any{Pair{Leaf{"a"}, Point{1, 2}}, Pair{Corner{}, Empty{}}, Pair{B: Late5{[2]any{Late2{}, nil}}}}},
		{"unstructured", []any{map[string]any{"list": []any{map[string]any{"k": "v", "n": 1, "f": 0.5}, []any{[]any{}}, nil},
			"bytes": []byte("raw"), "names": []string{"a"}}}},
		{"wide", []any{wide(300), wide(300), []any{}}},
	}
	return all
}

func chain(length int) *Ring {
	ring := &Ring{}
	for range length {
		ring = &Ring{ring}
	}
	return ring
}

// wide returns a struct whose fields need more than one byte to be numbered, with long and non-ASCII names.
func wide(count int) any {
	fields := []reflect.StructField{}
	for i := range count {
		name := "F" + strings.Repeat("é", i) + strings.Repeat("x", i%7)
		fields = append(fields, reflect.StructField{Name: name, Type: reflect.TypeOf(0)})
	}
	value := reflect.New(reflect.StructOf(fields)).Elem()
	value.Field(0).SetInt(1)
	value.Field(count - 1).SetInt(-1)
	return value.Interface()
}
