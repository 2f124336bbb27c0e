package guard

import (
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/helve-ai/helve/tool"
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// metered reports whether a call of the tool costs money.
func metered(t *tool.Tool) bool { return t.CostClass != "" && t.CostClass != tool.FreeLocal }

type retrySettings struct {
	Attempts   int      `json:"attempts" min:"2" max:"10" jsonschema:"how often a call is made, at most"`
	Backoff    float64  `json:"backoff" min:"0" max:"60" jsonschema:"seconds before the second attempt; each further one waits twice as long"`
	MaxBackoff float64  `json:"max_backoff" min:"0" max:"300" jsonschema:"seconds between attempts, at most"`
	Idempotent []string `json:"idempotent" jsonschema:"names or globs of tools that change something and may be called twice all the same"`
}

func (s retrySettings) Validate() error {
	if s.Attempts < 2 || s.Attempts > 10 {
		return fmt.Errorf("attempts: is %d, where 2 to 10 is wanted", s.Attempts)
	}
	if s.Backoff < 0 || s.MaxBackoff < s.Backoff || s.MaxBackoff > 300 {
		return fmt.Errorf("backoff: want 0 ≤ backoff ≤ max_backoff ≤ 300 seconds")
	}
	return nil
}

// retry calls again what failed with an error that may pass: reads, and what
// the operator calls idempotent; never what costs money.
func retry() *MiddlewareKind {
	return NewMiddleware("retry", "Call again, with growing pauses, when a read fails with an error that may pass.",
		retrySettings{Attempts: 3, Backoff: 0.5, MaxBackoff: 10}, func(s retrySettings, _ MiddlewareHost) (Middleware, error) {
			return Middleware{Around: func(ctx context.Context, c *tool.Call, run func(context.Context) *tool.Result) (*tool.Result, error) {
				again := c.Tool.IsRead() || anyGlob(s.Idempotent, c.Tool.Name) || anyGlob(s.Idempotent, c.Tool.Action())
				if metered(c.Tool) || !again {
					return run(ctx), nil
				}
				pause := seconds(s.Backoff)
				for attempt := 1; ; attempt++ {
					res := run(ctx)
					if res.Err == nil || !res.Err.Retryable || attempt == s.Attempts || !sleep(ctx, pause/2+rand.N(pause/2+1)) {
						return noteAttempts(res, attempt), nil
					}
					pause = min(2*pause, seconds(s.MaxBackoff))
				}
			}}, nil
		})
}

// sleep waits, and reports whether ctx still runs.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func noteAttempts(res *tool.Result, n int) *tool.Result {
	if n == 1 {
		return res
	}
	return withNote(res, fmt.Sprintf("this is the outcome of attempt %d; the others failed", n))
}

func withNote(res *tool.Result, note string) *tool.Result {
	r := *res
	r.Notes = append(slices.Clone(res.Notes), note)
	return &r
}

type timeoutSettings struct {
	Seconds float64 `json:"seconds" jsonschema:"how long a call may take, its repetitions included"`
}

func (s timeoutSettings) Validate() error {
	if s.Seconds <= 0 || s.Seconds > 86400 {
		return errors.New("seconds: want more than 0 and at most 86400")
	}
	return nil
}

func timeLimit() *MiddlewareKind {
	return NewMiddleware("timeout", "Give up on calls that take longer.", timeoutSettings{Seconds: 60},
		func(s timeoutSettings, _ MiddlewareHost) (Middleware, error) {
			return Middleware{Around: func(ctx context.Context, c *tool.Call, run func(context.Context) *tool.Result) (*tool.Result, error) {
				over := errors.New("the time of the timeout middleware is over") // told apart from that of others
				limited, cancel := context.WithTimeoutCause(ctx, seconds(s.Seconds), over)
				defer cancel()
				res := run(limited)
				if res.Err != nil && errors.Is(context.Cause(limited), over) && ctx.Err() == nil {
					return nil, tooLong(c, seconds(s.Seconds))
				}
				return res, nil
			}}, nil
		})
}

// Changes tell which modules' tools changed something lately, so that what was
// read before is read anew. The zero Changes know of none.
type Changes struct {
	mu      sync.Mutex
	modules map[string]uint64
	files   uint64 // changes by tools that reach files, of whatever module
	any     uint64
}

// A version is how often what a tool reads may have changed.
type version struct{ module, files, any uint64 }

func (ch *Changes) of(t *tool.Tool) version {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	v := version{module: ch.modules[t.ModuleName()], any: ch.any}
	if reachesFiles(t) {
		v.files = ch.files
	}
	return v
}

func (ch *Changes) by(t *tool.Tool) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.modules == nil {
		ch.modules = map[string]uint64{}
	}
	ch.modules[t.ModuleName()]++
	ch.any++
	if reachesFiles(t) {
		ch.files++
	}
}

func reachesFiles(t *tool.Tool) bool {
	return t.Needs.Has(tool.NeedsFilesystem) || t.Needs.Has(tool.NeedsProcess) || t.Category == tool.Filesystem || t.Category == tool.Shell
}

// around runs a call and notes whether it may have changed something.
func (ch *Changes) around(t *tool.Tool, run func() *tool.Result) *tool.Result {
	if ch == nil || t.IsRead() {
		return run()
	}
	ch.by(t) // what is being read meanwhile may be half of each
	defer ch.by(t)
	return run()
}

type cacheSettings struct {
	TTL      float64 `json:"ttl" max:"86400" jsonschema:"seconds that a result is kept"`
	Entries  int     `json:"entries" min:"1" max:"100000" jsonschema:"how many results are kept"`
	MaxBytes int     `json:"max_bytes" min:"1" jsonschema:"the size of a result that is kept, at most"`
}

func (s cacheSettings) Validate() error {
	switch {
	case s.TTL <= 0 || s.TTL > 86400:
		return errors.New("ttl: want more than 0 and at most 86400 seconds")
	case s.Entries < 1 || s.Entries > 100000:
		return errors.New("entries: want 1 to 100000")
	case s.MaxBytes < 1:
		return errors.New("max_bytes: want 1 or more")
	}
	return nil
}

// cache answers reads from what the same caller was answered lately.
func cache() *MiddlewareKind {
	return NewMiddleware("cache", "Answer a read from what the same user of the app was answered lately, until the module changes something.",
		cacheSettings{TTL: 60, Entries: 1000, MaxBytes: 1 << 20}, func(s cacheSettings, h MiddlewareHost) (Middleware, error) {
			k := &kept{settings: s, entries: map[string]*list.Element{}}
			return Middleware{Around: func(ctx context.Context, c *tool.Call, run func(context.Context) *tool.Result) (*tool.Result, error) {
				key, ok := cacheKey(c)
				if !ok {
					return run(ctx), nil
				}
				now, v := h.Now(), h.Changes.of(c.Tool)
				if h.Module != "" {
					v.any = 0 // what other modules do is their own affair
				}
				if res, age := k.get(key, v, now); res != nil {
					return withNote(res, fmt.Sprintf("from the cache, %v old", age.Round(time.Second))), nil
				}
				res := run(ctx)
				if res.Err == nil {
					k.put(key, v, now, res)
				}
				return res, nil
			}}, nil
		})
}

// cacheKey returns what a result depends on; false: it may not be kept.
func cacheKey(c *tool.Call) (string, bool) {
	if !c.Tool.IsRead() || c.Tool.Meta || metered(c.Tool) || asksForState(c.Tool) {
		return "", false
	}
	args, err := canonical(c.Args)
	if err != nil {
		return "", false
	}
	session := ""
	if ofSession(c.Tool.Category) {
		session = c.From.Session
	}
	key, err := json.Marshal([]string{c.From.App, c.From.User, c.From.Profile, session, c.Tool.Name, args})
	return string(key), err == nil
}

// ofSession reports whether tools of this category answer each session in its
// own way.
func ofSession(category tool.Category) bool {
	switch category {
	case tool.AgentWork, tool.Memory, tool.Workflow, tool.Interaction, tool.Schedule:
		return true
	}
	return false
}

// kept are results, the latest used first.
type kept struct {
	settings cacheSettings
	mu       sync.Mutex
	entries  map[string]*list.Element
	order    list.List
}

type keptResult struct {
	key     string
	version version
	at      time.Time
	res     *tool.Result
}

func (k *kept) get(key string, v version, now time.Time) (*tool.Result, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.entries[key]
	if !ok {
		return nil, 0
	}
	r := e.Value.(*keptResult)
	if age := now.Sub(r.at); r.version == v && age < seconds(k.settings.TTL) {
		k.order.MoveToFront(e)
		return copyResult(r.res), max(age, 0)
	}
	k.order.Remove(e)
	delete(k.entries, key)
	return nil, 0
}

func (k *kept) put(key string, v version, now time.Time, res *tool.Result) {
	size := len(res.Structured) + len(res.Meta)
	for _, c := range res.Content {
		size += len(c.Text) + len(c.Data) + len(c.Raw)
	}
	if size > k.settings.MaxBytes {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if e, ok := k.entries[key]; ok {
		k.order.Remove(e)
	}
	k.entries[key] = k.order.PushFront(&keptResult{key, v, now, copyResult(res)})
	if k.order.Len() > k.settings.Entries {
		oldest := k.order.Back()
		k.order.Remove(oldest)
		delete(k.entries, oldest.Value.(*keptResult).key)
	}
}

type breakerSettings struct {
	Failures int     `json:"failures" min:"1" max:"1000" jsonschema:"how many calls in a row must fail"`
	Cooldown float64 `json:"cooldown" max:"86400" jsonschema:"seconds until one call is tried again"`
}

func (s breakerSettings) Validate() error {
	if s.Failures < 1 || s.Cooldown <= 0 || s.Cooldown > 86400 {
		return errors.New("want failures of 1 or more, and a cooldown of more than 0 and at most 86400 seconds")
	}
	return nil
}

// circuitBreaker refuses the calls of a module whose service is down.
func circuitBreaker() *MiddlewareKind {
	return NewMiddleware("circuit_breaker", "Refuse calls of a module for a while after several in a row have failed for want of its service.",
		breakerSettings{Failures: 5, Cooldown: 30}, func(s breakerSettings, h MiddlewareHost) (Middleware, error) {
			b := &breaker{settings: s, circuits: map[string]*circuit{}}
			return Middleware{Around: func(ctx context.Context, c *tool.Call, run func(context.Context) *tool.Result) (*tool.Result, error) {
				module := c.Tool.ModuleName()
				if wait := b.open(module, h.Now()); wait > 0 {
					return nil, tool.Errorf(tool.CodeExternal, "%s is not called: the last %d calls of %s failed; wait %v seconds", c.Name, s.Failures, module, wait.Round(100*time.Millisecond).Seconds()).
						With(map[string]float64{"wait_seconds": wait.Seconds()}).Retry()
				}
				res := run(ctx)
				b.saw(module, res, h.Now())
				return res, nil
			}}, nil
		})
}

type breaker struct {
	settings breakerSettings
	mu       sync.Mutex
	circuits map[string]*circuit
}

type circuit struct {
	failures int
	until    time.Time
}

// open returns how long calls must wait; after the wait one is let through.
func (b *breaker) open(module string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[module]
	if c == nil || c.failures < b.settings.Failures {
		return 0
	}
	if wait := c.until.Sub(now); wait > 0 {
		return wait
	}
	c.until = now.Add(seconds(b.settings.Cooldown)) // others wait for what the one that tries finds out
	return 0
}

func (b *breaker) saw(module string, res *tool.Result, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.circuits[module]
	if c == nil {
		c = new(circuit)
		b.circuits[module] = c
	}
	if res.Err == nil || res.Err.Code != tool.CodeExternal && res.Err.Code != tool.CodeTimeout {
		c.failures = 0
		return
	}
	if c.failures++; c.failures >= b.settings.Failures {
		c.until = now.Add(seconds(b.settings.Cooldown))
	}
}

type redactSettings struct {
	Patterns []string `json:"patterns" jsonschema:"regular expressions (RE2) of what no result and no audit line may show"`
}

// redaction makes the app's redactor know further patterns, for the results,
// the audit and the approvals of the calls that it covers.
func redaction() *MiddlewareKind {
	return NewMiddleware("redact", "Take further patterns out of results, audit lines and questions to the operator.", redactSettings{},
		func(s redactSettings, h MiddlewareHost) (Middleware, error) {
			if len(s.Patterns) == 0 {
				return Middleware{}, errors.New("patterns: name at least one")
			}
			for i, p := range s.Patterns {
				re, err := regexp.Compile(p)
				if err != nil {
					return Middleware{}, fmt.Errorf("patterns[%d]: %w", i, err)
				}
				if re.MatchString("") {
					return Middleware{}, fmt.Errorf("patterns[%d]: %q matches the empty text", i, p)
				}
				h.Redactor.Hide(h.Module, re)
			}
			return Middleware{}, nil
		})
}

type auditSettings struct {
	File string `json:"file" jsonschema:"a file beneath the state folder"`
}

func (s auditSettings) Validate() error {
	if !filepath.IsLocal(s.File) || s.File == "." {
		return fmt.Errorf("file: %q does not lie beneath the state folder", s.File)
	}
	if first := firstPart(s.File); first == "audit" || first == "helve.db" {
		return fmt.Errorf("file: %q belongs to Helve itself", s.File)
	}
	return nil
}

func firstPart(path string) string {
	path = filepath.ToSlash(filepath.Clean(path))
	for i := range path {
		if path[i] == '/' {
			return path[:i]
		}
	}
	return path
}

// An auditLine is what the audit middleware writes of a call that ran.
type auditLine struct {
	Time    time.Time       `json:"time"`
	Call    string          `json:"call"`
	App     string          `json:"app,omitempty"`
	Session string          `json:"session,omitempty"`
	User    string          `json:"user,omitempty"`
	Kind    tool.Kind       `json:"kind,omitempty"`
	Tool    string          `json:"tool"`
	Args    json.RawMessage `json:"args"`
	Millis  float64         `json:"ms"`
	Error   tool.Code       `json:"error,omitempty"`
	Text    string          `json:"text,omitempty"`
}

// maxAuditText is how much of a result the audit middleware writes.
const maxAuditText = 2000

// auditSink writes the calls that ran, with the beginning of their results, to
// a file of their own. It stands beside the audit log, which has every call.
func auditSink() *MiddlewareKind {
	return NewMiddleware("audit", "Write the calls that ran, and the beginning of their results, to a file of their own as well.", auditSettings{File: "calls.jsonl"},
		func(s auditSettings, h MiddlewareHost) (Middleware, error) {
			var mu sync.Mutex
			file := filepath.Join(h.Folder, s.File)
			return Middleware{Around: func(ctx context.Context, c *tool.Call, run func(context.Context) *tool.Result) (*tool.Result, error) {
				start := h.Now()
				res := run(ctx)
				line := auditLine{Time: start, Call: c.ID, App: c.From.App, Session: c.From.Session, User: c.From.User, Kind: c.From.Kind,
					Tool: c.Name, Args: h.Redactor.Call(c), Millis: float64(h.Now().Sub(start).Microseconds()) / 1000,
					Text: runes(h.Redactor.text(res.JoinText(), c.Tool), maxAuditText)}
				if res.Err != nil {
					line.Error = res.Err.Code
				}
				mu.Lock()
				defer mu.Unlock()
				if err := appendLine(file, line); err != nil {
					h.Log.Warn("the audit middleware could not write", "file", file, "error", err)
				}
				return res, nil
			}}, nil
		})
}

// appendLine writes a line in one piece. The file is opened for each, so that
// it can be moved away at any time.
func appendLine(file string, v any) error {
	data, err := tool.Encode(v)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Close())
}
