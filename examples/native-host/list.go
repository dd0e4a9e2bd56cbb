package main

import "strings"

// list is a flag of words with commas between. Setting it replaces the default.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, ",") }

// Set implements flag.Value. Empty words are left out, so that "" is none.
func (l *list) Set(s string) error {
	*l = nil
	for word := range strings.SplitSeq(s, ",") {
		if word != "" {
			*l = append(*l, word)
		}
	}
	return nil
}
