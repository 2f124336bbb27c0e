package root_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/helve-ai/helve/root"
)

// settle waits until the rule files are old enough to be kept.
func settle(b *testing.B, dir string) {
	b.Helper()
	for _, name := range []string{root.IgnoreFile, root.ProtectFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err == nil {
			for time.Since(info.ModTime()) < 2100*time.Millisecond {
			}
		}
	}
}

func BenchmarkResolve(b *testing.B) {
	for _, rules := range []string{"none", "rules"} {
		b.Run(rules, func(b *testing.B) {
			r, dir := newRoot(b)
			put(b, dir, "src/pkg/file.go", "x")
			if rules == "rules" {
				put(b, dir, root.IgnoreFile, "*.pem\n*.key\nbuild/\n/secrets/\nnode_modules/\n**/private/**\n.env*\n!.env.example\ndist\n*.log\n")
				put(b, dir, root.ProtectFile, "go.mod\nLICENSE\n")
				settle(b, dir)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Resolve("src/pkg/file.go", root.ToRead); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReadFile(b *testing.B) {
	r, dir := newRoot(b)
	put(b, dir, "src/pkg/file.go", "package x\n")
	p := resolve(b, r, "src/pkg/file.go", root.ToRead)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.ReadFile(p, 0); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWalk(b *testing.B) {
	r, dir := newRoot(b)
	for i := range 100 {
		for j := range 20 {
			put(b, dir, fmt.Sprintf("d%d/f%d", i, j), "x")
		}
	}
	put(b, dir, root.IgnoreFile, "*.pem\n*.key\nbuild/\n/secrets/\nnode_modules/\n**/private/**\n")
	for b.Loop() {
		n := 0
		if err := r.Walk(context.Background(), ".", root.WalkOptions{}, func(root.Entry) error { n++; return nil }); err != nil || n != 2101 {
			b.Fatal(n, err)
		}
	}
}
