package door

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// Certificate is a certificate chain and its key in files, which somebody may
// renew. It is safe for concurrent use.
type Certificate struct {
	cert, key string

	mu       sync.Mutex
	current  *tls.Certificate
	modified [2]time.Time
	looked   time.Time
}

// lookEvery is how often the files are looked at, at most.
const lookEvery = time.Second

// LoadCertificate reads the files. The error names them.
func LoadCertificate(cert, key string) (*Certificate, error) {
	c := &Certificate{cert: cert, key: key}
	if err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// Config is the TLS configuration of a server: TLS 1.2 and later.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return c.get(time.Now()), nil
		},
	}
}

// get gives what the files hold now. Files that are being replaced, or are no
// pair, leave the last good pair in service.
func (c *Certificate) get(now time.Time) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.looked) >= lookEvery {
		c.looked = now
		if modified, err := c.times(); err == nil && modified != c.modified {
			_ = c.load()
		}
	}
	return c.current
}

func (c *Certificate) times() (modified [2]time.Time, err error) {
	for i, path := range []string{c.cert, c.key} {
		info, err := os.Stat(path)
		if err != nil {
			return modified, err
		}
		modified[i] = info.ModTime()
	}
	return modified, nil
}

func (c *Certificate) load() error {
	modified, err := c.times()
	if err != nil {
		return fmt.Errorf("the certificate cannot be read: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("the certificate %s and the key %s: %w", c.cert, c.key, err)
	}
	c.current, c.modified = &pair, modified
	return nil
}
