package redisclient_test

import (
	"testing"

	"github.com/sluice-go/sluice/internal/tool/redisclient"
)

// TestName: a Redis is named without what is nobody's business, and by where it is looked for.
func TestName(t *testing.T) {
	for url, want := range map[string]string{
		"redis://ann:sesame@h:7000/2?protocol=2": "redis://h:7000/2",
		"redis://:sesame@h?master_name=m":        "redis://h",
		"unix://ann:sesame@/run/redis.sock":      "unix:///run/redis.sock",
		"redis://":                               "redis://localhost:6379",
		"rediss:///3":                            "rediss://localhost:6379/3",
		"redis://:ses/ame@h":                     "Redis",
	} {
		if got := redisclient.Name(url); got != want {
			t.Errorf("%s is called %s, want %s", url, got, want)
		}
	}
}
