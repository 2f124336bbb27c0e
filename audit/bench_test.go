package audit_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/helve-ai/helve/audit"
)

// sample is a call as most are.
func sample() *audit.Entry {
	return &audit.Entry{
		Time: time.Date(2026, 11, 20, 12, 30, 0, 123456789, time.UTC),
		App:  "coder", Agent: "main", Session: "s-01HV7Z", User: "ada", Kind: "model",
		Call: "call_8f2k1", Parent: "call_8f2k0", Via: []string{"execute_tool"},
		Tool: "filesystem.write", Effect: "writes",
		Args:     json.RawMessage(`{"path": "docs/naïve \"x\".md", "content": "one\ntwo\nthree, and some more text to write", "mode": 420}`),
		Decision: "allow", Stage: "policy", Reason: "granted by rule filesystem.write(path: \"docs/**\")",
		Duration: 1500 * time.Microsecond, ResultBytes: 812, ResultDigest: "sha256:9f86d081884c7d65",
		Cost: audit.Cost{Tokens: 12, Money: "0.0001 USD"}, Notes: []string{"mode: \"420\" to 420"},
	}
}

func BenchmarkAppend(b *testing.B) {
	l, err := audit.Open(b.TempDir(), audit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	e := sample()
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Append(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReserve(b *testing.B) {
	l, err := audit.Open(b.TempDir(), audit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Reserve(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReserveAppendParallel(b *testing.B) {
	l, err := audit.Open(b.TempDir(), audit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		e := sample()
		for pb.Next() {
			if err := l.Reserve(); err != nil {
				b.Error(err)
			}
			if err := l.Append(e); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	dir := b.TempDir()
	l, err := audit.Open(dir, audit.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for range 10_000 {
		if err := l.Append(sample()); err != nil {
			b.Fatal(err)
		}
	}
	l.Close()
	for b.Loop() {
		if r, err := audit.Verify(dir); err != nil || len(r.Problems) > 0 {
			b.Fatal(r, err)
		}
	}
}
