package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/examples/gateway/limits"
)

// stream is a reply as server-sent events, one for each piece of text that the model gives.
type stream struct {
	w       http.ResponseWriter
	id      string
	created time.Time
	model   string
	sent    int64 // tokens that have left, as far as this end can tell
	begun   bool  // the answer's header has been written
	hungUp  bool  // the client has hung up
}

func newStream(w http.ResponseWriter, model string) *stream {
	return &stream{w: w, id: "chatcmpl-" + rand.Text(), created: time.Now(), model: model}
}

// chunk is the data of an event.
type chunk struct {
	ID      string      `json:"id"`
	Object  string      `json:"object"`
	Created int64       `json:"created"`
	Model   string      `json:"model"`
	Choices []choice    `json:"choices"`
	Usage   *tokenUsage `json:"usage,omitempty"` // of the last
}

type choice struct {
	Index int `json:"index"`
	Delta struct {
		Content string `json:"content,omitempty"`
	} `json:"delta"`
	FinishReason *string `json:"finish_reason"`
}

type tokenUsage struct {
	Prompt     int64 `json:"prompt_tokens"`
	Completion int64 `json:"completion_tokens"`
	Total      int64 `json:"total_tokens"`
}

// done is the data of a stream's last event.
const done = "[DONE]"

// send sends a piece of the reply, and reports whether it left. A piece that did not leave does not count as
// sent.
func (s *stream) send(text string) bool {
	one := choice{}
	one.Delta.Content = text
	s.event(chunk{Choices: []choice{one}})
	if !s.hungUp {
		s.sent += tokens(text)
	}
	return !s.hungUp
}

// end ends the reply, of a call with that usage; failure is why the model has broken off, if it has.
func (s *stream) end(used limits.GPT4Usage, failure error) {
	if failure != nil {
		var said errorBody
		said.Error.Message = "The model broke off."
		data, _ := json.Marshal(said)
		s.write(data)
		return
	}
	stop := "stop"
	s.event(chunk{
		Choices: []choice{{FinishReason: &stop}},
		Usage:   &tokenUsage{Prompt: used.Input, Completion: used.Output, Total: used.Input + used.Output},
	})
	s.write([]byte(done))
}

func (s *stream) event(c chunk) {
	c.ID, c.Object, c.Created, c.Model = s.id, "chat.completion.chunk", s.created.Unix(), s.model
	data, _ := json.Marshal(c) // there is nothing in it that could not be written
	s.write(data)
}

// stalled is how long an event may take to leave: a client that has stopped to read is as good as gone.
const stalled = 10 * time.Second

// write writes an event, and has it leave at once.
func (s *stream) write(data []byte) {
	if s.hungUp {
		return
	}
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		s.w.Header().Set("Cache-Control", "no-store")
	}
	control := http.NewResponseController(s.w)
	err := control.SetWriteDeadline(time.Now().Add(stalled))
	if err == nil {
		_, err = fmt.Fprintf(s.w, "data: %s\n\n", data)
	}
	if err == nil {
		err = control.Flush()
	}
	s.hungUp = err != nil
}
