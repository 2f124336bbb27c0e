package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/helve-ai/helve/egress"
)

// A Pull says what to fetch and how. Its zero values are good.
type Pull struct {
	Name     string // "": Default
	Revision string // a branch, tag or commit; "": main
	BaseURL  string // https, or http on this machine; "": DefaultURL
	Models   string // the folder of models

	// Progress is told how much of a file is there. Nil: nobody is.
	Progress func(file string, done, size int64)
}

// needed are the files that are fetched where the model has them.
var needed = []string{"config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"}

// weights are those of which the first is fetched that the model has.
var weights = []string{"model.safetensors", "onnx/model.onnx", "model.onnx"}

// remote is a file as the server describes it.
type remote struct {
	Name   string `json:"rfilename"`
	Size   int64  `json:"size"`
	BlobID string `json:"blobId"` // git's: the SHA-1 of a header and the content
	LFS    *struct {
		SHA256 string `json:"sha256"`
		Size   int64  `json:"size"`
	} `json:"lfs"`
}

// maxAnswer bounds what the server says of a model, in bytes.
const maxAnswer = 16 << 20

// silence is how long a server may send nothing.
const silence = time.Minute

type puller struct {
	Pull
	base   *url.URL
	client *http.Client
	dir    string
}

// Run fetches the model, and returns its folder and what is in it. What was
// fetched before, if only in part, is not fetched again. Each file is held to
// the digest that the server names for it.
func (p Pull) Run(ctx context.Context) (Fetched, error) {
	if p.Name == "" {
		p.Name = Default
	}
	if p.Revision == "" {
		p.Revision = "main"
	}
	if p.BaseURL == "" {
		p.BaseURL = DefaultURL
	}
	if p.Progress == nil {
		p.Progress = func(string, int64, int64) {}
	}
	if err := CheckName(p.Name); err != nil {
		return Fetched{}, err
	}
	f := &puller{Pull: p, dir: folderOf(p.Models, p.Name)}
	if err := f.connect(); err != nil {
		return Fetched{}, err
	}
	return f.run(ctx)
}

func (p *puller) connect() (err error) {
	if p.base, err = url.Parse(p.BaseURL); err != nil {
		return fmt.Errorf("the base URL: %w", err)
	}
	host, port := p.base.Hostname(), p.base.Port()
	switch {
	case p.base.Scheme == "https" && host != "":
	case p.base.Scheme == "http" && isLoopback(host):
	default:
		return fmt.Errorf("%s: models are fetched by https, or by http from this machine", p.base.Redacted())
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[p.base.Scheme]
	}
	p.client = egress.Client(egress.Policy{AllowHosts: []string{net.JoinHostPort(host, port)}, Timeout: -1, MaxBody: -1})
	follow := p.client.CheckRedirect
	p.client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if req.URL.Scheme != "https" && !isLoopback(req.URL.Hostname()) {
			return fmt.Errorf("%s leads away from https", req.URL.Redacted())
		}
		return follow(req, via)
	}
	return nil
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func (p *puller) run(ctx context.Context) (Fetched, error) {
	commit, files, err := p.describe(ctx)
	if err != nil {
		return Fetched{}, err
	}
	m := Manifest{Name: p.Name, Revision: commit, From: p.BaseURL, Files: map[string]File{}}
	for _, r := range files {
		got, err := p.fetch(ctx, commit, r)
		if err != nil {
			return Fetched{}, fmt.Errorf("%s: %w", r.Name, err)
		}
		m.Files[r.Name] = got
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return Fetched{}, err
	}
	if err := os.WriteFile(filepath.Join(p.dir, manifestName), append(data, '\n'), 0o644); err != nil {
		return Fetched{}, err
	}
	return Fetched{m, p.dir}, nil
}

func isCommit(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}

// describe asks which commit the revision is, and which files of it are wanted.
func (p *puller) describe(ctx context.Context) (commit string, files []remote, err error) {
	u := p.base.JoinPath("api/models", p.Name, "revision", url.PathEscape(p.Revision))
	u.RawQuery = "blobs=true"
	resp, err := p.get(ctx, u, 0)
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return "", nil, err
	}
	var answer struct {
		SHA      string   `json:"sha"`
		Siblings []remote `json:"siblings"`
	}
	if err := json.Unmarshal(data, &answer); err != nil || !isCommit(answer.SHA) {
		return "", nil, fmt.Errorf("%s: the answer does not describe a model", u.Redacted())
	}
	return answer.SHA, wanted(answer.Siblings), missing(answer.Siblings, p.Name)
}

// wanted returns the files to fetch, the weights last.
func wanted(all []remote) []remote {
	var out []remote
	take := func(name string) bool {
		i := slices.IndexFunc(all, func(r remote) bool { return r.Name == name })
		if i >= 0 {
			out = append(out, all[i])
		}
		return i >= 0
	}
	for _, name := range needed {
		take(name)
	}
	for _, name := range weights {
		if take(name) {
			take(name + "_data") // where large ONNX exports keep the numbers
			break
		}
	}
	return out
}

// missing reports what a model lacks to be used.
func missing(all []remote, name string) error {
	has := func(file string) bool {
		return slices.ContainsFunc(all, func(r remote) bool { return r.Name == file })
	}
	switch {
	case !has("config.json") || !has("tokenizer.json"):
		return fmt.Errorf("%s has no config.json and tokenizer.json: it is no model that can be used", name)
	case !slices.ContainsFunc(weights, has):
		return fmt.Errorf("%s has none of %s: its weights are in a form that is not read", name, strings.Join(weights, ", "))
	}
	return nil
}

// get asks for an address, from a byte on.
func (p *puller) get(ctx context.Context, u *url.URL, from int64) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if from > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK || from > 0 && resp.StatusCode == http.StatusPartialContent {
		return resp, nil
	}
	resp.Body.Close()
	return nil, fmt.Errorf("%s: %s", u.Redacted(), resp.Status)
}

// fetch fetches a file, unless it is there, and checks it.
func (p *puller) fetch(ctx context.Context, commit string, r remote) (File, error) {
	path := filepath.Join(p.dir, filepath.FromSlash(r.Name))
	if got, err := digest(path); err == nil && r.matches(path, got) == nil && r.named() {
		p.Progress(r.Name, got.Size, got.Size)
		return got, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return File{}, err
	}
	part := path + ".part"
	if err := p.download(ctx, p.base.JoinPath(p.Name, "resolve", commit, r.Name), part, r); err != nil {
		return File{}, err
	}
	got, err := digest(part)
	if err != nil {
		return File{}, err
	}
	if err := r.matches(part, got); err != nil {
		return File{}, errors.Join(err, os.Remove(part))
	}
	return got, os.Rename(part, path)
}

// download completes the file part.
func (p *puller) download(ctx context.Context, u *url.URL, part string, r remote) error {
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if have >= r.Size { // whole, or of something else
		if have == r.Size && r.Size > 0 {
			return nil
		}
		have = 0
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	alarm := time.AfterFunc(silence, func() { cancel(fmt.Errorf("the server sent nothing for %v", silence)) })
	defer alarm.Stop()
	resp, err := p.get(ctx, u, have)
	if err != nil {
		return cause(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusPartialContent || !strings.HasPrefix(resp.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", have)) {
		have = 0
	}
	if err := f.Truncate(have); err != nil {
		return err
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return err
	}
	body := &told{r: io.LimitReader(resp.Body, r.Size-have+1), tell: func(n int64) {
		alarm.Reset(silence)
		p.Progress(r.Name, have+n, r.Size)
	}}
	if _, err := io.Copy(f, body); err != nil {
		return cause(ctx, err)
	}
	return f.Close()
}

// cause returns why ctx ended, if that is what an error comes from.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// told tells how much was read.
type told struct {
	r    io.Reader
	n    int64
	tell func(int64)
}

func (t *told) Read(b []byte) (int, error) {
	n, err := t.r.Read(b)
	t.n += int64(n)
	t.tell(t.n)
	return n, err
}

// digest reads a file.
func digest(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	return File{n, hex.EncodeToString(sum.Sum(nil))}, err
}

// named reports whether the server named a digest of the file.
func (r remote) named() bool { return r.LFS != nil || r.BlobID != "" }

// matches reports how a file differs from what the server said of it.
func (r remote) matches(path string, got File) error {
	if got.Size != r.Size {
		return fmt.Errorf("it has %d bytes, and should have %d", got.Size, r.Size)
	}
	if r.LFS != nil {
		if got.SHA256 != r.LFS.SHA256 {
			return fmt.Errorf("its sha256 is %s, and should be %s", got.SHA256, r.LFS.SHA256)
		}
		return nil
	}
	if r.BlobID == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	sum := sha1.Sum(slices.Concat(fmt.Appendf(nil, "blob %d\x00", len(data)), data))
	if hex.EncodeToString(sum[:]) != r.BlobID {
		return fmt.Errorf("its git id is %x, and should be %s", sum, r.BlobID)
	}
	return nil
}
