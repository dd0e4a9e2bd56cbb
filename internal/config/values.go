package config

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MaxTimeout is the longest time that the file may set anywhere.
const MaxTimeout = time.Hour

// scalar returns the text of a single value, variables expanded.
func (l *loader) scalar(f field) (text string, ok bool) {
	n := f.value
	if n.kind != scalar || n.isNull() {
		l.fail(n.at, fmt.Sprintf("%s is %s, not a single value", f.name, n.what()), emptyHint(n))
		return "", false
	}
	before := len(l.errs)
	text = l.expand(n.at, n.text)
	return text, len(l.errs) == before
}

func emptyHint(n *node) string {
	if n.isNull() {
		return "give it a value or leave the key out"
	}
	return ""
}

// text reads a value that may hold secrets.
func (l *loader) text(f field) Text {
	value, ok := l.scalar(f)
	if !ok {
		return Text{}
	}
	if strings.ContainsRune(value, 0) {
		l.fail(f.value.at, f.name+" holds a NUL character", "")
		return Text{}
	}
	return Text{written: f.value.text, value: value}
}

// name reads text that is not empty.
func (l *loader) name(f field) string {
	value, ok := l.scalar(f)
	if ok && value == "" {
		l.fail(f.value.at, f.name+" is empty", "")
	}
	return value
}

// oneOf reads one of a few words.
func (l *loader) oneOf(f field, words ...string) string {
	value, ok := l.scalar(f)
	if !ok {
		return ""
	}
	if !slices.Contains(words, value) {
		l.fail(f.value.at, fmt.Sprintf("%s is %q", f.name, f.value.text), "it can be "+list(words, "or"))
		return ""
	}
	return value
}

// bool reads true or false. Quotes make text of it, unless a variable is meant.
func (l *loader) bool(f field) bool {
	value, ok := l.scalar(f)
	if !ok {
		return false
	}
	if f.value.quoted && !strings.Contains(f.value.text, "${") || value != "true" && value != "false" {
		l.fail(f.value.at, fmt.Sprintf("%s is %s", f.name, f.value.spelling()), "it can be true or false")
		return false
	}
	return value == "true"
}

// spelling is a scalar as it was written, near enough to recognise it.
func (n *node) spelling() string {
	if n.quoted || strings.ContainsFunc(n.text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(n.text)
	}
	return n.text
}

func (l *loader) integer(f field, low, high int64) int64 {
	value, ok := l.scalar(f)
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(value, 10, 64)
	quoted := f.value.quoted && !strings.Contains(f.value.text, "${")
	if err != nil || quoted || strings.HasPrefix(value, "+") || i < low || i > high {
		l.fail(f.value.at, fmt.Sprintf("%s is %s", f.name, f.value.spelling()),
			fmt.Sprintf("it can be a whole number from %d to %d", low, high))
		return 0
	}
	return i
}

// duration reads a time such as 250ms, 10s or 1m30s.
func (l *loader) duration(f field, high time.Duration) time.Duration {
	value, ok := l.scalar(f)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < time.Millisecond || d > high {
		l.fail(f.value.at, fmt.Sprintf("%s is %s", f.name, f.value.spelling()),
			fmt.Sprintf("it can be a time with a unit from 1ms to %s, such as 250ms or 10s", short(high)))
		return 0
	}
	return d
}

// short is d without the zero units that String appends.
func short(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimSuffix(d.String(), "0s"), "0m")
}

var units = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

// size reads a number of bytes such as 4KiB, 64MiB or 4096.
func (l *loader) size(f field, low, high int64) int64 {
	value, ok := l.scalar(f)
	if !ok {
		return 0
	}
	n := int64(-1)
	for _, u := range units {
		if digits, found := strings.CutSuffix(value, u.suffix); found {
			count, err := strconv.ParseUint(digits, 10, 63)
			if err == nil && int64(count) <= math.MaxInt64/u.bytes {
				n = int64(count) * u.bytes
			}
			break
		}
	}
	if n < low || n > high {
		l.fail(f.value.at, fmt.Sprintf("%s is %s", f.name, f.value.spelling()),
			fmt.Sprintf("it can be a size from %s to %s, in KiB, MiB, GiB or bytes", sizeText(low), sizeText(high)))
		return 0
	}
	return n
}

func sizeText(n int64) string {
	for _, u := range slices.Backward(units[:3]) {
		if n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// list joins words: a, b or c.
func list(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}

// elements returns the items of a list that may not be empty.
func (l *loader) elements(f field) []field {
	if f.value.kind != sequence {
		l.fail(f.value.at, fmt.Sprintf("%s is %s, not a list", f.name, f.value.what()), "write it as [a, b]")
		return nil
	}
	out := make([]field, len(f.value.items))
	for i, item := range f.value.items {
		out[i] = field{name: fmt.Sprintf("%s[%d]", f.name, i), at: item.at, value: item}
	}
	return out
}

// command reads a program and its arguments.
func (l *loader) command(f field) []Text {
	args := l.elements(f)
	if f.value.kind == sequence && len(args) == 0 {
		l.fail(f.value.at, f.name+" is empty", "write the program and its arguments as a list")
	}
	var command []Text
	for _, arg := range args {
		command = append(command, l.text(arg))
	}
	if len(args) > 0 && command[0].value == "" && l.clean(args[0].value.at) {
		l.fail(args[0].value.at, "the program has no name", "")
	}
	return command
}

// env reads a mapping of variables.
func (l *loader) env(f field) map[string]Text {
	env := make(map[string]Text)
	for _, m := range l.entries(f) {
		if !isEnvName(m.key) {
			l.fail(m.at, fmt.Sprintf("%q is not the name of an environment variable", m.key), "use letters, digits and _")
			continue
		}
		env[m.key] = l.text(m)
	}
	return env
}

// Headers that the transport writes itself, or that belong to one hop.
var ownHeaders = []string{"Accept", "Connection", "Content-Length", "Content-Type", "Host", "Keep-Alive", "Last-Event-Id",
	"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// headers reads a mapping of HTTP headers.
func (l *loader) headers(f field) map[string]Text {
	headers := make(map[string]Text)
	for _, m := range l.entries(f) {
		name := http.CanonicalHeaderKey(m.key)
		value := l.text(m)
		switch _, twice := headers[name]; {
		case !isToken(m.key):
			l.fail(m.at, fmt.Sprintf("%q is not the name of a header", m.key), "")
		case slices.Contains(ownHeaders, name) || strings.HasPrefix(name, "Mcp-"):
			l.fail(m.at, fmt.Sprintf("the header %s is written by the transport", name), "leave it out")
		case twice:
			l.fail(m.at, fmt.Sprintf("the header %s is there twice", name), "keep one")
		case strings.ContainsFunc(value.value, isControl):
			l.fail(m.value.at, fmt.Sprintf("the value of the header %s holds a control character", name), "")
		default:
			headers[name] = value
		}
	}
	return headers
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		alnum := c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) || c >= 0x80 {
			return false
		}
	}
	return s != ""
}

// url reads the address of a server.
func (l *loader) url(f field) Text {
	t := l.text(f)
	if t.IsZero() {
		return t
	}
	if what := badURL(t.value); what != "" {
		l.fail(f.value.at, f.name+" "+what, wayOutURL)
		return Text{}
	}
	return t
}

const wayOutURL = "it can be an http or https URL such as https://host.example/mcp; credentials go into headers"

// badURL says what is wrong with the address of a server, "" when nothing is.
// It never repeats the address, which may hold a secret.
func badURL(address string) string {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return "is not a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "is not an http or https URL"
	case u.User != nil:
		return "holds a user name or password"
	case u.Hostname() == "":
		return "names no host"
	case strings.Contains(address, "#"):
		return "has a fragment"
	}
	return ""
}
