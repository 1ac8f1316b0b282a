package s3store

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// MaxBytes is the maximum size of an object, compressed and not: 64 MiB.
const MaxBytes = 64 << 20

// TooLargeError says that an object is larger than MaxBytes.
type TooLargeError struct {
	Object string // s3://bucket/key
	Most   int    // bytes
}

// Error names the object and says what to do.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s is larger than %d MiB; it is no snapshot, or one of too many entities: share "+
		"fewer resources out",
		e.Object, e.Most>>20)
}

// errTooLarge stands for a TooLargeError until the object is known.
var errTooLarge = errors.New("too large")

// pack compresses an object of at most so many bytes.
func pack(object []byte, most int) ([]byte, error) {
	if len(object) > most {
		return nil, errTooLarge
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := w.Write(object)
	err = errors.Join(err, w.Close())
	return packed.Bytes(), err
}

// unpack reads an object, compressed or not. The first bytes decide: an object copied by hand loses its
// Content-Encoding, and some clients decompress by themselves.
func unpack(body io.ReadCloser, most int) ([]byte, error) {
	object, err := bounded(body, most)
	if err = errors.Join(err, body.Close()); err != nil || !bytes.HasPrefix(object, []byte{0x1f, 0x8b}) {
		return object, err
	}
	r, err := gzip.NewReader(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	return bounded(r, most)
}

// bounded reads all of r. It fails if that is more than so many bytes.
func bounded(r io.Reader, most int) ([]byte, error) {
	all, err := io.ReadAll(io.LimitReader(r, int64(most)+1))
	if err == nil && len(all) > most {
		err = errTooLarge
	}
	return all, err
}
