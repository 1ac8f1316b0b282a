package dynamolocal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"github.com/sluice-go/sluice/internal/test/child"
)

// javaFlags keep the JVM small, because `go test ./...` runs one engine per package at once. The C1 compiler
// and the serial collector alone halve its processor time. On two cores, 8 writers get 1,300 updates/s at
// once and 1,900 warm; with the JVM's defaults they get 750 and 1,400.
var javaFlags = []string{
	"-Xmx1g",
	"-XX:+UseSerialGC",
	"-XX:TieredStopAtLevel=1",
}

// process is one running JVM.
type process struct {
	*child.Process

	output *tail
}

// launch starts the engine in dir's jars on port. It returns as soon as the process exists.
func launch(java, dir string, port int) (*process, error) {
	args := append([]string(nil), javaFlags...)
	args = append(args,
		"-Djava.library.path="+dir,
		"-cp", dir+string(os.PathSeparator)+"*",
		"com.amazonaws.services.dynamodbv2.local.main.ServerRunner",
		"-inMemory", "-sharedDb", "-disableTelemetry", "-port", strconv.Itoa(port))
	cmd, output := exec.Command(java, args...), new(tail)
	cmd.Stdout, cmd.Stderr = output, output
	started, err := child.Start(cmd)
	if err != nil {
		return nil, err
	}
	return &process{started, output}, nil
}

// stop ends the process and waits until it is gone. The engine keeps everything in memory, so it has nothing
// to save.
func (p *process) stop() error {
	err := p.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("DynamoDB Local had exited by itself; it printed:\n%s", p.output)
	}
	if err != nil {
		return fmt.Errorf("stop DynamoDB Local: %w", err)
	}
	return nil
}
