package goname

import "testing"

func TestGoName(t *testing.T) {
	for _, c := range []struct{ name, exported, unexported string }{
		{"gpt-4", "GPT4", "gpt4"},
		{"gpt-4o-mini", "GPT4oMini", "gpt4oMini"},
		{"gpt4o", "GPT4o", "gpt4o"},
		{"gpt-3.5-turbo", "GPT35Turbo", "gpt35Turbo"},
		{"llama-3.1-8b", "Llama318b", "llama318b"},
		{"embeddings", "Embeddings", "embeddings"},
		{"rpm", "RPM", "rpm"},
		{"eps", "EPS", "eps"},
		{"input_tokens", "InputTokens", "inputTokens"},
		{"user_id", "UserID", "userID"},
		{"id", "ID", "id"},
		{"api-key", "APIKey", "apiKey"},
		{"http2_rps", "HTTP2RPS", "http2RPS"},
		{"v1/users/list", "V1UsersList", "v1UsersList"},
		{"s3", "S3", "s3"},
		{"apis", "Apis", "apis"},
		{"apikey", "APIKey", "apiKey"},
		{"anthropic.claude-v2:1", "AnthropicClaudeV21", "anthropicClaudeV21"},
		{"meta-llama/Llama-3-8B", "MetaLlamaLlama38B", "metaLlamaLlama38B"},
		{"Qwen2.5-VL-7B", "Qwen25VL7B", "qwen25VL7B"},
		{"GPT-4o", "GPT4o", "gpt4o"},
		{"Gpt-4", "GPT4", "gpt4"},
		{"DeepSeek-R1", "DeepSeekR1", "deepSeekR1"},
		{"apiKey", "APIKey", "apiKey"},
		{"userId", "UserID", "userID"},
		{"A", "A", "a"},
		{"usd_per_day", "USDPerDay", "usdPerDay"},
		{"client-ip", "ClientIP", "clientIP"},
		{"url", "URL", "url"},
		{"a_b", "AB", "ab"},
		{"a", "A", "a"},
		{"trailing__-", "Trailing", "trailing"},
		{"a-chat", "AChat", "aChat"},
	} {
		g := Of(c.name)
		if g != c.exported || Unexported(g) != c.unexported {
			t.Errorf("%s: got %s and %s, want %s and %s", c.name, g, Unexported(g), c.exported, c.unexported)
		}
	}
	if got := Unexported(""); got != "" {
		t.Errorf("Unexported of nothing is %q", got)
	}
}
