// Package trust says whose modules may run: ed25519 key pairs, signatures of
// module files, and the policy that judges them (config.md, trust).
//
// # Formats
//
// Everything is one line of text, in ASCII, of words with single spaces between
// them; a line break at the end may be there or not. Base64 is the standard one
// with padding. Nothing else is accepted.
//
//	weir-public-key-1 BASE64           the 32 bytes of the public key        NAME.pub
//	weir-private-key-1 BASE64          the 32 bytes of the seed (RFC 8032)   NAME.key
//	weir-signature-1 KEYID BASE64      the 64 bytes of the signature         FILE.wasm.sig
//
// KEYID is the first 16 hexadecimal digits of SHA-256("weir key id v1\x00" +
// public key). It finds the key and names it in logs; what decides is the key.
// A signature is ed25519 over
//
//	"weir module signature v1\x00" + SHA-256(file)
//
// so that a signature of a module is one of nothing else. It says who vouches for
// these bytes, not under which name and that no newer ones exist: that is what a
// pin is for.
//
// It may not know files, folders and configuration: it gets bytes. Its values
// are immutable and safe for concurrent use.
package trust
