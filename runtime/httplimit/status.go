package httplimit

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
)

// statusWriter notes the status of an answer.
type statusWriter struct {
	http.ResponseWriter

	status   int
	hijacked bool
	conn     func(net.Conn) net.Conn // what becomes of a hijacked connection; nil if nothing does
	held     bool                    // it has become that
}

// code is the answer's status: where the handler wrote nothing, the server says 200.
func (w *statusWriter) code() int {
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

// WriteHeader implements http.ResponseWriter. An informational status is not the answer yet.
func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *statusWriter) Write(p []byte) (int, error) {
	w.status = w.code()
	return w.ResponseWriter.Write(p)
}

// ReadFrom implements io.ReaderFrom, by which the server sends files without copying them.
func (w *statusWriter) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(w.ResponseWriter, r)
	if n > 0 { // else nothing was written yet
		w.status = w.code()
	}
	return n, err
}

// Unwrap lets http.ResponseController find what else the server's writer can do.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher, which handlers that stream still ask for. It does nothing if the server
// cannot.
func (w *statusWriter) Flush() { _ = w.FlushError() }

// FlushError is what http.ResponseController asks for, whose callers want to know that an answer does not get
// through.
func (w *statusWriter) FlushError() error {
	err := http.NewResponseController(w.ResponseWriter).Flush()
	if !errors.Is(err, http.ErrNotSupported) {
		w.status = w.code()
	}
	return err
}

// Hijack implements http.Hijacker, as Flush does http.Flusher. It fails if the server cannot.
func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.hijacked = w.hijacked || err == nil
	if err == nil && w.conn != nil {
		conn, w.held = w.conn(conn), true
	}
	return conn, buffered, err
}
