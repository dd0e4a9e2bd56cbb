// Command buildguest builds Go guests of this module and copies them to a
// folder. It is for go generate:
//
//	//go:generate go run ../../internal/guestbuild/buildguest -o ../interceptors/ .
//
// Its arguments are packages as guestbuild.Go takes them, "." when there are
// none. It prints the files it wrote.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/weir-mcp/weir/internal/guestbuild"
)

func main() {
	out := flag.String("o", "./", "`folder` (ending in a slash) or, for one package, file to write to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, packages []string) error {
	if len(packages) == 0 {
		packages = []string{"."}
	}
	for _, pkg := range packages {
		file, err := guestbuild.Copy(ctx, pkg, out)
		if err != nil {
			return err
		}
		fmt.Println(file)
	}
	return nil
}
