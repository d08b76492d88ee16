//go:build tools

// Package tools names the client of TPC-C that the tests run, so that go.mod and go.sum hold its
// version and the sums of all that it is made of. `make test` builds it into .venv/bin:
//
//	go build -mod=readonly -o ../../../.venv/bin/ github.com/pingcap/go-tpc/cmd/go-tpc
//
// Another version: go get github.com/pingcap/go-tpc@VERSION && go mod tidy; then, to keep sums of
// what is built only, remove go.sum and build with -mod=mod.
package tools

import _ "github.com/pingcap/go-tpc/cmd/go-tpc"
