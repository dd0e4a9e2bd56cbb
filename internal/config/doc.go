// Package config reads weir.yaml (config.md): values only, no behaviour. It
// knows the file's keys, their ranges and their places, and nothing of
// runtimes, hosts, chains or transports; what the values do is decided by those
// who get them.
//
// [Load] is strict. A key that is not known is an error with line, column and
// the nearest known key; a key that config.md describes and this version does
// not serve is an error that says so, because an option that is read and not
// obeyed is a guard that is not there. As many errors as can be told apart are
// reported at once ([Errors]).
//
// ${NAME} is expanded after parsing, in values only, so that a variable cannot
// change the structure of the file. What holds an expanded value prints itself
// as it was written ([Text], [JSON]) and gives the value only when asked
// (Reveal): a token in a header does not end up in a log by way of %v.
//
//	file, err := config.Load("weir.yaml", os.LookupEnv)
//	if err != nil {
//		fmt.Fprintln(os.Stderr, err) // one line for each error
//		os.Exit(2)
//	}
//	file, err = file.With(config.Flags{Hosts: []string{"team=https://team.internal/mcp"}})
//
// The schema for editors is in [Schema]; a test holds it against the loader.
//
// Everything here is pure but [Load], which reads one file. Values are safe for
// concurrent reading.
package config
