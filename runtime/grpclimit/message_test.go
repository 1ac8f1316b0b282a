package grpclimit_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/grpclimit"
	"github.com/sluice-go/sluice/runtime/limittest"
)

type duplex = grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]

// echo answers each message, and calls work before.
func echo(work func(context.Context) error) func(duplex) error {
	return func(s duplex) error {
		for {
			if _, err := s.Recv(); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := work(s.Context()); err != nil {
				return err
			}
			if err := s.Send(&pb.StreamingOutputCallResponse{}); err != nil {
				return err
			}
		}
	}
}

// say sends messages that cost so much, each once the one before was answered, and returns how many were.
func say(t *testing.T, client pb.TestServiceClient, costs ...int32) (answered int, err error) {
	t.Helper()
	s, err := client.FullDuplexCall(t.Context())
	for _, cost := range costs {
		if err == nil {
			err = s.Send(message(cost))
		}
		if err == nil {
			_, err = s.Recv()
		}
		if err != nil {
			return answered, err
		}
		answered++
	}
	if err := s.CloseSend(); err != nil {
		return answered, err
	}
	_, err = s.Recv()
	return answered, err
}

// TestMessages: each is charged, has its own lease, and the first that is refused ends the stream.
func TestMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := open(t, limittest.Store(t))
		var leases []*limits.GPT4Lease
		client := serve(t, &service{duplex: echo(func(ctx context.Context) error {
			leases = append(leases, grpclimit.Lease[limits.GPT4Cost](ctx))
			settle(ctx)
			return nil
		})}, messages(lim.GPT4))
		// 15,000 is the burst: what was settled down is there again.
		answered, err := say(t, client, 8_000, 0, 14_000, 14_998)
		st := status.Convert(err)
		if answered != 3 || st.Code() != codes.ResourceExhausted || len(st.Details()) != 2 {
			t.Fatalf("%d answered, %v", answered, st)
		}
		if leases[0].Cost().TPM != 8_000 || leases[1] != nil || leases[2].Cost().TPM != 14_000 {
			t.Errorf("%v", leases)
		}
		snapshot, err := lim.GPT4.Peek(t.Context(), limits.User{ID: "1", Project: limits.Project{ID: "1"}})
		if err != nil || snapshot.Available.TPM != 15_000-2*3 || snapshot.Available.RPM != 98 {
			t.Errorf("%+v %v", snapshot, err)
		}
	})
}

// TestMessagesLeases: a failure concerns the message that was received last, and a refusal none.
func TestMessagesLeases(t *testing.T) {
	failed := status.Error(codes.Aborted, "failed")
	for _, test := range []struct {
		name     string
		work     func(*limittest.Fake[limits.GPT4Entity, limits.GPT4Cost]) error // of the second message
		third    int32
		code     codes.Code
		released []bool
	}{
		{"none fails", nil, 30, codes.OK, []bool{false, false, true}}, // always: OK too
		{"fails", func(*limittest.Fake[limits.GPT4Entity, limits.GPT4Cost]) error { return failed }, 30,
			codes.Aborted, []bool{false, true}},
		{"panics", func(*limittest.Fake[limits.GPT4Entity, limits.GPT4Cost]) error { panic("bug") }, 30,
			codes.DataLoss, []bool{false, true}},
		{"the third is refused", func(f *limittest.Fake[limits.GPT4Entity, limits.GPT4Cost]) error {
			f.Deny(limits.GPT4TPM, time.Second)
			return nil
		}, 30, codes.ResourceExhausted, []bool{false, false, false}},
		{"the third is free", nil, 0, codes.OK, []bool{false, false}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake, n := newFake(), 0
				client := serve(t, &service{duplex: echo(func(context.Context) error {
					if n++; n == 2 && test.work != nil {
						return test.work(fake)
					}
					return nil
				})}, messages(fake, always))
				_, err := say(t, client, 10, 20, test.third)
				synctest.Wait()
				calls := fake.Calls()
				if codeOf(err) != test.code || len(calls) != len(test.released) {
					t.Fatalf("%v %+v", err, calls)
				}
				for i, c := range calls {
					if c.Released != test.released[i] || c.Cost.TPM != int64(10*(i+1)) {
						t.Errorf("message %d: %+v", i, c)
					}
				}
			})
		})
	}
}

// TestTwoGoroutines: one receives while the other sends, as gRPC allows; the race detector watches.
func TestTwoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := newFake()
		const each = 100
		client := serve(t, &service{duplex: func(s duplex) error {
			received := make(chan error, 1)
			go func() {
				for {
					if _, err := s.Recv(); err != nil {
						received <- err
						return
					}
					settle(s.Context())
				}
			}()
			for range each {
				if err := s.Send(&pb.StreamingOutputCallResponse{}); err != nil {
					return err
				}
			}
			if err := <-received; !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		}}, messages(fake, grpclimit.Metadata(), always))
		s, err := client.FullDuplexCall(t.Context())
		for range each {
			if err == nil {
				err = s.Send(message(7))
			}
		}
		if err == nil {
			err = s.CloseSend()
		}
		replies := -1
		for ; err == nil; replies++ {
			_, err = s.Recv()
		}
		if !errors.Is(err, io.EOF) || replies != each {
			t.Errorf("%d replies, %v", replies, err)
		}
		calls := fake.Calls()
		if len(calls) != each {
			t.Errorf("%d charged", len(calls))
		}
		for i, c := range calls {
			if c.Settled.TPM != 3 {
				t.Errorf("message %d: %+v", i, c)
			}
		}
	})
}
