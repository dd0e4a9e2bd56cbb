package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// kind is a kind of personal data.
type kind uint8

const (
	email kind = iota
	phone
	iban
	card
	ssn
	kinds // how many there are
)

// configNames are the kinds as an operator names them; labels are what a reader
// sees in place of the data.
var (
	configNames = [kinds]string{"email", "phone", "iban", "card", "ssn"}
	labels      = [kinds]string{"email", "phone", "iban", "payment card", "ssn"}
)

// schema is written by hand: a schema derived from the struct could not list
// the kinds.
var schema = json.RawMessage(`{"type":"object","properties":{` +
	`"redact":{"type":"array","items":{"enum":["email","phone","iban","card","ssn"]},"minItems":1,"uniqueItems":true,"description":"what to redact; everything when left out"},` +
	`"replacement":{"type":"string","maxLength":64,"description":"what to put in its place; {kind} stands for the kind; [{kind}] when left out"}` +
	`},"additionalProperties":false}`)

type config struct {
	Redact      []string `json:"redact"`
	Replacement string   `json:"replacement"`

	wanted [kinds]bool
	marks  [kinds]string // what stands in place of each kind
}

// SetDefaults implements guest.Defaulter.
func (c *config) SetDefaults() {
	c.Redact = slices.Clone(configNames[:])
	c.Replacement = "[{kind}]"
}

// Check implements guest.Checker. It also prepares what the scanners look at.
func (c *config) Check() error {
	if len(c.Redact) == 0 {
		return errors.New("redact: names nothing; leave it out to redact everything")
	}
	for _, name := range c.Redact {
		i := slices.Index(configNames[:], name)
		if i < 0 {
			return fmt.Errorf("redact: %q is none of %s", name, strings.Join(configNames[:], ", "))
		}
		c.wanted[i] = true
	}
	for k := range kinds {
		c.marks[k] = strings.ReplaceAll(c.Replacement, "{kind}", labels[k])
	}
	for k := range kinds {
		r := redactor{config: c}
		if r.redact(c.marks[k]); r.found != [kinds]int{} {
			return fmt.Errorf("replacement: %q would itself be redacted", c.marks[k])
		}
	}
	return nil
}
