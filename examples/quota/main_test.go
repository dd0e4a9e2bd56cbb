package main

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/examples/internal/moduletest"
	"github.com/weir-mcp/weir/guest/guesttest"
)

func TestModule(t *testing.T) { moduletest.Run(t) }

var threeCalls = abi.Invocation{
	Name: "quota", Event: abi.ToolsCall, Phase: abi.Request,
	Payload: json.RawMessage(`{"name":"send"}`), Config: json.RawMessage(`{"calls":3}`),
}

func TestAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		guesttest.KV(t)
		for minute := range 3 {
			for i := range 5 {
				require.Equal(t, i < 3, guesttest.Invoke(t, threeCalls).Valid, "call %d of minute %d", i+1, minute+1)
				time.Sleep(12 * time.Second)
			}
		}
	})
}

func TestWithoutAStoreNobodyIsAllowed(t *testing.T) {
	_, err := guesttest.Call(threeCalls)
	require.ErrorContains(t, err, "the store is unavailable")
}
