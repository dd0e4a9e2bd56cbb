// Package wazero is weir's default engine: wazero, in pure Go. It compiles to
// machine code where wazero's compiler runs and interprets elsewhere.
package wazero
