package main

import (
	"testing"

	"github.com/weir-mcp/weir/guest/guesttest"
)

func TestGolden(t *testing.T) { guesttest.Golden(t, "testdata") }
