// Package runtime is the sandbox.
package runtime
