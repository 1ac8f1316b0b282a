package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// client is a connection that sends requests with little CPU: on this machine, client and server share it.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	body []byte // of the last answer
}

func dial(address string) (*client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &client{conn: conn, in: bufio.NewReader(conn)}, nil
}

// request returns the bytes of a request.
func request(path, body string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: sluice\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\n\r\n%s", path, len(body), body)
}

// send sends a request, and returns the status of its answer.
func (c *client) send(request []byte) (status int, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	length := 0
	for first := true; ; first = false {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		text := string(line)
		switch {
		case first:
			if _, err := fmt.Sscanf(text, "HTTP/1.1 %d", &status); err != nil {
				return 0, err
			}
		case text == "\r\n":
			if cap(c.body) < length {
				c.body = make([]byte, length)
			}
			c.body = c.body[:length]
			_, err := io.ReadFull(c.in, c.body)
			return status, err
		default:
			if n, ok := strings.CutPrefix(text, "Content-Length: "); ok {
				if _, err := fmt.Sscanf(n, "%d", &length); err != nil {
					return 0, err
				}
			}
		}
	}
}

// want fails unless an answer has this status.
func (c *client) want(request []byte, status int) error {
	got, err := c.send(request)
	if err == nil && got != status {
		err = fmt.Errorf("%d %s: %s", got, http.StatusText(got), c.body)
	}
	return err
}
