//go:build !unix

package cache

import "testing"

func systemDamages() map[string]func(t *testing.T, c *Cache, path string, whole []byte) { return nil }
func systemSecretDamages() map[string]func(t *testing.T, path string)                   { return nil }
