// Package limittest helps users of sluice to test their code: with the real thing on a table in the process,
// or with a fake where limits do not matter.
//
//	fake := limittest.NewFake((*limits.GPT4Resource)(nil))
//	handler := &gateway{gpt4: fake}
//
//	ask()
//	fake.Deny(limits.GPT4TPM, 1500*time.Millisecond)
//	ask()
//	fake.Fail(&limits.UnavailableError{Err: errors.New("connection refused")})
//	ask()
//
// [Store] is the real thing: limits.New(limittest.Store(t)) returns a limiter on a fresh table. Both work in
// testing/synctest's bubbles, on virtual time.
package limittest
