package lean

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// contentType is that of DynamoDB's JSON.
const contentType = "application/x-amz-json-1.0"

// The headers that are signed, without the session token and with it. The SDK signs all of a request's
// headers but User-Agent and the trace id.
const (
	signedHeaders      = "accept-encoding;content-length;content-type;host;x-amz-date;x-amz-target"
	signedHeadersToken = "accept-encoding;content-length;content-type;host;x-amz-date;x-amz-security-token;" +
		"x-amz-target"
)

// Lengths of the texts of a time: 20060102T150405Z, of which the day is 20060102.
const (
	timeLength = 16
	dayLength  = 8
)

// signer signs requests by AWS's Signature Version 4, byte for byte as v4.Signer does. It derives one key per
// day, secret and endpoint. The zero signer is ready to use. It is safe for concurrent use.
type signer struct{ latest atomic.Pointer[signingKey] }

// signingKey is a derived key, and what it was derived from.
type signingKey struct {
	secret, day, region, service string

	hashes sync.Pool // of hash.Hash, by this key
}

// signature is the memory in which a request is signed.
type signature struct {
	canonical, text, sum, authorization []byte
}

// sign returns the headers X-Amz-Date and Authorization for the request of x.
func (c *Client) sign(x *exchange, e *endpoint, by *aws.Credentials) (date, authorization string) {
	now := time.Now().Add(time.Duration(c.skew.Load())) //nolint:forbidigo // AWS compares it with its own clock
	return c.signer.sign(&x.signature, e, by, x.operation.target, x.body, now.UTC())
}

func (s *signer) sign(
	m *signature, e *endpoint, by *aws.Credentials, target string, body []byte, now time.Time,
) (date, authorization string) {
	// The texts of the time and of the scope are needed thrice, and first in the result.
	m.authorization = now.AppendFormat(m.authorization[:0], "20060102T150405Z")
	m.authorization = append(m.authorization, "AWS4-HMAC-SHA256 Credential="...)
	m.authorization = append(m.authorization, by.AccessKeyID...)
	m.authorization = append(m.authorization, '/')
	begin := len(m.authorization)
	m.authorization = append(m.authorization, m.authorization[:dayLength]...)
	for _, part := range [...]string{e.region, e.service, "aws4_request"} {
		m.authorization = append(append(m.authorization, '/'), part...)
	}
	at, scope := m.authorization[:timeLength], m.authorization[begin:]

	signed := signedHeaders
	if by.SessionToken != "" {
		signed = signedHeadersToken
	}
	m.canonicalize(e, by.SessionToken, target, signed, body, at)
	m.text = append(m.text[:0], "AWS4-HMAC-SHA256\n"...)
	m.text = append(append(m.text, at...), '\n')
	m.text = append(append(m.text, scope...), '\n')
	m.text = appendHash(m.text, m.canonical)

	key := s.key(by.SecretAccessKey, at[:dayLength], e)
	mac := key.hashes.Get().(hash.Hash)
	mac.Reset()
	mac.Write(m.text)
	m.sum = mac.Sum(m.sum[:0])
	key.hashes.Put(mac)

	m.authorization = append(append(m.authorization, ", SignedHeaders="...), signed...)
	m.authorization = hex.AppendEncode(append(m.authorization, ", Signature="...), m.sum)
	both := string(m.authorization)
	return both[:timeLength], both[timeLength:]
}

// canonicalize writes the canonical request.
func (m *signature) canonicalize(e *endpoint, token, target, signed string, body, at []byte) {
	b := m.canonical[:0]
	b = append(append(b, "POST\n"...), e.path...)
	b = append(b, "\n\naccept-encoding:identity\ncontent-length:"...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	b = append(b, "\ncontent-type:"+contentType+"\nhost:"...)
	b = append(b, e.host...)
	b = append(append(b, "\nx-amz-date:"...), at...)
	if token != "" {
		b = append(append(b, "\nx-amz-security-token:"...), collapse(token)...)
	}
	b = append(append(b, "\nx-amz-target:"...), target...)
	b = append(append(b, "\n\n"...), signed...)
	m.canonical = appendHash(append(b, '\n'), body)
}

// appendHash appends the SHA-256 of text, in hexadecimal.
func appendHash(to, text []byte) []byte {
	sum := sha256.Sum256(text)
	return hex.AppendEncode(to, sum[:])
}

// collapse makes runs of spaces one, and trims the ends, as headers are signed. Tokens of AWS have no spaces.
func collapse(value string) string {
	if !strings.ContainsAny(value, " \t\r\n\v\f\u0085\u00a0") {
		return value
	}
	value = strings.Trim(value, " ")
	for strings.Contains(value, "  ") {
		value = strings.ReplaceAll(value, "  ", " ")
	}
	return strings.TrimSpace(value)
}

// key returns the key of a day.
func (s *signer) key(secret string, day []byte, e *endpoint) *signingKey {
	k := s.latest.Load()
	if k != nil && k.secret == secret && k.day == string(day) && k.region == e.region && k.service == e.service {
		return k
	}
	k = &signingKey{secret: secret, day: string(day), region: e.region, service: e.service}
	derived := []byte("AWS4" + secret)
	for _, part := range [...]string{k.day, e.region, e.service, "aws4_request"} {
		mac := hmac.New(sha256.New, derived)
		mac.Write([]byte(part))
		derived = mac.Sum(nil)
	}
	k.hashes.New = func() any { return hmac.New(sha256.New, derived) }
	s.latest.Store(k)
	return k
}
