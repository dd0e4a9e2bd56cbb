package config_test

import (
	"fmt"

	"github.com/weir-mcp/weir/internal/config"
)

func Example() {
	env := func(name string) (string, bool) { return "s3cret", name == "SEC_TOKEN" }

	_, err := config.Parse("weir.yaml", []byte("version: 1\ntimeout: 10\nhots: []\n"), env)
	fmt.Println(err)

	file, err := config.Parse("weir.yaml", []byte(`
version: 1
hosts:
  - {name: security, url: "https://sec.internal/mcp", headers: {Authorization: "Bearer ${SEC_TOKEN}"}}
`), env)
	if err != nil {
		panic(err)
	}
	file, err = file.With(config.Flags{Hosts: []string{"./interceptors"}})
	if err != nil {
		panic(err)
	}
	for _, h := range file.Hosts {
		fmt.Println(h.Name, h.URL, h.Modules, h.Headers["Authorization"])
	}
	// Output:
	// weir.yaml:2:10: timeout is 10; it can be a time with a unit from 1ms to 1h, such as 250ms or 10s
	// weir.yaml:3:1: there is no key "hots"; did you mean "hosts"?
	// security https://sec.internal/mcp  Bearer ${SEC_TOKEN}
	// host1  ./interceptors
}
