package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"

	"github.com/weir-mcp/weir/gateway/relay"
	"github.com/weir-mcp/weir/internal/mirror"
)

// hopByHop are the headers that concern one connection (RFC 9110 §7.6.1), and
// those that the proxy sets itself.
var hopByHop = []string{
	"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Content-Length", "Expect",
}

// digests are headers that vouch for the bytes of a body.
var digests = []string{"Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "Etag", "Signature", "Signature-Input"}

// single are the headers of a request that two readers must not read in two ways.
var single = []string{"Content-Type", mirror.SessionHeader, mirror.VersionHeader, mirror.LastEventIDHeader, mirror.MethodHeader, mirror.NameHeader}

// withoutHops is a copy of h for the next connection.
func withoutHops(h http.Header) http.Header {
	c := h.Clone()
	if c == nil {
		c = http.Header{}
	}
	for _, name := range hops(h) {
		delete(c, name)
	}
	for _, name := range hopByHop {
		delete(c, name)
	}
	return c
}

// hops are the headers that the header Connection names, in canonical form.
func hops(h http.Header) (names []string) {
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = textproto.TrimString(name); name != "" {
				names = append(names, textproto.CanonicalMIMEHeaderKey(name))
			}
		}
	}
	return names
}

func dropDigests(h http.Header) {
	for _, name := range digests {
		delete(h, name)
	}
}

// unreadable says why a message with these headers is not read: what is not read
// is not governed. The status is 0 when it is.
func unreadable(h http.Header) (string, int) {
	for _, name := range single {
		if len(h[textproto.CanonicalMIMEHeaderKey(name)]) > 1 {
			return "a header that must stand alone stands there twice", http.StatusBadRequest
		}
	}
	for _, name := range hops(h) {
		// It would be read here and be gone for the backend.
		if slices.Contains(single, name) || strings.HasPrefix(name, mirror.ParamPrefix) {
			return "the header Connection names one that is about the message", http.StatusBadRequest
		}
	}
	if !identity(h) {
		return "compressed messages are not accepted", http.StatusUnsupportedMediaType
	}
	if _, ok := mediaType(h); !ok {
		return "messages are JSON in UTF-8", http.StatusUnsupportedMediaType
	}
	return "", 0
}

// identity says that a body is sent as it is.
func identity(h http.Header) bool {
	for _, v := range h["Content-Encoding"] {
		if v = textproto.TrimString(v); v != "" && !strings.EqualFold(v, "identity") {
			return false
		}
	}
	return true
}

// mediaType gives the type of a body, empty when there is none. It is false when
// the type cannot be read, stands there twice, or names another encoding than
// UTF-8: then somebody else would read another message.
func mediaType(h http.Header) (string, bool) {
	if len(h["Content-Type"]) > 1 {
		return "", false
	}
	v := h.Get("Content-Type")
	if v == "" || v == typeJSON || v == typeSSE {
		return v, true
	}
	t, params, err := mime.ParseMediaType(v)
	if err != nil {
		return "", false
	}
	switch strings.ToLower(params["charset"]) {
	case "", "utf-8", "utf8", "us-ascii":
		return t, true
	default:
		return t, false
	}
}

// outbound makes a request to the backend out of the client's.
func (x *exchange) outbound(ctx context.Context, method string, body []byte) *http.Request {
	h := withoutHops(x.r.Header)
	if relay.PrincipalFrom(x.r.Context()) != nil {
		// It was for the gateway.
		delete(h, "Authorization")
	}
	for name, values := range x.p.o.Headers {
		h[textproto.CanonicalMIMEHeaderKey(name)] = values
	}
	return x.p.request(ctx, method, x.p.target(x.r.URL.RawQuery), h, body)
}

// target is the backend's endpoint with what the client adds to it.
func (p *Proxy) target(query string) *url.URL {
	u := *p.backend
	switch {
	case u.RawQuery == "":
		u.RawQuery = query
	case query != "":
		u.RawQuery += "&" + query
	}
	return &u
}

func (p *Proxy) request(ctx context.Context, method string, to *url.URL, h http.Header, body []byte) *http.Request {
	// What the client accepts for itself is not what can be governed.
	h.Set("Accept-Encoding", "identity")
	if _, ok := h["User-Agent"]; !ok {
		h["User-Agent"] = []string{""} // not that of Go
	}
	req := (&http.Request{Method: method, URL: to, Host: to.Host, Header: h, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if body != nil {
		req.ContentLength = int64(len(body))
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	return req
}

// roundTrip makes a request to the backend. A status that is none, or that makes
// the connection one of another protocol, which nobody has asked for, is an error:
// it cannot be passed on.
func (p *Proxy) roundTrip(req *http.Request) (*http.Response, error) {
	res, err := p.o.Transport.RoundTrip(req)
	if err == nil && (res.StatusCode < http.StatusOK || res.StatusCode > 999) {
		res.Body.Close()
		return nil, fmt.Errorf("the backend answers with the status %d", res.StatusCode)
	}
	return res, err
}

// ownMessage takes away what the client said about its own message.
func ownMessage(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, mirror.ParamPrefix) {
			delete(h, name)
		}
	}
	for _, name := range []string{mirror.MethodHeader, mirror.NameHeader, mirror.LastEventIDHeader} {
		h.Del(name)
	}
	dropDigests(h)
	h.Set("Content-Type", typeJSON)
	h.Set("Accept", typeJSON+", "+typeSSE)
}

// head passes on the headers and the status of an answer of the backend.
func (x *exchange) head(res *http.Response, changed bool) http.Header {
	h := x.w.Header()
	for name, values := range withoutHops(res.Header) {
		h[name] = values
	}
	delete(h, "Content-Encoding")
	if changed {
		dropDigests(h)
	}
	return h
}
