// Package goname makes Go names of the names in limits.yaml. It says which names Go, its tools and file
// systems take for themselves.
package goname

import (
	"go/token"
	"slices"
	"strings"
)

// The characters of names.
const (
	Lowers = "abcdefghijklmnopqrstuvwxyz"
	Uppers = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	Digits = "0123456789"

	Alphanumerics = Lowers + Uppers + Digits
)

// Made reports whether name is a letter of first and then letters of rest.
func Made(name, first, rest string) bool {
	return name != "" && strings.Contains(first, name[:1]) && strings.Trim(name[1:], rest) == ""
}

// MaxIdentifier is the longest name of a kind or limit: it is part of every expression, or of every stored
// id.
const MaxIdentifier = 32

// IsIdentifier reports whether a kind or limit can have this name.
func IsIdentifier(name string) bool {
	return Made(name, Lowers, Lowers+Digits+"_") && len(name) <= MaxIdentifier
}

// BadPackage returns the reason why a generated package cannot have this name, "" if it can.
func BadPackage(name string) string {
	switch {
	case !Made(name, Lowers, Lowers+Digits+"_"):
		return "is no package name: it must start with a-z and go on with a-z, 0-9 or _"
	case token.IsKeyword(name):
		return "is a Go keyword: choose another name"
	case name == "main", name == "init":
		return "cannot be imported: choose another name"
	case slices.Contains(Folders(), name):
		return "is that of a folder which the go command keeps for itself: choose another name"
	case name == "documentation":
		return "is ignored by the go command: choose another name"
	case WindowsDevice(name):
		return "is that of a folder which cannot be checked out on Windows: choose another name"
	case strings.HasSuffix(name, "_test"):
		return "is that of a test package: choose a name that does not end in _test"
	}
	return ""
}

// Folders are the names of folders that the go command treats specially.
func Folders() []string { return []string{"testdata", "vendor"} }

// WindowsDevice reports whether Windows reserves this file name, which is in small letters and has no
// extension.
func WindowsDevice(base string) bool {
	switch base {
	case "aux", "con", "nul", "prn":
		return true
	}
	port := strings.TrimPrefix(strings.TrimPrefix(base, "com"), "lpt")
	return len(base) == 4 && len(port) == 1 && port >= "1" && port <= "9"
}

// Of turns a name into an exported Go name: gpt-4o-mini is GPT4oMini, http2_rps is HTTP2RPS,
// meta-llama/Llama-3-8B is MetaLlamaLlama38B. Words end at all but letters and digits, and before a capital
// that follows a small letter. If the first letters of a word are a usual initialism, all of them become
// capitals, else the first one. The rest of the word stays.
func Of(name string) string {
	var b strings.Builder
	for _, w := range goWords(name) {
		rest := strings.TrimLeft(w, Lowers+Uppers)
		letters := w[:len(w)-len(rest)]
		switch small := strings.ToLower(letters); {
		case small == "apikey":
			letters = "APIKey"
		case isInitialism(small):
			letters = strings.ToUpper(letters)
		case letters != "":
			letters = strings.ToUpper(letters[:1]) + letters[1:]
		}
		b.WriteString(letters + rest)
	}
	return b.String()
}

// goWords returns the words of a name.
func goWords(name string) []string {
	var spaced strings.Builder
	for i, c := range name {
		if i > 0 && strings.ContainsRune(Uppers, c) && strings.Contains(Lowers, name[i-1:i]) {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(c)
	}
	return strings.FieldsFunc(spaced.String(), func(c rune) bool {
		return !strings.ContainsRune(Alphanumerics, c)
	})
}

// isInitialism reports whether a word is written in capitals. After the first release, do not add any: that
// would rename Go code of users.
func isInitialism(word string) bool {
	switch word {
	case "rps", "rpm", "rph", "rpd", "qps", "qpm", "qpd", "tps", "tpm", "tph", "tpd", "eps", // rates
		"ai", "asr", "gpt", "llm", "ml", "nlp", "ocr", "rag", "stt", "tts",
		"acl", "api", "cdn", "cli", "crm", "dns", "grpc", "html", "http", "https", "ip", "mms", "rpc", "sdk", "sla",
		"smtp", "sms", "sns", "sqs", "sse", "ssh", "ssl", "sso", "tcp", "tls", "ttl", "udp", "uri", "url", "vm",
		"vpn",
		"aws", "cpu", "css", "csv", "db", "gb", "gpu", "id", "io", "json", "kb", "mb", "os", "pdf", "qa", "ram",
		"sku", "sql", "ui", "uid", "utf", "uuid", "ux", "xml", "yaml",
		"ascii", "csrf", "ddos", "eof", "ftp", "gid", "guid", "iam", "iban", "imap", "iot", "jwt", "kms", "ldap",
		"mcp", "mfa", "mqtt", "otp", "pii", "rtt", "saml", "tb", "ttft", "vpc", "xss",
		"chf", "cny", "eur", "gbp", "inr", "jpy", "usd": // currencies
		return true
	}
	return false
}

// Unexported returns the unexported form of an exported Go name of ASCII letters and digits: GPT4oMini is
// gpt4oMini, APIKey is apiKey, RPM is rpm. The first capitals become small, but for the last of several that
// starts a word.
func Unexported(goName string) string {
	rest := strings.TrimLeft(goName, Uppers)
	n := len(goName) - len(rest)
	if n > 1 && rest != "" && strings.Contains(Lowers, rest[:1]) {
		n--
	}
	return strings.ToLower(goName[:n]) + goName[n:]
}
