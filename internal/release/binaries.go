package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// targets lists the systems to build for.
const targets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// bom writes the bill of materials of a binary.
const bom = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"

// binaries builds the command for each target as `go install` builds it from a proxy, which gives it its
// version. Beside the archives it writes their bills of materials, and the checksums of all.
func (r release) binaries(ctx context.Context) error {
	if !r.trial {
		if err := errors.Join(r.isClean(ctx), r.isTagged(ctx)); err != nil {
			return err
		}
	}
	out, err := filepath.Abs(filepath.Join(r.root, r.out))
	if err != nil {
		return err
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "sluice-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // what stays is in the folder for temporary files
	env, err := proxied(ctx, r.root, r.version, work)
	if err != nil {
		return err
	}
	for target := range strings.FieldsFuncSeq(r.targets, func(c rune) bool { return c == ',' }) {
		r.say("%s\n", target)
		if err := r.binary(ctx, env, target, work, out); err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
	}
	return checksums(out)
}

// proxied writes a proxy of the tree below a folder. It returns an environment for the go command that finds
// the tree's modules there, and all others where they are found today. The environment has a cache of its
// own: a version that nobody has published must not stay in the cache of this machine.
func proxied(ctx context.Context, root, version, work string) ([]string, error) {
	p := proxy{root: root, version: version, dir: filepath.Join(work, "proxy")}
	if err := p.write(ctx); err != nil {
		return nil, err
	}
	today, err := command(ctx, root, "go", "env", "GOMODCACHE", "GOPROXY")
	if err != nil {
		return nil, err
	}
	cache, next, _ := strings.Cut(strings.TrimSpace(today), "\n")
	return append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw -trimpath", "CGO_ENABLED=0",
		"GOPATH="+filepath.Join(work, "go"), "GOMODCACHE="+filepath.Join(work, "mod"),
		"GONOSUMDB="+rootPath, "GOPROXY="+strings.Join([]string{fileURL(p.dir),
			fileURL(filepath.Join(cache, "cache", "download")), next}, ",")), nil
}

// fileURL returns the URL of an absolute folder.
func fileURL(dir string) string {
	if dir = filepath.ToSlash(dir); !strings.HasPrefix(dir, "/") {
		dir = "/" + dir // a drive of Windows
	}
	return "file://" + dir
}

// binary builds the command for one target, packs it and writes its bill of materials.
func (r release) binary(ctx context.Context, env []string, target, work, out string) error {
	goos, goarch, ok := strings.Cut(target, "/")
	if !ok {
		return errors.New("not like linux/amd64")
	}
	install := exec.CommandContext(ctx, "go", "install", "-ldflags=-s -w",
		modulePath("cmd/sluice")+"@"+r.version)
	install.Dir = work
	install.Env = append(slices.Clone(env), "GOOS="+goos, "GOARCH="+goarch)
	install.Stderr = r.log
	if err := install.Run(); err != nil {
		return fmt.Errorf("go install: %w", err)
	}
	built := filepath.Join(work, "go", "bin")
	if target != runtime.GOOS+"/"+runtime.GOARCH {
		built = filepath.Join(built, goos+"_"+goarch)
	}
	program := "sluice"
	if goos == "windows" {
		program += ".exe"
	}
	name := fmt.Sprintf("sluice_%s_%s_%s", strings.TrimPrefix(r.version, "v"), goos, goarch)
	describe := exec.CommandContext(ctx, "go", "run", bom, "bin", "-json", "-output",
		filepath.Join(out, name+".cdx.json"), filepath.Join(built, program))
	describe.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	describe.Dir = work
	if text, err := describe.CombinedOutput(); err != nil {
		return fmt.Errorf("the bill of materials: %w: %s", err, text)
	}
	files := []string{filepath.Join(built, program), filepath.Join(r.root, "LICENSE"),
		filepath.Join(r.root, "README.md")}
	if goos == "windows" {
		return pack(filepath.Join(out, name+".zip"), files, zipped)
	}
	return pack(filepath.Join(out, name+".tar.gz"), files, tarred)
}

// pack writes files to an archive.
func pack(archive string, files []string, as func(io.Writer, []string) error) error {
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	return errors.Join(as(f, files), f.Close())
}

// tarred writes a .tar.gz. Its bytes depend on those of the files alone: it contains no owner and no time.
func tarred(w io.Writer, files []string) error {
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.Base(name), Mode: mode(name), Size: int64(len(data)), Format: tar.FormatPAX}
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		if _, err := archive.Write(data); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// mode returns the permissions of a file in an archive: programs have no extension.
func mode(name string) int64 {
	if filepath.Ext(name) == "" && filepath.Base(name) != "LICENSE" {
		return 0o755
	}
	return 0o644
}

// zipped writes a .zip. Its entries have no owner and no time either.
func zipped(w io.Writer, files []string) error {
	archive := zip.NewWriter(w)
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		f, err := archive.Create(filepath.Base(name))
		if err != nil {
			return err
		}
		if _, err := f.Write(data); err != nil {
			return err
		}
	}
	return archive.Close()
}

// checksums writes checksums.txt, which `sha256sum -c` reads.
func checksums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(text.String()), 0o644)
}
