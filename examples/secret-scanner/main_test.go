package main

import (
	"testing"

	"github.com/weir-mcp/weir/examples/internal/moduletest"
)

func TestModule(t *testing.T) { moduletest.Run(t) }
