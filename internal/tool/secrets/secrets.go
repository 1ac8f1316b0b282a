// Package secrets takes users and passwords out of texts that others read.
package secrets

import (
	"regexp"
	"strings"
)

// Credentials stand in a URL before its host. A password of a Redis may have any character, so they last up
// to the last '@' of a line. Those of a web URL last up to the last '@' of a word.
var (
	ofRedis = regexp.MustCompile(`((?:rediss?|unix):/*).*@`)
	ofWeb   = regexp.MustCompile(`(?i)(https?:/*)[^\s"'` + "`" + `]*@`)
)

// Redis takes the users and passwords out of URLs of Redis in a text.
func Redis(text string) string { return ofRedis.ReplaceAllString(text, "${1}***@") }

// Web takes the users and passwords out of http and https URLs in a text.
func Web(text string) string { return ofWeb.ReplaceAllString(text, "${1}***@") }

// URL takes the user and password out of a text that should be a URL, whatever its scheme is.
func URL(text string) string {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	scheme := ""
	if end := strings.Index(text, "://"); end >= 0 && end < at {
		scheme = text[:end+len("://")]
	}
	return scheme + "***" + text[at:]
}
