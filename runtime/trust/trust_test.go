package trust

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The pair of RFC 8032, 7.1, test 1, so that the forms below are fixed for good.
const (
	privateText   = "weir-private-key-1 nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
	publicText    = "weir-public-key-1 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
	signatureText = "weir-signature-1 ec93a6ab4de178df SYSOfDjaXtocoZO4W8U2mrEbaN+/TjZ1iUy7g9LyKnSPqKZE/n3tp4S69dXD9lffo6hcGfL/3pTvIyuzlJT4BA=="

	keyName = "ec93a6ab4de178df"
)

var module = []byte("\x00asm\x01\x00\x00\x00")

func testKey(t testing.TB) PrivateKey {
	t.Helper()
	k, err := ParsePrivateKey([]byte(privateText))
	require.NoError(t, err)
	return k
}

func TestFormatsAreFixed(t *testing.T) {
	k := testKey(t)
	require.Equal(t, privateText, k.Reveal())
	require.Equal(t, publicText, k.Public().String())
	require.Equal(t, keyName, k.Public().ID())
	s := k.Sign(module)
	require.Equal(t, signatureText, s.String())
	require.Equal(t, keyName, s.KeyID())

	// What the package comment says is all that another tool needs.
	sum := sha256.Sum256(module)
	pub := k.Public()
	require.True(t, ed25519.Verify(pub.bytes[:], append([]byte("weir module signature v1\x00"), sum[:]...), s.bytes[:]))
	id := sha256.Sum256(append([]byte("weir key id v1\x00"), pub.bytes[:]...))
	require.Equal(t, fmt.Sprintf("%x", id[:8]), pub.ID())
}

func TestPrivateKeysDoNotPrint(t *testing.T) {
	k := testKey(t)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		require.Equal(t, "private key "+keyName, fmt.Sprintf(verb, k), verb)
		require.NotContains(t, fmt.Sprintf(verb, struct{ K any }{k}), "nWGx", verb)
	}
}

func TestGeneratedKeys(t *testing.T) {
	a, b := GenerateKey(), GenerateKey()
	require.NotEqual(t, a.Reveal(), b.Reveal())
	again, err := ParsePrivateKey([]byte(a.Reveal() + "\n"))
	require.NoError(t, err)
	require.Equal(t, a.Public(), again.Public())
}

func TestVerify(t *testing.T) {
	mine, other := testKey(t), GenerateKey()
	digest := sha256.Sum256(module)
	signed := func(k PrivateKey, b []byte) []byte { return []byte(k.Sign(b).String() + "\n") }
	impostor := other.Sign(module)
	impostor.keyID = mine.Public().ID()
	flipped := mine.Sign(module)
	flipped.bytes[10] ^= 1
	open, strict := NewPolicy(false, mine.Public()), NewPolicy(true, other.Public(), mine.Public())
	for _, c := range []struct {
		name      string
		policy    *Policy
		signature []byte
		signer    string
		err       string
	}{
		{"signed", open, signed(mine, module), keyName, ""},
		{"signed, required", strict, signed(mine, module), keyName, ""},
		{"by the other trusted key", strict, signed(other, module), other.Public().ID(), ""},
		{"unsigned", open, nil, "", ""},
		{"unsigned, required", strict, nil, "", "not signed"},
		{"an empty file is no absent one", open, []byte{}, "", "no signature"},
		{"by a stranger", open, signed(other, module), "", "signed with the key " + other.Public().ID() + ", which is not trusted; trusted are " + keyName},
		{"by a stranger with our key's name", open, []byte(impostor.String()), "", "of other bytes"},
		{"of another file", open, signed(mine, append(module, 0)), "", "of other bytes than the file's (sha256 93a44bbb96c751218e4c00d479e4c14358122a389acca16205b1e4d0dc5f9476)"},
		{"broken", open, []byte(flipped.String()), "", "of other bytes"},
		{"without keys", NewPolicy(false), signed(mine, module), "", "trusted are none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			signer, err := c.policy.Verify(digest, c.signature)
			require.Equal(t, c.signer, signer)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}

func TestWhatIsNoTextForm(t *testing.T) {
	public := func(b []byte) error { _, err := ParsePublicKey(b); return err }
	private := func(b []byte) error { _, err := ParsePrivateKey(b); return err }
	signature := func(b []byte) error { _, err := ParseSignature(b); return err }
	payload := strings.TrimPrefix(publicText, "weir-public-key-1 ")
	for _, c := range []struct {
		name  string
		parse func([]byte) error
		text  string
		err   string // empty: it is one
	}{
		{"public", public, publicText, ""},
		{"public, with its line break", public, publicText + "\n", ""},
		{"public, with that of Windows", public, publicText + "\r\n", ""},
		{"private", private, privateText + "\n", ""},
		{"signature", signature, signatureText + "\n", ""},

		{"empty", public, "", "one line that begins with"},
		{"too long", public, publicText + strings.Repeat("\n", MaxBytes), "more than 1024"},
		{"two lines", public, publicText + "\n\n", "not base64 of 32 bytes"},
		{"a line break inside", public, publicText[:30] + "\n" + publicText[30:], "not base64"},
		{"another version", public, "weir-public-key-2 " + payload, `it is "weir-public-key-2" and not "weir-public-key-1"`},
		{"private for public", public, privateText, "a private key where a public one belongs"},
		{"public for private", private, publicText, "no private key"},
		{"two spaces", public, "weir-public-key-1  " + payload, "one line"},
		{"space before", public, " " + publicText, "one line"},
		{"a comment", public, publicText + " ops", "one line"},
		{"31 bytes", public, "weir-public-key-1 " + encoding.EncodeToString(make([]byte, 31)), "32 bytes"},
		{"33 bytes", public, "weir-public-key-1 " + encoding.EncodeToString(make([]byte, 33)), "32 bytes"},
		{"no padding", public, strings.TrimSuffix(publicText, "="), "32 bytes"},
		{"bits past the end", public, publicText[:len(publicText)-2] + "p=", "32 bytes"},
		{"URL alphabet", private, strings.ReplaceAll(privateText, "/", "_"), "32 bytes"},
		{"signature without a key", signature, "weir-signature-1 " + payload, "one line"},
		{"signature with a long key id", signature, strings.Replace(signatureText, keyName, keyName+"0", 1), "16 hexadecimal"},
		{"signature with a key id in capitals", signature, strings.Replace(signatureText, keyName, strings.ToUpper(keyName), 1), "16 hexadecimal"},
		{"short signature", signature, "weir-signature-1 " + keyName + " " + payload, "64 bytes"},
		{"binary", signature, "\x00\xff\xfe", "one line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.parse([]byte(c.text))
			if c.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.err)
			require.NotContains(t, err.Error(), "nWGx", "a key is never in an error")
		})
	}
}

// What is read is spelled in one way only.
func fuzzText(f *testing.F, seed string, parse func([]byte) (string, error)) {
	for _, text := range []string{seed, seed + "\n", seed + "\r\n", seed[:len(seed)-1], "", " ", privateText, publicText, signatureText} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		spelled, err := parse(text)
		if err == nil {
			require.Equal(t, strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"), spelled)
		}
	})
}

func FuzzParseSignature(f *testing.F) {
	digest := sha256.Sum256(module)
	policy := NewPolicy(true, testKey(f).Public())
	fuzzText(f, signatureText, func(text []byte) (string, error) {
		s, err := ParseSignature(text)
		if _, verified := policy.Verify(digest, text); verified == nil && s.String() != signatureText {
			panic(fmt.Sprintf("a forgery: %q", text))
		}
		return s.String(), err
	})
}

func FuzzParsePublicKey(f *testing.F) {
	fuzzText(f, publicText, func(text []byte) (string, error) {
		k, err := ParsePublicKey(text)
		return k.String(), err
	})
}

func FuzzParsePrivateKey(f *testing.F) {
	fuzzText(f, privateText, func(text []byte) (string, error) {
		k, err := ParsePrivateKey(text)
		if err != nil {
			return "", err
		}
		return k.Reveal(), nil
	})
}
