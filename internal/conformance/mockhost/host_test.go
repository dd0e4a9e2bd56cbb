package mockhost_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/internal/conformance/mockhost"
)

func invocation(name string) abi.Invocation {
	return abi.Invocation{Name: name, Event: abi.ToolsCall, Phase: abi.Request, Payload: []byte(`{"name":"t"}`)}
}

func names(t *testing.T, h *mockhost.Host, cursor string) (names []string, next string) {
	t.Helper()
	raw, err := h.Page(cursor)
	require.NoError(t, err)
	page, err := abi.ReadPage(raw)
	require.NoError(t, err, "%s", raw)
	for _, d := range page.Interceptors {
		names = append(names, d.Name)
	}
	for _, s := range page.Skipped {
		names = append(names, "not "+s.Name)
	}
	return names, page.NextCursor
}

func TestPages(t *testing.T) {
	h := mockhost.New("h", mockhost.Mutator("a", mockhost.Tag), mockhost.Validator("b", mockhost.Pass), mockhost.Sink("c", mockhost.Recorded))
	h.Bad = []string{`{"name":"d","type":"filter"}`, `{"name":"e"}`}
	all, next := names(t, h, "")
	require.Equal(t, []string{"a", "b", "c", "not d", "not e"}, all)
	require.Empty(t, next)

	h.PageSize = 2
	var paged []string
	for cursor, more := "", true; more; more = cursor != "" {
		all, cursor = names(t, h, cursor)
		paged = append(paged, all...)
	}
	require.Equal(t, []string{"a", "b", "c", "not d", "not e"}, paged)
	_, err := h.Page("from 99")
	require.Error(t, err)
	_, err = h.Page("nonsense")
	require.Error(t, err)

	h.PageSize, h.Endless = 0, true
	_, next = names(t, h, "")
	_, again := names(t, h, next)
	require.Equal(t, next, again)
}

func TestInvokeRecordsAndDoesAsTold(t *testing.T) {
	h := mockhost.New("h",
		mockhost.Describe("filter", "twice", mockhost.Broken),
		mockhost.Validator("twice", mockhost.Pass),
		mockhost.Validator("deny", mockhost.Deny("t")),
		mockhost.Mutator("same", mockhost.Unmodified),
		mockhost.Mutator("none", mockhost.Replace("")),
		mockhost.Validator("raw", mockhost.Raw(`{"type":"validation","interceptor":"raw","phase":"request","valid":true}`)),
		mockhost.Validator("junk", mockhost.Raw(`[]`)),
		mockhost.Validator("drop", mockhost.Drop),
	)
	var told []string
	h.Record = func(inv abi.Invocation) { told = append(told, inv.Name) }
	ask := func(name string) (abi.Result, error) { return h.Invoke(t.Context(), invocation(name)) }

	r, err := ask("twice")
	require.NoError(t, err, "the first of the name that is well-formed")
	require.True(t, r.Valid)
	r, err = ask("deny")
	require.NoError(t, err)
	require.True(t, r.Blocks())
	r, err = ask("same")
	require.NoError(t, err)
	require.False(t, r.Modified)
	r, err = ask("none")
	require.NoError(t, err)
	require.True(t, r.Modified)
	require.Nil(t, r.Payload)
	r, err = ask("raw")
	require.NoError(t, err)
	require.True(t, r.Valid)
	_, err = ask("junk")
	require.Equal(t, abi.ReasonBadOutput, abi.AsError(err, "", "").Reason)
	_, err = ask("drop")
	require.ErrorIs(t, err, mockhost.ErrDropped)
	_, err = ask("nobody")
	failure, ok := errors.AsType[*abi.Error](err)
	require.True(t, ok && failure.Unknown)

	require.Equal(t, []string{"twice", "deny", "same", "none", "raw", "junk", "drop", "nobody"}, told)
	require.Len(t, h.All(), len(told))
	require.Equal(t, `{"name":"t"}`, string(h.Calls("deny")[0].Payload))
}

func TestSlowBehaviours(t *testing.T) {
	for name, c := range map[string]struct {
		does mockhost.Behaviour
		took time.Duration
		err  error
	}{
		"after":          {mockhost.After(time.Second/2, mockhost.Pass), time.Second / 2, nil},
		"after too long": {mockhost.After(time.Hour, mockhost.Pass), time.Second, context.DeadlineExceeded},
		"hang":           {mockhost.Hang, time.Second, context.DeadlineExceeded},
		"deaf":           {mockhost.Deaf(time.Hour, mockhost.Pass), time.Hour, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				_, err := mockhost.New("h", mockhost.Validator("v", c.does)).Invoke(ctx, invocation("v"))
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.took, time.Since(start))
			})
		})
	}
}

func TestRecordHammer(t *testing.T) {
	h := mockhost.New("h", mockhost.Mutator("m", mockhost.Tag))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				_, _ = h.Invoke(t.Context(), invocation("m"))
				h.Calls("m")
			}
		})
	}
	all.Wait()
	require.Len(t, h.All(), 800)
}
