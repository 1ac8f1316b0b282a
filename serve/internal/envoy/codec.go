package envoy

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// Bounds of a request. Values may be as long as Envoy's own headers: a caller must not make a request that
// is refused, since Envoy may admit then.
const (
	mostMessage     = 1 << 20 // bytes
	mostDescriptors = 50
	mostEntries     = 1_000 // of all descriptors of a request
)

// codec is the one of protobuf. It refuses requests with more descriptors than are served, before it decodes
// them: an empty descriptor takes two bytes on the wire, and a hundred in memory.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(grpcproto.Name)} }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if _, ours := v.(*ratelimit.RateLimitRequest); ours {
		flat := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer flat.Free()
		if err := checkSize(flat.ReadOnlyData()); err != nil {
			return err
		}
	}
	return c.CodecV2.Unmarshal(data, v)
}

// checkSize returns the error for a request with too many parts.
func checkSize(request []byte) error {
	const descriptors, entries = 2, 1 // fields of the request, and of a descriptor
	all, inner := 0, 0
	for _, d := range fields(request, descriptors) {
		if all++; all > mostDescriptors {
			return fmt.Errorf("the request has more than %d descriptors: send fewer", mostDescriptors)
		}
		for range fields(d, entries) {
			if inner++; inner > mostEntries {
				return fmt.Errorf("the descriptors have more than %d entries: send fewer", mostEntries)
			}
		}
	}
	return nil
}

// fields yields the values of a field of bytes in a message. It stops where the message is not valid, which
// decoding reports.
func fields(message []byte, field protowire.Number) func(yield func(int, []byte) bool) {
	return func(yield func(int, []byte) bool) {
		for i := 0; len(message) > 0; {
			number, kind, n := protowire.ConsumeTag(message)
			if n < 0 {
				return
			}
			message = message[n:]
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return
			}
			if number == field && kind == protowire.BytesType {
				value, _ := protowire.ConsumeBytes(message)
				if !yield(i, value) {
					return
				}
				i++
			}
			message = message[n:]
		}
	}
}
