// Package nearest finds what a misspelled name was meant to be, for the way out
// in an error or a warning. It knows nothing of what the names stand for.
//
// Use it where a closed list of names is known and what was given is none of
// them.
package nearest

import "strings"

// Of gives the candidate that name is most likely a misspelling of, the first
// of several that are equally near, or "" where none is near: one that takes
// more than two changes, or a change to every third character of a long name, or
// to every character of the candidate. Upper and lower case do not count.
func Of(name string, candidates []string) string {
	if len(name) > 4*longest { // no more runes than that, whatever they are
		return ""
	}
	best, distance := "", max(2, len(name)/3)+1
	for _, candidate := range candidates {
		if d := edits(strings.ToLower(name), strings.ToLower(candidate)); d < distance {
			best, distance = candidate, d
		}
	}
	if distance >= len(best) {
		return ""
	}
	return best
}

// longest is how many characters a name may have to be compared: longer ones
// are no misspelling of anything.
const longest = 40

// edits is the number of characters to insert, remove, replace or swap with
// their neighbour to turn a into b, or longest where one of them is too long.
func edits(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > longest || len(y) > longest {
		return longest
	}
	older, old, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range old {
		old[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			differs := 1
			if x[i-1] == y[j-1] {
				differs = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+differs)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, old, row = old, row, older
	}
	return old[len(y)]
}
