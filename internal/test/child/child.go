// Package child runs programs that do not outlive this one.
package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// Process is one running program.
type Process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// Start starts cmd. It returns as soon as the process exists.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, exited: make(chan struct{})}
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error, 1)
	go func() {
		// Linux sends the parent-death signal when the *thread* that forked ends, not the process. Locked, this
		// goroutine keeps that thread to itself and alive for as long as the child is.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(p.exited)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is always ended by a signal: how it ended is told by its output
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// Exited is closed once the process is gone and its output read.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Pid is the process's id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Kill ends the process and waits until it is gone. One that had exited by itself is os.ErrProcessDone.
func (p *Process) Kill() error {
	err := p.cmd.Process.Kill()
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill process %d: %w", p.Pid(), err)
	}
	<-p.exited
	return err
}
