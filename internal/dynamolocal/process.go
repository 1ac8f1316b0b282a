package dynamolocal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
)

// javaFlags keep the JVM small, because `go test ./...` runs one engine per package at once. The C1 compiler and the
// serial collector alone halve its processor time: on two cores, 8 writers get 1,300 updates/s at once and 1,900 warm,
// with the JVM's defaults 750 and 1,400.
var javaFlags = []string{
	"-Xmx1g",
	"-XX:+UseSerialGC",
	"-XX:TieredStopAtLevel=1",
}

// process is one running JVM.
type process struct {
	cmd    *exec.Cmd
	output *tail
	exited chan struct{} // closed once the process is gone and its output read
}

// launch starts the engine in dir's jars on port. It returns as soon as the process exists.
func launch(java, dir string, port int) (*process, error) {
	args := append([]string(nil), javaFlags...)
	args = append(args,
		"-Djava.library.path="+dir,
		"-cp", dir+string(os.PathSeparator)+"*",
		"com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
		"-inMemory", "-sharedDb", "-disableTelemetry", "-port", strconv.Itoa(port))
	p := &process{cmd: exec.Command(java, args...), output: new(tail), exited: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.cmd.SysProcAttr = dieWithParent()

	started := make(chan error, 1)
	go func() {
		// Linux sends the parent-death signal when the *thread* that forked ends, not the process. Locked, this
		// goroutine keeps that thread to itself and alive for as long as the child is.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // an engine is always ended by a signal: how it ended is told by its output
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", java, err)
	}
	return p, nil
}

// stop ends the process and waits until it is gone. The engine keeps everything in memory, so it has nothing to save.
func (p *process) stop() error {
	switch err := p.cmd.Process.Kill(); {
	case errors.Is(err, os.ErrProcessDone):
		<-p.exited
		return fmt.Errorf("DynamoDB Local had exited by itself; it printed:\n%s", p.output)
	case err != nil:
		return fmt.Errorf("stop DynamoDB Local (process %d): %w", p.cmd.Process.Pid, err)
	}
	<-p.exited
	return nil
}
