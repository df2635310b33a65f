// Package ferretdb names what services/ferretdb.py builds, so that go.mod and go.sum pin it.
//
//go:build pin

package ferretdb

import _ "github.com/FerretDB/FerretDB/cmd/ferretdb"
