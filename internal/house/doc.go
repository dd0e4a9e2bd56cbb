// Package house holds the tests of the project as a whole: that the arrows
// between rooms run one way, and that the documents say what is so. It exports
// nothing.
package house
