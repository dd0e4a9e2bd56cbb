package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/internal/wasmtest"
)

// httpAnswer is what a raw HTTP request came to.
type httpAnswer struct {
	status int
	header http.Header
	body   string
}

// exchange sends one HTTP request; headers are "Name: value".
func exchange(t testing.TB, client *http.Client, method, url, body string, headers ...string) httpAnswer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
		} else {
			r.Header.Set(name, value)
		}
	}
	res, err := client.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return httpAnswer{res.StatusCode, res.Header, string(answer)}
}

var (
	servesAt    = regexp.MustCompile(`https?://127\.0\.0\.1:\d+/mcp`)
	operatorsAt = regexp.MustCompile(`"operators look at","address":"([^"]+)"`)
)

// found waits for something in what a command logs.
func found(t testing.TB, s *rawSession, what *regexp.Regexp) string {
	t.Helper()
	var match []string
	eventually(t, "it logs "+what.String(), func() bool {
		match = what.FindStringSubmatch(s.errs.String())
		return match != nil
	})
	return match[len(match)-1]
}

var rawHTTP = []string{"Content-Type: application/json", "Accept: application/json, text/event-stream"}

// The door before weir serve, with the built binary: who comes in and as whom,
// and what operators see.
func TestServeBehindItsDoor(t *testing.T) {
	t.Parallel()
	dir, conf := quotaFolder(t, "principal", `listen:
  http: 127.0.0.1:0
  admin: 127.0.0.1:0
  auth: {tokens: [{name: ci, env: WEIR_E2E_TOKEN}, {name: ops, file: ops.token}]}
  limits: {body: 64KiB}
`)
	write(t, filepath.Dir(conf), "ops.token", "from-a-file\n")
	s := startRaw(t, []string{weirBinary(t), "serve", dir, "--config", conf}, nil, "WEIR_E2E_TOKEN=s3cret-of-ci")
	t.Cleanup(s.kill)
	url := found(t, s, servesAt)
	ask := func(token, method, params string) httpAnswer {
		t.Helper()
		headers := rawHTTP
		if token != "" {
			headers = append(headers, "Authorization: Bearer "+token)
		}
		return exchange(t, http.DefaultClient, http.MethodPost, url, rpc(1, method, params), headers...)
	}
	for _, token := range []string{"", "s3cret-of-c", "s3cret-of-cix", "Bearer"} {
		answer := ask(token, "interceptors/list", "{}")
		require.Equal(t, 401, answer.status)
		require.Contains(t, answer.header.Get("WWW-Authenticate"), "Bearer")
		require.NotContains(t, answer.body, "quota")
	}
	for _, token := range []string{"s3cret-of-ci", "from-a-file"} {
		require.Contains(t, ask(token, "interceptors/list", "{}").body, `"name":"quota"`)
	}
	// What an authenticated caller says of its own callers is believed.
	call := func(context string) string {
		return ask("s3cret-of-ci", "interceptor/invoke", `{"name":"quota","event":"tools/call","phase":"request","payload":{"name":"t"},"context":`+context+`}`).body
	}
	require.Contains(t, call(ann), `"valid":true`)
	require.Contains(t, call(ann), `"valid":true`)
	require.Contains(t, call(ann), `"valid":false`)
	require.Contains(t, call(bobInS), `"valid":true`)

	large := ask("s3cret-of-ci", "interceptor/invoke", `{"payload":"`+strings.Repeat("x", 200<<10)+`"}`)
	require.Equal(t, 413, large.status)

	page := exchange(t, http.DefaultClient, http.MethodPost, url, rpc(1, "interceptors/list", "{}"), append(rawHTTP, "Authorization: Bearer s3cret-of-ci", "Origin: https://evil.example")...)
	require.Equal(t, 403, page.status)
	bent := exchange(t, http.DefaultClient, http.MethodPost, url, rpc(1, "interceptors/list", "{}"), append(rawHTTP, "Authorization: Bearer s3cret-of-ci", "Host: evil.example")...)
	require.Equal(t, 403, bent.status)

	root := strings.TrimSuffix(url, "/mcp")
	require.Equal(t, "ok\n", exchange(t, http.DefaultClient, http.MethodGet, root+"/healthz", "").body)
	require.Equal(t, 200, exchange(t, http.DefaultClient, http.MethodGet, root+"/readyz", "").status)
	operators := "http://" + found(t, s, operatorsAt)
	require.Equal(t, "ok\n", exchange(t, http.DefaultClient, http.MethodGet, operators+"/readyz", "").body)
	require.NotContains(t, s.errs.String(), "s3cret-of-ci")
	require.NotContains(t, s.errs.String(), "from-a-file")
}

// certificate writes a self-signed pair for the loopback, and gives a client that
// trusts it.
func certificate(t testing.TB, dir string) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	write(t, dir, "c.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, dir, "k.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
}

func TestServeOverTLS(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	dir := t.TempDir()
	placeModule(t, dir, "v", wasmtest.Allowing("v"))
	client := certificate(t, top)
	defer client.CloseIdleConnections()
	conf := write(t, top, "weir.yaml", "version: 1\nlisten: {tls: {cert: c.pem, key: k.pem}}\n")
	s := startRaw(t, []string{weirBinary(t), "serve", dir, "--config", conf, "--http", "127.0.0.1:0"}, nil)
	t.Cleanup(s.kill)
	url := found(t, s, servesAt)
	require.True(t, strings.HasPrefix(url, "https://"), url)
	answer := exchange(t, client, http.MethodPost, url, rpc(1, "interceptors/list", "{}"), rawHTTP...)
	require.Contains(t, answer.body, `"name":"v"`)
}
