package process

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/sluice-go/sluice/internal/tool/textfile"
)

// listen opens the listener of a flag with an address.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	var config net.ListenConfig
	path, unix := strings.CutPrefix(address, "unix:")
	if !unix {
		l, err := config.Listen(ctx, "tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("--%s %s is in use: choose another port, or 0 for a free one", flag, address)
		}
		if err != nil {
			return nil, fmt.Errorf("--%s %s: %w: pass an address of this machine and a port", flag, address, err)
		}
		return l, nil
	}
	// A socket file stays after a crash: one that refuses connections is removed. That of a process that is too
	// busy to accept one, or is another user's, stays.
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		_ = c.Close()
	}
	at, missing := os.Lstat(path)
	switch {
	case missing != nil:
	case errors.Is(err, syscall.ECONNREFUSED) && at.Mode()&os.ModeSocket != 0:
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("--%s %s is in use: choose another path", flag, address)
	}
	l, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w: choose a path in a folder that is there", flag, address, err)
	}
	return l, os.Chmod(path, 0o660)
}

// tls returns the configuration of TLS: nil without --tls-cert. The certificate is read again for each
// connection, so that a new one needs no restart.
func (f *Flags) tls() (*tls.Config, error) {
	if f.TLSCert == "" {
		return nil, nil
	}
	if _, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey); err != nil {
		return nil, fmt.Errorf("--tls-cert, --tls-key: %w: pass files in PEM, of one pair", err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(f.TLSCert, f.TLSKey)
			return &pair, err
		},
	}
	if f.TLSClientCA != "" {
		text, err := textfile.Read(f.TLSClientCA)
		if err != nil {
			return nil, fmt.Errorf("--tls-client-ca: %w: pass a file in PEM", err)
		}
		config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !config.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--tls-client-ca %s has no certificate: pass a file in PEM", f.TLSClientCA)
		}
	}
	return config, nil
}

// leastToken is the length of the shortest token, in bytes.
const leastToken = 16

// readTokens reads --token-file: a token in each line, and comments behind #. It returns none without the
// flag.
func (f *Flags) readTokens() (all []string, err error) {
	if f.TokenFile == "" {
		return nil, nil
	}
	text, err := textfile.Read(f.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("--token-file: %w: pass a file with a token in each line", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		token := strings.TrimSpace(lines.Text())
		switch {
		case token == "" || strings.HasPrefix(token, "#"):
		case len(token) < leastToken:
			return nil, fmt.Errorf("--token-file %s:%d: a token has %d bytes, at least %d are needed: make one with "+
				"`openssl rand -hex 32`", f.TokenFile, n, len(token), leastToken)
		default:
			all = append(all, token)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("--token-file %s: %w", f.TokenFile, err)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("--token-file %s has no token: write one per line", f.TokenFile)
	}
	return all, nil
}
