package lua

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// In ARGV, one parameter of the caller and perKey parameters of each key stand in front of the calls.
const perKey = 3

// start writes a comment on arguments and reply, and reads the clock.
func (w *writer) start(r *model.Resource, chain int, keys []key) {
	if chain == 1 {
		w.line("-- Charges calls on %s to one bucket, each all or none.", r.Name)
	} else {
		w.line("-- Charges calls on %s to a chain of %d buckets.", r.Name, chain)
		w.line("-- Bucket 1 is the entity's own, the next are its ancestors', nearest first. Each call is all or " +
			"none.")
	}
	hashes := "a hash"
	if len(keys) > 1 {
		hashes = fmt.Sprintf("%d hashes", len(keys))
	}
	w.line("--")
	w.line("-- KEYS   %s: tokens, which were there at lastRefill, in ms; one that is missing is full", hashes)
	w.line("-- ARGV   the most ms since the caller read its overrides; of each key, its burst in tokens, " +
		"its refill in tokens per")
	w.line("--        ms, and the version of these overrides; then of each call, 1 if it is to fit, 0 if it is" +
		" charged in any")
	w.line("--        case, and its cost of each key, below 0 for a refund")
	w.line("-- reply  now, in ms; of each key, what it has now, in millitokens; of each call, 0 where it is " +
		"charged, else 1")
	w.line("--        and, of each key that refused, after how many ms it would not, 0 for the others")
	w.line("local call, min, floor, ceil = redis.call, math.min, math.floor, math.ceil")
	w.line("local clock = call('TIME')")
	w.line("local now = clock[1] * 1000 + floor(clock[2] / 1000)")
	w.line("local bucket")
}

// read gets one key's hash, and works out its balance now. Text becomes a number by + 0.
func (w *writer) read(k key) {
	burst, rate, stored, since, tokens := k.local("burst"), k.local("rate"), k.local("stored"), k.local(
		"since"), k.local("tokens")
	w.line("")
	w.folded("", fmt.Sprintf("bucket = call('HMGET', KEYS[%d], 'tokens', 'lastRefill',", k.number),
		fmt.Sprintf("'filledBy', 'filledTo', 'filledAt') -- %s", k))
	w.folded("", fmt.Sprintf("local %s, %s =", burst, rate),
		fmt.Sprintf("ARGV[%d] + 0, ARGV[%d] + 0", perKey*k.number-1, perKey*k.number))
	w.folded("", fmt.Sprintf("local %s, %s =", stored, since), burst+", now")
	w.folded("", "if bucket[1] then", fmt.Sprintf("%s, %s = bucket[1] + 0, bucket[2] + 0 end", stored, since))
	w.folded("", fmt.Sprintf("if bucket[3] and bucket[3] + 0 > ARGV[%d] + 0", perKey*k.number+1),
		"and now - bucket[5] <= ARGV[1] + 0", fmt.Sprintf("then %s = bucket[4] + 0 end", burst))
	w.folded("", fmt.Sprintf("local %s = min(%s", tokens, stored),
		fmt.Sprintf("+ (now > %s and now - %s or 0)", since, since), fmt.Sprintf("* %s, %s)", rate, burst))
	w.line("local %s = %s", k.local("before"), tokens)
}

// calls decides each call. For a denied call it keeps the costs that did not fit: the wait for them depends
// on later calls.
func (w *writer) calls(keys []key) {
	w.line("")
	w.line("local reply, refused = {now%s}", strings.Repeat(", 0", len(keys)))
	w.line("for i = %d, #ARGV, %d do", perKey*len(keys)+2, 1+len(keys))
	var costs, arguments []string
	for _, k := range keys {
		costs = append(costs, k.local("cost"))
		arguments = append(arguments, fmt.Sprintf("ARGV[i + %d] + 0", k.number))
	}
	w.assign(costs, arguments)
	w.line("  if ARGV[i] ~= '1'")
	for i, k := range keys {
		operator, end := "and", ""
		if i == 0 {
			operator = "or"
		}
		if i == len(keys)-1 {
			end = " then"
		}
		w.folded("    ", operator+" ("+k.has(), "or "+k.free()+")"+end)
	}
	for _, k := range keys {
		tokens := k.local("tokens")
		w.folded("    ", tokens+" =", fmt.Sprintf("min(%s - %s,", tokens, k.local("cost")), k.local("burst")+")")
	}
	w.line("    reply[#reply + 1] = 0")
	w.line("  else")
	w.line("    refused = refused or {}")
	w.line("    refused[#refused + 1] = #reply + 1")
	w.line("    reply[#reply + 1] = 1")
	for _, k := range keys {
		w.folded("    ", "reply[#reply + 1] = ("+k.has(), "or "+k.free()+") and 0", "or "+k.local("cost"))
	}
	w.line("  end")
	w.line("end")
}

// has is the condition that k has the cost of a call; 1e-9 makes up for rounding. free is the condition that
// the call asks nothing of k.
func (k key) has() string  { return fmt.Sprintf("%s + 1e-9 >= %s", k.local("tokens"), k.local("cost")) }
func (k key) free() string { return k.local("cost") + " <= 0" }

// write stores the balance of one key, if calls have changed it.
func (w *writer) write(k key) {
	tokens, stored, since := k.local("tokens"), k.local("stored"), k.local("since")
	w.line("if %s ~= %s then", tokens, k.local("before"))
	w.line("  %s = %s", stored, tokens)
	w.folded("  ", fmt.Sprintf("if now > %s then", since), since+" = now end")
	w.folded("  ", fmt.Sprintf("call('HSET', KEYS[%d], 'tokens', %s,", k.number, stored),
		fmt.Sprintf("'lastRefill', %s)", since))
	w.folded("  ", fmt.Sprintf("local seconds = ceil((%s", k.local("burst")),
		fmt.Sprintf("- (%s < 0 and %s or 0))", tokens, tokens),
		fmt.Sprintf("/ %s / 1000 - 1e-6)", k.local("rate")))
	w.line("  call('EXPIRE', KEYS[%d], seconds < 1 and 2 or seconds > 1e11 and 2e11 or 2 * seconds)", k.number)
	w.line("end")
	w.line("reply[%d] = floor((%s + 1e-9) * 1000)", 1+k.number, tokens)
}

// waits replaces the kept costs of denied calls with the times until they fit.
func (w *writer) waits(keys []key) {
	w.line(`
if refused then
  local function wait(cost, stored, since, rate)
    if cost == 0 then return 0 end
    local ms = ceil((cost - 1e-9 - stored) / rate) + since - now
    if ms < 1 then ms = 1 end
    if ms > 1e14 then ms = 1e14 end
    -- By the very sum that the next call will see, so that rounding refuses nobody who waited.
    while ms < 1e14 and stored + (now + ms - since) * rate + 1e-9 < cost do ms = ms + 1 end
    return ms
  end
  for _, at in ipairs(refused) do`)
	for _, k := range keys {
		w.folded("    ", fmt.Sprintf("reply[at + %d] = wait(reply[at + %d], %s,", k.number, k.number,
			k.local("stored")),
			k.local("since")+", "+k.local("rate")+")")
	}
	w.line(`  end
end
return reply`)
}
