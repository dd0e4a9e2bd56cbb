package proxy

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

func TestReadAll(t *testing.T) {
	for name, c := range map[string]struct {
		text          string
		limit, expect int64
		err           error
	}{
		"nothing":                       {"", 10, 0, nil},
		"as announced":                  {"0123456789", 10, 10, nil},
		"not announced":                 {strings.Repeat("x", 100_000), 1 << 20, -1, nil},
		"more than a length is worth":   {strings.Repeat("x", 2*unproven), 1 << 20, 2 * unproven, nil},
		"as much as a length is worth":  {strings.Repeat("x", unproven), 1 << 20, unproven, nil},
		"less than announced":           {"x", 1 << 20, 1 << 19, nil},
		"more than announced":           {strings.Repeat("x", 5000), 1 << 20, 10, nil},
		"too large, not announced":      {strings.Repeat("x", 100_000), 50_000, -1, errTooLarge},
		"too large by one":              {"0123456789a", 10, -1, errTooLarge},
		"larger than announced and may": {"0123456789a", 10, 5, errTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			for _, lent := range [][]byte{nil, make([]byte, 0, 7), make([]byte, 0, 1<<20)} {
				for _, r := range []io.Reader{strings.NewReader(c.text), iotest.OneByteReader(strings.NewReader(c.text)), iotest.DataErrReader(strings.NewReader(c.text))} {
					got, err := readAll(lent, r, c.limit, c.expect)
					require.ErrorIs(t, err, c.err)
					if c.err == nil {
						require.Equal(t, c.text, string(got))
					} else {
						require.Equal(t, c.text[:c.limit+1], string(got))
					}
				}
			}
		})
	}
	t.Run("a reader that fails", func(t *testing.T) {
		broken := errors.New("broken")
		_, err := readAll(nil, io.MultiReader(strings.NewReader("x"), iotest.ErrReader(broken)), 10, 10)
		require.ErrorIs(t, err, broken)
	})
	t.Run("a length alone takes little memory", func(t *testing.T) {
		got, err := readAll(nil, strings.NewReader("x"), 1<<30, 1<<30)
		require.NoError(t, err)
		require.LessOrEqual(t, cap(got), unproven+1)
	})
}

func TestLargeBodiesAreNotKept(t *testing.T) {
	lent := new([]byte)
	giveBack(lent, make([]byte, 10, keptBody+1))
	require.Zero(t, cap(*lent))
	giveBack(lent, make([]byte, 10, keptBody))
	require.Equal(t, keptBody, cap(*lent))
	require.Empty(t, *lent)
}
