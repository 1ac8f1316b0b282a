package schema

import (
	"go/token"
	"slices"
	"strings"
)

const maxResourceName = 64

const (
	lowers = "abcdefghijklmnopqrstuvwxyz"
	uppers = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"

	alphanumerics = lowers + uppers + digits
	resourceMarks = "._:/-" // the other characters of resources' names
)

// made reports whether name is a letter of first and then letters of rest.
func made(name, first, rest string) bool {
	return name != "" && strings.Contains(first, name[:1]) && strings.Trim(name[1:], rest) == ""
}

// isIdentifier reports whether a kind or limit can have this name.
func isIdentifier(name string) bool {
	return made(name, lowers, lowers+digits+"_") && len(name) <= maxIdentifier
}

// identifier checks the name of a kind or limit: [a-z][a-z0-9_]*, at most 32 letters. what names it in
// messages. Limits stand in expressions as they are (docs/design.md, "Table"), and kinds end at the first '-'
// of a stored id.
func (r *reader) identifier(pos Pos, what, name string) bool {
	switch {
	case !made(name, lowers, lowers+digits+"_"):
		r.add(pos, ruleBadName, "%s has a bad name: it must start with a-z and go on with a-z, 0-9 or _", what)
	case len(name) > maxIdentifier:
		r.add(pos, ruleBadName, "%s has a name of %d letters: it can have at most %d", what, len(name),
			maxIdentifier)
	default:
		return true
	}
	return false
}

// resourceName checks the name of a resource, which may be a model's: [A-Za-z0-9][A-Za-z0-9._:/-]{0,63}. '#'
// separates the parts of a sort key.
func (r *reader) resourceName(pos Pos, what, name string) bool {
	switch {
	case !made(name, alphanumerics, alphanumerics+resourceMarks):
		r.add(pos, ruleBadName, "%s has a bad name: it must start with a letter or digit, of ASCII, and go on "+
			"with these or . _ : / -", what)
	case len(name) > maxResourceName:
		r.add(pos, ruleBadName, "%s has a name of %d letters: it can have at most %d", what, len(name),
			maxResourceName)
	default:
		return true
	}
	return false
}

// badPackage returns the reason why a generated package cannot have this name, "" if it can.
func badPackage(name string) string {
	switch {
	case !made(name, lowers, lowers+digits+"_"):
		return "is no package name: it must start with a-z and go on with a-z, 0-9 or _"
	case token.IsKeyword(name):
		return "is a Go keyword: choose another name"
	case name == "main", name == "init":
		return "cannot be imported: choose another name"
	case slices.Contains(goFolders(), name):
		return "is that of a folder which the go command keeps for itself: choose another name"
	case name == "documentation":
		return "is ignored by the go command: choose another name"
	case windowsDevice(name):
		return "is that of a folder which cannot be checked out on Windows: choose another name"
	case strings.HasSuffix(name, "_test"):
		return "is that of a test package: choose a name that does not end in _test"
	}
	return ""
}

// goName returns the Go name of an entry: its go_name if it has one, else the one made of its name. It
// returns "" after it has reported a name that is not usable. what names the entry in messages.
func (r *reader) goName(f fields, pos Pos, what, name string, nameOK bool) string {
	e, ok := f.get("go_name")
	if !ok {
		if !nameOK {
			return ""
		}
		g := goName(name)
		if made(g, digits, alphanumerics) {
			r.add(pos, ruleGoName, "%s would be %s in Go, where names cannot start with a digit: set its go_name",
				what, g)
			return ""
		}
		return g
	}
	g, ok := r.text(e.value, "go_name", "a name, such as GPT4")
	switch {
	case !ok:
	case !made(g, uppers, alphanumerics):
		r.add(r.pos(e.value), ruleGoName, "go_name %s of %s is not usable: it must start with A-Z and go on with "+
			"letters and digits", quote(g), what)
	case len(g) > maxResourceName:
		r.add(r.pos(e.value), ruleGoName, "go_name of %s has %d letters: it can have at most %d", what, len(g),
			maxResourceName)
	default:
		return g
	}
	return ""
}

// goName turns a name into an exported Go name: gpt-4o-mini is GPT4oMini, http2_rps is HTTP2RPS,
// meta-llama/Llama-3-8B is MetaLlamaLlama38B. Words end at all but letters and digits, and before a capital
// that follows a small letter. If the first letters of a word are a usual initialism, all of them become
// capitals, else the first one. The rest of the word stays.
func goName(name string) string {
	var b strings.Builder
	for _, w := range goWords(name) {
		rest := strings.TrimLeft(w, lowers+uppers)
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
		if i > 0 && strings.ContainsRune(uppers, c) && strings.Contains(lowers, name[i-1:i]) {
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(c)
	}
	return strings.FieldsFunc(spaced.String(), func(c rune) bool {
		return !strings.ContainsRune(alphanumerics, c)
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
	rest := strings.TrimLeft(goName, uppers)
	n := len(goName) - len(rest)
	if n > 1 && rest != "" && strings.Contains(lowers, rest[:1]) {
		n--
	}
	return strings.ToLower(goName[:n]) + goName[n:]
}
