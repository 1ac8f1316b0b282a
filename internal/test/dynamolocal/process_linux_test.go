package dynamolocal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helperVariable makes this test binary a parent that leaves its engine behind; its value is the java to run.
const helperVariable = "SLUICE_TEST_ORPHAN"

func TestMain(m *testing.M) {
	if java := os.Getenv(helperVariable); java != "" {
		leaveOrphan(java)
	}
	m.Run()
}

// leaveOrphan launches an engine, prints its process id and dies as a killed test binary does.
func leaveOrphan(java string) {
	p, err := launch(java, "", 0)
	if err != nil {
		panic(err)
	}
	fmt.Println(p.Pid())
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// endlessJava is a stand-in for java that runs until it is killed; it needs neither Java nor the jars.
func endlessJava(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "java")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexec sleep 600\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestStopLeavesNoProcess(t *testing.T) {
	p, err := launch(endlessJava(t), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.stop(); err != nil {
		t.Fatal(err)
	}
	if running(p.Pid()) {
		t.Errorf("process %d is still there", p.Pid())
	}
}

func TestEngineDiesWithParent(t *testing.T) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), helperVariable+"="+endlessJava(t))
	out, err := parent.Output()
	if _, killed := errors.AsType[*exec.ExitError](err); !killed {
		t.Fatalf("the parent ended with %v", err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the engine is gone", func() bool { return !running(pid) })
}

func TestEngineOutlivesTheThreadOfItsCaller(t *testing.T) {
	java := endlessJava(t)
	var p *process
	var err error
	tid := onThreadThatEnds(func() { p, err = launch(java, "", 0) })
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the thread has ended", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", tid))
		return errors.Is(err, os.ErrNotExist)
	})
	select { // the kernel has sent its signal by now, if it sends one; half a second is for it to be felt
	case <-p.Exited():
		t.Error("the engine ended with the thread")
	case <-time.After(500 * time.Millisecond):
	}
	_ = p.stop()
}

// onThreadThatEnds calls f on a thread that ends right after it, and returns that thread's id.
func onThreadThatEnds(f func()) int {
	ended := make(chan int)
	go func() {
		runtime.LockOSThread() // a goroutine that ends locked takes its thread along
		tid := syscall.Gettid()
		if tid == os.Getpid() { // but the main thread never ends: keep it busy and take another
			tid = onThreadThatEnds(f)
			runtime.UnlockOSThread()
		} else {
			f()
		}
		ended <- tid
	}()
	return <-ended
}

func TestStopTellsThatTheEngineHadDied(t *testing.T) {
	p, err := launch("/bin/false", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	if err := p.stop(); err == nil || !strings.HasPrefix(err.Error(), "DynamoDB Local had exited by itself") {
		t.Errorf("stop returned %v", err)
	}
}

// TestExited: who runs the engine in the foreground sees it go.
func TestExited(t *testing.T) {
	p, err := launch("/bin/false", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{process: p, stop: p.stop}
	<-s.Exited()
	if err := s.Stop(); err == nil {
		t.Error("Stop does not tell that the engine had died")
	}
	if (&Server{}).Exited() != nil {
		t.Error("an engine that somebody else runs has a process")
	}
}

// running tells whether a process exists that is not a zombie: in a container, nobody may collect an orphan.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("not within 10 s: %s", what)
		case <-tick.C:
		}
	}
}
