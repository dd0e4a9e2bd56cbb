package main

import "strings"

// barePart returns the part of a URI that says which resource it is, without
// what may be a secret or the content itself: user and password, query,
// fragment, and all of a data: URI but its type.
func barePart(uri string) string {
	scheme, rest, ok := strings.Cut(uri, ":")
	if !ok || strings.ContainsAny(scheme, "/?#") {
		return cutTail(uri)
	}
	if strings.EqualFold(scheme, "data") {
		kind, _, _ := strings.Cut(rest, ",")
		return scheme + ":" + cutTail(kind)
	}
	rest = cutTail(rest)
	if !strings.HasPrefix(rest, "//") {
		return scheme + ":" + rest
	}
	authority, path := rest[2:], ""
	if i := strings.IndexByte(authority, '/'); i >= 0 {
		authority, path = authority[:i], authority[i:]
	}
	return scheme + "://" + authority[strings.LastIndexByte(authority, '@')+1:] + path
}

// cutTail cuts off the query and the fragment.
func cutTail(s string) string {
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		return s[:i]
	}
	return s
}
