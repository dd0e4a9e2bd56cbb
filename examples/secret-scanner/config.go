package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// kindNames are the kinds of secrets as an operator names them.
var kindNames = []string{
	"anthropic", "aws", "azure", "digitalocean", "docker", "github", "gitlab", "google", "huggingface", "jwt", "npm", "openai",
	"private-key", "pypi", "sendgrid", "slack", "stripe", "telegram", "twilio",
}

// schema is written by hand: a schema derived from the struct could not list
// the kinds.
var schema = json.RawMessage(`{"type":"object","properties":{"kinds":{"type":"array","items":{"enum":["` +
	strings.Join(kindNames, `","`) +
	`"]},"minItems":1,"uniqueItems":true,"description":"what to look for; everything when left out"}},"additionalProperties":false}`)

type config struct {
	Kinds []string `json:"kinds"`
}

// SetDefaults implements guest.Defaulter.
func (c *config) SetDefaults() { c.Kinds = slices.Clone(kindNames) } // the decoder writes into it

// Check implements guest.Checker.
func (c *config) Check() error {
	if len(c.Kinds) == 0 {
		return errors.New("kinds: names nothing; leave it out to look for everything")
	}
	for _, k := range c.Kinds {
		if !slices.Contains(kindNames, k) {
			return fmt.Errorf("kinds: %q is none of %s", k, strings.Join(kindNames, ", "))
		}
	}
	return nil
}

func (c *config) wants(kind string) bool { return slices.Contains(c.Kinds, kind) }
