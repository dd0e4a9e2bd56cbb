package chain

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
)

func TestAdmits(t *testing.T) {
	calls := abi.On(abi.Request, abi.ToolsCall)
	wide, narrow := abi.OnBoth(abi.ToolsCall), abi.Hooks{}
	off := false
	at := func(line string, e Entry) Entry {
		if e.Interceptor == "" {
			e.Interceptor = "v"
		}
		e.Source = "weir.yaml:" + line
		return e
	}
	for name, c := range map[string]struct {
		entries []Entry
		refused []string // what the error names; none admits
	}{
		"no policy":                           {nil, nil},
		"the same hooks":                      {[]Entry{at("5:3", Entry{Hooks: calls})}, nil},
		"narrowed away":                       {[]Entry{at("5:3", Entry{Hooks: narrow})}, nil},
		"widened":                             {[]Entry{at("5:3", Entry{Hooks: wide})}, []string{`"v"`, "weir.yaml:5:3", "may only narrow"}},
		"widened on its host":                 {[]Entry{at("5:3", Entry{Host: "h", Hooks: wide})}, []string{"weir.yaml:5:3"}},
		"widened on another host":             {[]Entry{at("5:3", Entry{Host: "other", Hooks: wide})}, nil},
		"another interceptor's":               {[]Entry{at("5:3", Entry{Interceptor: "w", Hooks: wide})}, nil},
		"widened by *":                        {[]Entry{at("5:3", Entry{Interceptor: "*", Hooks: wide})}, []string{"weir.yaml:5:3"}},
		"an entry of its own wins over *":     {[]Entry{at("5:3", Entry{Interceptor: "*", Hooks: wide}), at("6:3", Entry{Hooks: calls})}, nil},
		"widened and disabled":                {[]Entry{at("5:3", Entry{Hooks: wide, Enabled: &off})}, nil},
		"a copy is widened":                   {[]Entry{at("5:3", Entry{As: "c", Hooks: wide})}, []string{`"c"`, "weir.yaml:5:3"}},
		"a copy on another host is":           {[]Entry{at("5:3", Entry{As: "c", Host: "other", Hooks: wide})}, nil},
		"a copy is widened by *":              {[]Entry{at("5:3", Entry{Interceptor: "*", Hooks: wide}), at("6:3", Entry{As: "c"})}, []string{`"c"`, "weir.yaml:5:3"}},
		"one copy of two, beside it":          {[]Entry{at("5:3", Entry{}), at("6:3", Entry{As: "c", Hooks: calls}), at("7:3", Entry{As: "d", Hooks: wide})}, []string{`"d"`, "weir.yaml:7:3"}},
		"both, and each is named":             {[]Entry{at("5:3", Entry{Hooks: wide}), at("6:3", Entry{As: "c", Hooks: wide})}, []string{"weir.yaml:5:3", "weir.yaml:6:3"}},
		"an original that is not served":      {[]Entry{at("5:3", Entry{Interceptor: "*", Hooks: wide}), at("6:3", Entry{As: "c", Hooks: calls})}, nil},
		"another type is for the step to say": {[]Entry{at("5:3", Entry{Type: abi.Mutation})}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := NewPolicy(c.entries)
			require.NoError(t, err)
			err = p.Admits("h", &abi.Descriptor{Name: "v", Type: abi.Validation, Hooks: calls})
			if c.refused == nil {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			for _, part := range c.refused {
				require.ErrorContains(t, err, part)
			}
		})
	}
	require.NoError(t, (*Policy)(nil).Admits("h", &abi.Descriptor{Name: "v"}))
}

// What is refused by a host of our own is what fails as a step elsewhere: the
// two agree, but for other reasons than hooks.
func TestAdmitsAgreesWithThePlan(t *testing.T) {
	lists := []abi.Hooks{nil, {}, abi.On(abi.Request, abi.ToolsCall), abi.OnBoth(abi.ToolsCall), abi.OnBoth("*")}
	for _, author := range lists[2:] {
		for _, own := range lists {
			for _, every := range lists {
				for _, as := range []string{"", "c"} {
					entries := []Entry{{Interceptor: "v", As: as, Hooks: own, Source: "own"}, {Interceptor: AnyInterceptor, Hooks: every, Source: "every"}}
					p, err := NewPolicy(entries)
					require.NoError(t, err)
					v := validator("v", pass, hooks(author))
					refused := ""
					plan := NewPlan([]Listing{{Host: host("h", v), Interceptors: []abi.Descriptor{v.Descriptor}}}, p, abi.ToolsCall, abi.Request, abi.Sending, "")
					for _, s := range plan.Steps() {
						if s.Refused != nil {
							refused = s.Refused.Error()
						}
					}
					err = p.Admits("h", &v.Descriptor)
					require.Equal(t, refused != "", err != nil, "%v under %v and %v as %q: %q, %v", author, own, every, as, refused, err)
					if err != nil {
						require.True(t, strings.HasSuffix(err.Error(), refused), err)
					}
				}
			}
		}
	}
}
