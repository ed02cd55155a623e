package main

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
)

// The build puts three files beside payload/README.md: `tree.tar.zst`; `identity`, one line of the tree's name (a digest
// of the compressed file) and its bytes on disk; and `files`, a line `BYTES PATH` for each file in the tree.
//
//go:embed payload
var carried embed.FS

// tree describes the tree that this executable carries.
type tree struct {
	name  string
	bytes uint64
	files []byte
	open  func() (io.ReadCloser, error)
}

func carriedTree() tree {
	described := tree{open: func() (io.ReadCloser, error) { return openFile("payload/tree.tar.zst") }}
	identity, err := carried.ReadFile("payload/identity")
	if err == nil {
		_, err = fmt.Sscan(string(identity), &described.name, &described.bytes)
	}
	if err == nil {
		described.files, err = carried.ReadFile("payload/files")
	}
	if err != nil {
		// Only an executable that the build did not make can come here; opening says so.
		described.open = func() (io.ReadCloser, error) {
			return nil, failf(exitDamaged, "this executable carries no plugin: it was built without a payload")
		}
		described.name = "none"
	}
	return described
}

func openFile(name string) (fs.File, error) { return carried.Open(name) }

func (t tree) mebibytes() uint64 { return (t.bytes + (1 << 20) - 1) >> 20 }

// Room for the tree twice: while an upgrade unpacks, the older tree is still in use.
func (t tree) neededMebibytes() uint64 { return 2 * t.mebibytes() }
