package config

import _ "embed"

// Schema is a JSON Schema (draft 2020-12) of the file, for editors. It says
// what can be said without the environment and without looking from one place
// of the file to another; [Load] is stricter.
//
//go:embed weir.schema.json
var Schema []byte
