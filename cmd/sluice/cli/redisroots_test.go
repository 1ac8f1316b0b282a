package cli_test

import (
	"testing"

	limits "github.com/sluice-go/sluice/generated"
)

// TestRedisOneBucket: on a Redis that is no cluster an entity has one bucket, whatever its parent is.
func TestRedisOneBucket(t *testing.T) {
	r := newRedis(t, demo)
	for _, project := range []string{"7", "8"} {
		r.acquire(limits.User{ID: "1", Project: limits.Project{ID: project}}, limits.GPT4Cost{RPM: 35})
	}
	r.run("peek user-1 gpt-4", 0, `user-1 on gpt-4
  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm           30       100     100  100 every 1m     42s
  tpm       15,000    10,000  15,000  10,000 every 1m  now
`, "")
	r.run(
		"top gpt-4 --limit rpm --most 1",
		0,
		`ENTITY  LIMIT                        USED  AVAILABLE  BURST  FULL IN
user-1  rpm    ##############------   70%         30    100  42s
3 buckets read in 0s
`,
		"",
	)
}

// TestRedisRoots: which bucket of a cluster is meant, where an entity has been charged under two parents and
// alone.
func TestRedisRoots(t *testing.T) {
	sequential(t)
	r := newCluster(t, demo)
	r.acquire(limits.User{ID: "1", Project: limits.Project{ID: "7"}}, limits.GPT4Cost{RPM: 35, TPM: 14_000})
	const under7 = `  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm           65       100     100  100 every 1m     21s
  tpm        1,000    10,000  15,000  10,000 every 1m  1m24s
`
	r.run("peek user-1 gpt-4", 0, "user-1 on gpt-4\n"+under7, "") // found by SCAN

	r.acquire(limits.User{ID: "1", Project: limits.Project{ID: "8"}}, limits.GPT4Cost{RPM: 1})
	const under8 = `  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm           99       100     100  100 every 1m     600ms
  tpm       15,000    10,000  15,000  10,000 every 1m  now
`
	r.run("peek user-1 gpt-4", 0, "user-1 on gpt-4 under project-7\n"+under7+"user-1 on gpt-4 under project-8\n"+
		under8, "")
	r.run("peek user-1 gpt-4 --root project-8", 0, "user-1 on gpt-4\n"+under8, "")
	nothing := notStored("user-1", "gpt-4")
	r.run("peek user-1 gpt-4 --root project-9", 0, nothing, "")
	r.run("peek user-1 gpt-4 --root user-1", 0, nothing, "")
	r.run("peek user-1 gpt-4 --root user-2", 2, "",
		"sluice: --root user-2 cannot be the last entity that a call of user-1 on gpt-4 charges: pass one of "+
			"user-1, project; "+
			"run `sluice peek --help`\n")
	r.run("peek project-7 gpt-4", 0, `project-7 on gpt-4
  LIMIT  AVAILABLE  CAPACITY    BURST  REFILL            FULL IN
  rpm          965     1,000    1,000  1,000 every 1m    2.1s
  tpm      136,000   100,000  150,000  100,000 every 1m  8.4s
`, "")
	r.run(
		"top gpt-4 --kind user --limit rpm",
		0,
		`ENTITY                  LIMIT                        USED  AVAILABLE  BURST  FULL IN
user-1 under project-7  rpm    #######-------------   35%         65    100  21s
user-1 under project-8  rpm    --------------------    1%         99    100  600ms
2 buckets read in 0s
`,
		"",
	)
	r.run("override explain user-1 gpt-4", 0, `user-1 on gpt-4
  LIMIT  LEVEL   CAPACITY   BURST  REFILL
  rpm    user-1         -       -  -
         user           -       -  -
         schema       100     100  100 every 1m     in force
  tpm    user-1         -       -  -
         user           -       -  -
         schema    10,000  15,000  10,000 every 1m  in force
under project-7, the bucket has the limits in force
`+under7+"under project-8, the bucket has the limits in force\n"+under8+above, "")

	// The stored parent says which, as long as there is a bucket.
	r.run("entity put user-1 --parent project-8", 0,
		"stored user-1\n  ENTITY     PARENT     CASCADE\n  user-1     project-8  yes\n"+
			"  project-8  -          -        not stored (not needed)\n"+takenUp, "")
	r.run("peek user-1 gpt-4", 0, "user-1 on gpt-4\n"+under8, "")
	r.run("reset user-1 gpt-4", 0,
		"user-1 on gpt-4: filled\n  LIMIT  BEFORE   AFTER   BURST\n  rpm        99     100     100\n"+
			"  tpm    15,000  15,000  15,000\n", "")
	for _, limit := range []string{"rpm", "tpm"} {
		r.server.Del("sluice:gpt-4:" + limit + ":{project-8}#user-1")
	}
	r.run("peek user-1 gpt-4", 0, "user-1 on gpt-4\n"+under7, "") // searched for
	r.run("reset user-1 gpt-4 --root project-8", 1, "", "sluice: "+nothing)

	// A chain that ends with the entity.
	r.run("entity put user-1 --no-cascade", 0,
		"stored user-1, instead of cascade yes; its parent project-8 is kept\n"+
			"  ENTITY  PARENT     CASCADE\n  user-1  project-8  no\n"+takenUp, "")
	lim := r.limiter()
	if _, err := lim.GPT4.Acquire(t.Context(), limits.UserByID("1"), limits.GPT4Cost{RPM: 2}); err != nil {
		t.Fatal(err)
	}
	r.run("peek user-1 gpt-4", 0, `user-1 on gpt-4
  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm           98       100     100  100 every 1m     1.2s
  tpm       15,000    10,000  15,000  10,000 every 1m  now
`, "")
	r.run("override explain user-1 gpt-4 --root project-7", 0, `user-1 on gpt-4
  LIMIT  LEVEL   CAPACITY   BURST  REFILL
  rpm    user-1         -       -  -
         user           -       -  -
         schema       100     100  100 every 1m     in force
  tpm    user-1         -       -  -
         user           -       -  -
         schema    10,000  15,000  10,000 every 1m  in force
the bucket has the limits in force
`+under7+above, "")
}

// TestRedisResetOfSeveral fills each bucket that the entity has.
func TestRedisResetOfSeveral(t *testing.T) {
	r := newCluster(t, demo)
	for _, project := range []string{"7", "8"} {
		r.acquire(limits.User{ID: "1", Project: limits.Project{ID: project}}, limits.GPT4Cost{RPM: 35, TPM: 14_000})
	}
	r.run("reset user-1 gpt-4 --limit rpm", 0, `user-1 on gpt-4 under project-7: filled
  LIMIT  BEFORE  AFTER  BURST
  rpm        65    100    100
user-1 on gpt-4 under project-8: filled
  LIMIT  BEFORE  AFTER  BURST
  rpm        65    100    100
`, "")
	r.run(
		"top gpt-4 --kind user --limit tpm",
		0,
		`ENTITY                  LIMIT                        USED  AVAILABLE   BURST  FULL IN
user-1 under project-7  tpm    ##################--   93%      1,000  15,000  1m24s
user-1 under project-8  tpm    ##################--   93%      1,000  15,000  1m24s
2 buckets read in 0s
`,
		"",
	)
}

// TestRedisOverride: what a bucket may hold comes with each call, so that no bucket has other limits than
// those in force.
func TestRedisOverride(t *testing.T) {
	sequential(t)
	r := newRedis(t, demo)
	r.acquire(limits.User{ID: "1", Project: limits.Project{ID: "7"}}, limits.GPT4Cost{RPM: 35})
	r.run("override set user gpt-4 rpm=50", 0, `user on gpt-4: revision 1772366400000, was none
  LIMIT       CAPACITY  BURST  REFILL        FROM
  rpm    was       100    100  100 every 1m  schema
         now        50     50  50 every 1m   user
`+takenUp, "")
	r.run("peek user-1 gpt-4", 0, `user-1 on gpt-4
  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm           50        50      50  50 every 1m      now
  tpm       15,000    10,000  15,000  10,000 every 1m  now
`, "")
	r.run("override set user-1 gpt-4 rpm=100,burst=200", 0, `user-1 on gpt-4: revision 1772366400000, was none
  LIMIT       CAPACITY  BURST  REFILL        FROM
  rpm    was        50     50  50 every 1m   user
         now       100    200  100 every 1m  user-1
`+takenUp, "")
	r.run("top gpt-4 --limit rpm", 0, `ENTITY     LIMIT                        USED  AVAILABLE  BURST  FULL IN
user-1     rpm    #############-------   67%         65    200  1m21s
project-7  rpm    --------------------    3%        965  1,000  2.1s
2 buckets read in 0s
`, "")
	r.run("reset user-1 gpt-4 --limit rpm", 0, `user-1 on gpt-4: filled
  LIMIT  BEFORE  AFTER  BURST
  rpm        65    200    200
`, "")
}
