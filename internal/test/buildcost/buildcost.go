// Package buildcost measures what a resource of a schema adds to a build of the generated package.
package buildcost

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/gomod"
)

// module is the path of this project's module.
const module = "github.com/sluice-go/sluice"

// Cost is what one resource adds to a build of the generated package, without its tests.
type Cost struct {
	CPU     time.Duration // of the go command and the compiler
	Memory  float64       // bytes, at the compiler's peak; 0 if the system is not Linux
	Archive float64       // bytes of the compiled package
	Review  float64       // lines of EXPRESSIONS.md
}

// Schema returns a schema for both stores. Each resource has three limits and the buckets of two kinds, which
// a call charges together.
func Schema(resources int) string {
	var b strings.Builder
	b.WriteString("version: 1\nowner: acme\nrevision: 1\ngo: {package: limits}\nstores: [dynamodb, redis]\n" +
		"entities: {project: {}, user: {parent: project}}\nresources:\n")
	for r := range resources {
		fmt.Fprintf(&b, "  model-%d:\n    doc: Calls of model %d.\n    limits:\n", r, r)
		fmt.Fprintf(&b, "      rpm: {doc: requests, capacity: %d, every: 1m, per_call: 1}\n", r+100)
		fmt.Fprintf(&b, "      tpm: {doc: tokens, capacity: %d, every: 1m}\n", r+10_000)
		fmt.Fprintf(&b, "      tph: {doc: tokens, capacity: %d, every: 1h}\n", r+100_000)
		b.WriteString("    entities: {user: {}, project: {rpm: {capacity: 1_000_000}}}\n")
	}
	return b.String()
}

// Review returns the lines of EXPRESSIONS.md that a resource beyond the first adds.
func Review(dir string) (float64, error) {
	one, err := lines(dir, 1)
	if err != nil {
		return 0, err
	}
	const more = 10
	all, err := lines(dir, 1+more)
	return float64(all-one) / more, err
}

// lines returns how many lines the EXPRESSIONS.md of so many resources has. It leaves their schema in dir.
func lines(dir string, resources int) (int, error) {
	result, err := generate(dir, resources)
	if err != nil {
		return 0, err
	}
	for _, f := range result.Files {
		if filepath.Base(f.Path) == "EXPRESSIONS.md" {
			return bytes.Count(f.Data, []byte("\n")), nil
		}
	}
	return 0, fmt.Errorf("no EXPRESSIONS.md for %d resources", resources)
}

func generate(dir string, resources int) (*gen.Result, error) {
	path := filepath.Join(dir, "limits.yaml")
	if err := os.WriteFile(path, []byte(Schema(resources)), 0o644); err != nil {
		return nil, err
	}
	return gen.Run(gen.Config{Schema: path})
}

// Measure builds packages of few and of many resources in modules of their own below dir, which is empty. It
// returns the difference for each resource. First it builds the packages that both import.
func Measure(ctx context.Context, dir string) (Cost, error) {
	const few, many = 10, 30
	if _, err := build(ctx, filepath.Join(dir, "warm"), 1); err != nil {
		return Cost{}, err
	}
	from, err := build(ctx, filepath.Join(dir, "few"), few)
	if err != nil {
		return Cost{}, err
	}
	to, err := build(ctx, filepath.Join(dir, "many"), many)
	if err != nil {
		return Cost{}, err
	}
	review, err := Review(dir)
	return Cost{
		CPU:     (to.CPU - from.CPU) / (many - few),
		Memory:  (to.Memory - from.Memory) / (many - few),
		Archive: (to.Archive - from.Archive) / (many - few),
		Review:  review,
	}, err
}

// build returns what it costs to compile a package of so many resources, in a new module in dir.
func build(ctx context.Context, dir string, resources int) (c Cost, err error) {
	if err := newModule(dir); err != nil {
		return c, err
	}
	result, err := generate(dir, resources)
	if err != nil {
		return c, err
	}
	if err := result.Write(); err != nil {
		return c, err
	}
	cmd, _, err := goCommand(ctx, dir, "build", "./limits")
	if err != nil {
		return c, err
	}
	c.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	c.Memory = peak(cmd.ProcessState)
	_, archive, err := goCommand(ctx, dir, "list", "-export", "-f", "{{.Export}}", "./limits")
	if err != nil {
		return c, err
	}
	info, err := os.Stat(archive)
	if err != nil {
		return c, err
	}
	c.Archive = float64(info.Size())
	return c, nil
}

// newModule makes dir a module that requires this one, as it is on disk.
func newModule(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	root, err := gomod.Workspace(".")
	if err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return err
	}
	own := strings.Replace(string(mod), "module "+module, "module example.com/buildcost", 1) +
		fmt.Sprintf("\nrequire %[1]s v0.0.0\n\nreplace %[1]s => %[2]s\n", module, root)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte(own), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o644)
}

// goCommand runs the go command in dir and returns its output, without white space around it.
func goCommand(ctx context.Context, dir string, args ...string) (*exec.Cmd, string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	// The compiler's memory depends on its garbage collector, which tests set, and on how much it does at once.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOGC=100", "GOMAXPROCS=1")
	var out, failed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &failed
	if err := cmd.Run(); err != nil {
		return nil, "", fmt.Errorf("go %s: %w\n%s", args[0], err, &failed)
	}
	return cmd, strings.TrimSpace(out.String()), nil
}
