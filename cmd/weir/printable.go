package main

import "strconv"

// printable is a stranger's word for a terminal: line breaks, escape sequences
// and whatever else moves a cursor or hides text are spelled out.
func printable(s string) string {
	quoted := strconv.QuoteToGraphic(s)
	if len(quoted) == len(s)+2 {
		return s
	}
	plain := quoted[1 : len(quoted)-1]
	out := make([]byte, 0, len(plain))
	for i := 0; i < len(plain); i++ {
		if plain[i] == '\\' && i+1 < len(plain) && (plain[i+1] == '"' || plain[i+1] == '\\') {
			i++ // neither needs an escape here
		}
		out = append(out, plain[i])
	}
	return string(out)
}

// printables is printable of each.
func printables(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = printable(s)
	}
	return out
}
