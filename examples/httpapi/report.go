package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// String names the client of this manner.
func (m manner) String() string { return [...]string{"heedless", "obedient", "paced"}[m] }

// report is what is printed in the end.
type report struct {
	began   time.Time
	clients []*client
	door    *door
}

// announce says what is to come, before it takes its time.
func announce(out io.Writer) error {
	_, err := fmt.Fprintf(out,
		`3 clients with a key each have the same %d requests to make, every fourth a report of %d rows.
A key may make 2 requests a second, 6 at once, and read 100 rows a second, 600 at once: it takes 9 seconds.
`, requests, rows)
	return err
}

// print prints it all, and fails if something is not as it has to be.
func (r report) print(out io.Writer) error {
	var text strings.Builder
	for _, c := range r.clients {
		if c.manner == heedless {
			continue
		}
		fmt.Fprintf(&text, "\nWhat %s got:\n\n", c.manner)
		if err := r.exchanges(&text, c); err != nil {
			return err
		}
	}
	r.draw(&text)
	if err := r.summary(&text); err != nil {
		return err
	}
	_, err := io.WriteString(out, text.String())
	return errors.Join(err, r.check(out))
}

// exchanges prints a client's requests.
func (r report) exchanges(out io.Writer, c *client) error {
	table := [][]string{{"AT", "REQUEST", "STATUS", "RATELIMIT", "RETRY-AFTER"}}
	for _, e := range c.log {
		table = append(table, []string{seconds(e.at.Sub(r.began)), "GET " + e.path, strconv.Itoa(e.status),
			e.rateLimit, e.retryAfter})
	}
	return texttable.Write(out, "", "rllll", table)
}

// column is the time that one column of the picture stands for.
const column = 100 * time.Millisecond

// draw draws a line for each client: how many of its requests were served in each tenth of a second, and
// where it was denied.
func (r report) draw(out *strings.Builder) {
	fmt.Fprint(out, "\nA column is 100 ms: how many requests were served in it; x: denied.\n\n")
	for _, c := range r.clients {
		line := []byte(strings.Repeat(".", int(r.took(c)/column)+1))
		for _, e := range c.log {
			at := &line[e.at.Sub(r.began)/column]
			switch {
			case e.status != http.StatusOK && *at == '.':
				*at = 'x'
			case e.status == http.StatusOK && (*at == '.' || *at == 'x'):
				*at = '1'
			case e.status == http.StatusOK && *at < '9':
				*at++
			}
		}
		fmt.Fprintf(out, "%-8s  %s\n", c.manner, line)
	}
	out.WriteByte('\n')
}

// took returns how long a client's work took.
func (r report) took(c *client) time.Duration {
	if len(c.log) == 0 {
		return 0
	}
	return c.log[len(c.log)-1].at.Sub(r.began)
}

// summary prints a line for each client.
func (r report) summary(out io.Writer) error {
	table := [][]string{{"CLIENT", "REQUESTS", "SERVED", "DENIED", "WASTED", "CAME EARLY", "DONE AFTER"}}
	for _, c := range r.clients {
		denied := c.denied()
		table = append(table, []string{
			c.manner.String(), strconv.Itoa(len(c.log)), strconv.Itoa(len(c.log) - denied), strconv.Itoa(denied),
			fmt.Sprintf("%d %%", 100*denied/max(1, len(c.log))), strconv.Itoa(r.door.cameEarly(c.key)),
			seconds(r.took(c)),
		})
	}
	return texttable.Write(out, "", "lrrrrrr", table)
}

// denied returns how many requests were.
func (c *client) denied() (n int) {
	for _, e := range c.log {
		if e.status == http.StatusTooManyRequests {
			n++
		}
	}
	return n
}

// twice returns how many requests were denied again when they came back.
func (c *client) twice() (n int) {
	for i := 1; i < len(c.log); i++ {
		if c.log[i].status == http.StatusTooManyRequests && c.log[i-1].status == http.StatusTooManyRequests {
			n++
		}
	}
	return n
}

// check fails if who listened came early, or came for nothing.
func (r report) check(out io.Writer) error {
	for _, c := range r.clients {
		early := r.door.cameEarly(c.key)
		switch {
		case c.manner == heedless:
		case early > 0:
			return fmt.Errorf("%s came early %d times: a client that waits for Retry-After cannot", c.manner, early)
		case c.twice() > 0:
			return fmt.Errorf("%s was denied %d times when it came as it was told: Retry-After was early", c.manner,
				c.twice())
		case c.manner == paced && c.denied() > 0:
			return fmt.Errorf("paced was denied %d times: the RateLimit fields promised what was not there",
				c.denied())
		}
	}
	_, err := fmt.Fprintln(out, "\ncheck: ok: nobody who listened came early, and who came when told was served")
	return err
}

// seconds writes d in seconds.
func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
