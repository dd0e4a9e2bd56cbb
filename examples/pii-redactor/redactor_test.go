package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/weir-mcp/weir/abi"
	"github.com/weir-mcp/weir/guest"
	"github.com/weir-mcp/weir/guest/guesttest"
)

// everything is the config in force where there is none.
func everything(t testing.TB) *config {
	c := &config{}
	c.SetDefaults()
	require.NoError(t, c.Check())
	return c
}

func redacted(t testing.TB, s string) string {
	r := redactor{config: everything(t)}
	return r.redact(s)
}

func TestEmails(t *testing.T) {
	for in, want := range map[string]string{
		"jane@example.com":                        "[email]",
		"Jane.Doe+tag@mail.example.co.uk, please": "[email], please",
		"<jane@example.com>; bob@example.org.":    "<[email]>; [email].",
		"mailto:jane@example.com?subject=x":       "mailto:[email]?subject=x",
		"'jane@example.com'":                      "'[email]'",
		"o'brien@example.com":                     "[email]",
		"to=jane@example.com&x=1":                 "to=[email]&x=1",
		"josé@exämple.com":                        "[email]",
		"用户@例子.广告":                                "[email]",
		"邮箱：abc@example.com。":                     "邮箱：[email]。",
		"a@b.co@c.de":                             "[email]@c.de",
		"jane@example.com-4111111111111111":       "[email]-[payment card]",
		`{"a":"x\nnoah@example.com"}`:             `{"a":"x\n[email]"}`,
		"4111111111111111@example.com":            "[email]",
		"_x_@sub-domain.example.museum":           "[email]",
	} {
		require.Equal(t, want, redacted(t, in), in)
	}
}

func TestPhones(t *testing.T) {
	for in, want := range map[string]string{
		"+4915112345678":                    "[phone]",
		"+49 151 123 456 78":                "[phone]",
		"+49 (0)30 1234567":                 "[phone]",
		"+1 (212) 555-0123":                 "[phone]",
		"+1-212-555-0123 ext 5":             "[phone] ext 5",
		"+33 1 42 68 53 00.":                "[phone].",
		"(+49) 30/1234567":                  "([phone]",
		"0049 30 1234567":                   "[phone]",
		"tel:+442079460958":                 "tel:[phone]",
		"212-555-0123":                      "[phone]",
		"(212) 555-0123":                    "[phone]",
		"(212)555-0123":                     "[phone]",
		"212.555.0123":                      "[phone]",
		"212 555 0123":                      "[phone]",
		"1-800-555-0199":                    "[phone]",
		"call 2 212 555 0123 no 212-555-9":  "call 2 212 555 0123 no 212-555-9",
		"030 1234567":                       "[phone]",
		"030/123 45 67":                     "[phone]",
		"0171-2345678":                      "[phone]",
		"(020) 7946 0958":                   "[phone]",
		"020 7946 0958":                     "[phone]",
		"06 12 34 56 78":                    "[phone]",
		"01.42.68.53.00":                    "[phone]",
		"03-1234-5678":                      "[phone]",
		"电话:+8613812345678":                 "电话:[phone]",
		"Tel. 030 1234567\\nTel. 0171/2345": "Tel. [phone]\\nTel. 0171/2345",
		"+49 30 1234567, +49 30 7654321":    "[phone], [phone]",
		"+49 30 1234567/+49 30 7654321":     "[phone]/[phone]",
	} {
		require.Equal(t, want, redacted(t, in), in)
	}
}

func TestIBANs(t *testing.T) {
	for in, want := range map[string]string{
		"DE89370400440532013000":                  "[iban]",
		"DE89 3704 0044 0532 0130 00":             "[iban]",
		"de89 3704 0044 0532 0130 00":             "[iban]",
		"GB82-WEST-1234-5698-7654-32":             "[iban]",
		"IBAN: FR14 2004 1010 0505 0001 3M02 606": "IBAN: [iban]",
		"NO9386011117947":                         "[iban]",
		"MT84MALT011000012345MTLCAST001S.":        "[iban].",
		"DE88370400440532013000":                  "DE88370400440532013000",  // the check fails
		"DE8937040044053201300":                   "DE8937040044053201300",   // too short
		"DE893704004405320130000":                 "DE893704004405320130000", // too long
		"XX89370400440532013000":                  "XX89370400440532013000",  // no such country
		"ADE89370400440532013000":                 "ADE89370400440532013000", // not where a word begins
	} {
		require.Equal(t, want, redacted(t, in), in)
	}
}

func TestMod97(t *testing.T) {
	for _, valid := range []string{
		"GB82WEST12345698765432", "BE68539007547034", "CH9300762011623852957", "NL91ABNA0417164300", "SE4550000000058398257466",
		"SA0380000000608010167519", "LC55HEMM000100010012001200023015", "gb82west12345698765432",
	} {
		require.Equal(t, 1, mod97([]byte(valid)), valid)
		require.Equal(t, len(valid), ibanLength(valid[0], valid[1]), valid)
		require.Equal(t, len(valid), ibanEnd(valid, 0), valid)
		for i := range len(valid) { // it finds every single wrong digit
			if wrong := []byte(valid); isDigit(wrong[i]) {
				wrong[i] = '0' + (wrong[i]-'0'+1)%10
				require.NotEqual(t, 1, mod97(wrong), string(wrong))
			}
		}
	}
	for country, n := range ibanLengths {
		require.LessOrEqual(t, n, maxIBAN, string(country[:]))
		require.GreaterOrEqual(t, n, 15, string(country[:]))
	}
}

func TestCards(t *testing.T) {
	for in, want := range map[string]string{
		"4111111111111111":                  "[payment card]",
		"4111 1111 1111 1111":               "[payment card]",
		"4111-1111-1111-1111":               "[payment card]",
		"card 5555555555554444, exp 12/27":  "card [payment card], exp 12/27",
		"378282246310005":                   "[payment card]", // American Express
		"3782 822463 10005":                 "[payment card]",
		"30569309025904":                    "[payment card]", // Diners Club
		"6011111111111117":                  "[payment card]", // Discover
		"3530111333300000":                  "[payment card]", // JCB
		"6200000000000005":                  "[payment card]", // UnionPay
		"2223003122003222":                  "[payment card]", // Mastercard's second range
		"4222222222222":                     "[payment card]", // Visa of 13 digits
		"6304000000000000":                  "[payment card]", // Maestro
		"+4111111111111111":                 "+[payment card]",
		"4111 1111 1111 1111 2027":          "[payment card] 2027",
		"pan=4111111111111111&cvv=1":        "pan=[payment card]&cvv=1",
		`{"pan":"\t4111111111111111"}`:      `{"pan":"\t[payment card]"}`,
		"4111111111111112":                  "4111111111111112",        // the check fails
		"4111 1111-1111 1111":               "4111 1111-1111 1111",     // two kinds of gaps
		"9111111111111111":                  "9111111111111111",        // no issuer's
		"x4111111111111111":                 "x4111111111111111",       // not where a word begins
		"41111111111111111111":              "41111111111111111111",    // twenty digits
		"0.4111111111111111":                "0.4111111111111111",      // a fraction
		"4111111111111111.5":                "4111111111111111.5",      // a number with one
		"41 11 11 11 11 11 11 11":           "41 11 11 11 11 11 11 11", // groups of two
		"411111111111111111111111111111111": "411111111111111111111111111111111",
	} {
		require.Equal(t, want, redacted(t, in), in)
	}
}

func TestLuhn(t *testing.T) {
	for _, valid := range []string{"79927398713", "0", "18", "4111111111111111", "378282246310005", "30569309025904"} {
		require.True(t, luhn([]byte(valid)), valid)
		for i := range len(valid) { // it finds every single wrong digit
			wrong := []byte(valid)
			wrong[i] = '0' + (wrong[i]-'0'+1)%10
			require.False(t, luhn(wrong), string(wrong))
		}
	}
}

func TestSocialSecurityNumbers(t *testing.T) {
	for in, want := range map[string]string{
		"123-45-6789":      "[ssn]",
		"SSN 123 45 6789.": "SSN [ssn].",
		"899-99-9999":      "[ssn]",
		"000-12-3456":      "000-12-3456",
		"666-12-3456":      "666-12-3456",
		"900-12-3456":      "900-12-3456",
		"123-00-4567":      "123-00-4567",
		"123-45-0000":      "123-45-0000",
		"123-45 6789":      "123-45 6789",
		"123456789":        "123456789",
		"123-45-67890":     "123-45-67890",
		"1-123-45-6789":    "1-123-45-6789",
		"123-45-6789-1":    "123-45-6789-1",
		"2001/123-45-6789": "2001/123-45-6789",
		"x123-45-6789":     "x123-45-6789",
	} {
		require.Equal(t, want, redacted(t, in), in)
	}
}

// innocent looks like personal data and is none.
var innocent = []string{
	"123e4567-e89b-12d3-a456-426614174000", "12345678-1234-4234-8234-123456789012", "{00000000-0000-4000-8000-000000000000}",
	"2026-10-08", "2026-10-08T12:34:56Z", "2026-10-08T12:34:56.123456+02:00", "2026-10-08 12:34:56 +0200", "08.10.2026", "10/08/2026",
	"08-10-2026 12:34:56", "01/02/2024 12:30", "01-02-2024 10:30:00", "20261008-123456", "1791000000", "1791000000123", "1791000000123456",
	"Thu, 08 Oct 2026 12:34:56 GMT", "12:34:56.789",
	"1.2.3", "v1.22.333", "1.22.333.4444", "10.0.0.1", "192.168.100.200:8080", "2001:db8::8a2e:370:7334", "go1.26.8 linux/amd64",
	"lodash@4.17.21", "actions/checkout@v4", "icon@2x.png", "@user", "user@localhost", "a @ b.com", "foo@", "@example.com", "x@y",
	"d41d8cd98f00b204e9800998ecf8427e", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "0xdeadbeef12345678",
	"$1,234,567.89", "1 234 567,89 EUR", "-123.456789012345", "3.14159265358979", "99.99", "1e400", "1234567.00",
	"order 1234567890", "order #212-555-0123", "INV-2026-000123456", "SKU 0012345678", "978-3-16-148410-0", "part 12-3456-789",
	"ISO 9001:2015", "RFC 9535", "port 65535", "pid 12345", "100 200 3000 40000", "12 345 678 9012", "0 1 2 3 4 5 6 7 8 9",
	"2 345 678 9012 3", "1,2,3,4,5,6,7,8,9,10,11,12,13,14", "00:1B:44:11:3A:B7", "48.8588443, 2.2943506", "1-2-3-4-5-6-7-8-9-0",
	"9007199254740993", "18446744073709551615", "2147483647", "line 120: col 45", "4 x 100 m: 37.10", "0000000000000000",
}

func TestInnocentStringsStay(t *testing.T) {
	for _, s := range innocent {
		require.Equal(t, s, redacted(t, s))
		around := "(" + s + "), \"" + s + "\"; \\n" + s + "\n"
		require.Equal(t, around, redacted(t, around))
	}
}

// Strings that make a careless scanner quadratic. At this size such a one needs
// hours; all of them together are done in a second or two.
func TestHostileStringsAreLinear(t *testing.T) {
	const size = 1 << 19
	c := everything(t)
	for _, unit := range []string{
		"@", "a@", "a@b", "a@b.", "a@b.c", ".@", "a.", "a-", "a@a.a", "@a.aa1", "é", "é@", "é.", "\\n@", "%", "a'",
		"1", "1 ", "1-", "4111 ", "4111-", "4111", "0", "00", "00 1", "0.", "(", "(0", "+", "+1", "+1 ", "+1-", "+-", "+1(", ")(", "1/",
		"DE89 ", "DE89", "DE89 3704 0044 0532 0130 0", "DE89-", "LC55HEMM", "123-45-", "123 45 678", "212-555-", "212 555 01", "030 1", "0171/", "01.",
		"4111111111111112 ", "1 212 555 012 ",
	} {
		for _, frame := range [][2]string{{"a@b.co ", " a@b.co"}, {"1", "@a.b"}} {
			s := frame[0] + strings.Repeat(unit, size/len(unit)) + frame[1]
			r := redactor{config: c}
			r.redact(s)
		}
	}
}

func TestNumbersInJSONStay(t *testing.T) {
	raw := json.RawMessage(`{"name":"x","arguments":{"card":4111111111111111,"big":1e400}}`)
	r := guesttest.Invoke(t, abi.Invocation{Name: "pii-redactor", Event: abi.ToolsCall, Phase: abi.Request, Payload: raw})
	require.False(t, r.Modified)
}

func TestDescriptor(t *testing.T) {
	list := guesttest.Descriptors(t)
	require.Len(t, list, 1)
	require.Equal(t, int32(-1000), list[0].PriorityHint.For(abi.Request))
	require.True(t, json.Valid(schema))
	for _, name := range configNames {
		require.Contains(t, string(schema), `"`+name+`"`)
	}
}

var seeds = []string{
	"jane@example.com", "+49 30 1234567 DE89 3704 0044 0532 0130 00", "4111 1111 1111 1111-123-45-6789", "030 1234567:030 1234567",
	"212 555 0123 212 555 0123 030 1234567", "a@b.co-4111111111111111", "é+49é30@ß.de", "123-45-6789+4915112345678", "\\n4111111111111111",
	"+4111 1111 1111 1111", "4111111111111111.4111111111111111", "1 212 555 0123 (212) 555-0123", "00 49 30 1234567 0049 1",
	"0171/123 45 67 0171/123 45 67-1", "a'@b.cc.1", "x@y.zz..@", "\xff@\xff.com", "123 45 6789 123 45 6789",
}

// What was redacted once has nothing left to redact, and what the marks stand
// for is gone.
func FuzzRedactingTwiceIsRedactingOnce(f *testing.F) {
	for _, s := range append(seeds, innocent...) {
		f.Add(s, uint8(0))
	}
	f.Fuzz(func(t *testing.T, s string, which uint8) {
		c := everything(t)
		if which != 0 {
			for k := range kinds {
				c.wanted[k] = which&(1<<k) != 0
			}
		}
		r := redactor{config: c}
		once := r.redact(s)
		require.Equal(t, once, r.redact(once), "%q", s)
	})
}

// The result is the payload with strings replaced: JSON still, and every byte
// that is not of a string that held something as it was.
func FuzzPayloads(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(`{"a":[` + string(guest.AppendText(nil, s)) + `, 1.0, {"b" : "\u0041\/", "data":"x"}]}`))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) == 0 || raw[0] != '{' || !json.Valid(raw) {
			return
		}
		inv := abi.Invocation{Name: "pii-redactor", Event: abi.ToolsCall, Phase: abi.Response, Payload: raw}
		r, err := guesttest.Call(inv)
		if err != nil || !r.Modified {
			return // what is not strict JSON is refused by the host before
		}
		require.True(t, json.Valid(r.Payload))
		require.NotEqual(t, string(raw), string(r.Payload))
		require.Equal(t, skeleton(t, raw), skeleton(t, r.Payload))
		inv.Payload = r.Payload
		again := guesttest.Invoke(t, inv)
		require.False(t, again.Modified, "%s became %s", r.Payload, again.Payload)
	})
}

// skeleton is a payload with every string value emptied.
func skeleton(t testing.TB, raw []byte) string {
	bare, _, err := guest.EditStrings(raw, func(guest.Path, string) string { return "" })
	require.NoError(t, err)
	return string(bare)
}

func BenchmarkRedact(b *testing.B) {
	item := `{"type":"text","text":"Dear Jane, your order 1234567 of 2026-10-08 is on its way; write to jane.doe@example.com or call +49 30 1234567 <&>."},`
	for name, n := range map[string]int{"1KB": 1 << 10, "100KB": 100 << 10} {
		raw := []byte(`{"content":[` + strings.Repeat(item, n/len(item)) + `{"type":"text","text":""}]}`)
		inv := abi.Invocation{Name: "pii-redactor", Event: abi.ToolsCall, Phase: abi.Response, Payload: raw}
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if r := guesttest.Invoke(b, inv); bytes.Contains(r.Payload, []byte("jane.doe")) {
					b.Fatal("not redacted")
				}
			}
		})
	}
}
