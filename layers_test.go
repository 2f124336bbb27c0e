package helve

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const modulePath = "github.com/helve-ai/helve/"

// floors gives each package its floor. A package may import only from floors
// strictly below its own.
var floors = map[string]int{
	"schema": 0, "poison": 0, "vector": 0, "letters": 0, "examples": 0, "internal/filelock": 0,
	"embed/matrix": 0, "embed/tensors": 0, "embed/tokenizer": 0, "embed/embedtest": 0, "embed/encoder": 1, "embed": 2, "embed/hub": 3,
	"telemetry/otlp": 0, "telemetry": 3,
	"tool": 1, "credentials": 1, "internal/oauthtest": 1, "store": 1, "root": 1, "textedit": 1, "lexicon": 1,
	"llm": 2, "agent": 4, "pipeline": 2, "search": 2, "command": 2, "egress": 2, "audit": 2, "clientconf": 2, "parse": 2, "checkpoint": 2, "sandbox": 2, "approval": 2, "skill": 2,
	"files": 3, "task": 3,
	"guard": 3, "module": 3, "inject": 3, "internal/tokens": 3, "llm/wire": 3, "llm/*": 4, "llm/provider": 5, "tool/*": 3, "store/*": 3, "search/*": 3,
	"mcpbridge": 4, "modules/*": 4,
	"modules/std": 5, "app": 6,
	"internal/daemon": 7, "internal/gen": 7,
	"internal/cli": 8,
	"cmd/*":        9,
}

func floorOf(pkg string) (int, bool) {
	if n, ok := floors[pkg]; ok {
		return n, true
	}
	n, ok := floors[path.Dir(pkg)+"/*"]
	return n, ok
}

// eachFile calls visit for every Go file of the module that is not a test. The
// files are read here, not by "go list", so that the test cache notices when
// they change.
func eachFile(t *testing.T, visit func(pkg, file string, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && file != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		visit(filepath.ToSlash(filepath.Dir(file)), file, f)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestFloors(t *testing.T) {
	eachFile(t, func(pkg, file string, f *ast.File) {
		if pkg == "." {
			return
		}
		n, ok := floorOf(pkg)
		if !ok {
			t.Errorf("%s has no floor; give it one in layers_test.go", pkg)
		}
		for _, spec := range f.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if imp, ours := strings.CutPrefix(imp, modulePath); ours {
				if m, _ := floorOf(imp); m >= n {
					t.Errorf("%s (floor %d) imports %s (floor %d): imports run strictly downwards", file, n, imp, m)
				}
			}
		}
	})
}

// Every package has exactly one package comment, whose first paragraph is one sentence.
func TestPackageComments(t *testing.T) {
	docs := map[string][]string{}
	eachFile(t, func(pkg, _ string, f *ast.File) {
		if _, seen := docs[pkg]; !seen {
			docs[pkg] = nil
		}
		if f.Doc != nil {
			docs[pkg] = append(docs[pkg], f.Doc.Text())
		}
	})
	for pkg, texts := range docs {
		if len(texts) != 1 {
			t.Errorf("%s has %d package comments, want one", pkg, len(texts))
			continue
		}
		first, _, _ := strings.Cut(texts[0], "\n\n")
		first = strings.Join(strings.Fields(first), " ")
		if !strings.HasSuffix(first, ".") || strings.Contains(strings.TrimSuffix(first, "."), ". ") {
			t.Errorf("%s: the first paragraph of the package comment is not one sentence: %q", pkg, first)
		}
	}
}

// The default build is pure Go, and the library's lower floors depend on
// nothing that only the binary needs.
func TestForbiddenImports(t *testing.T) {
	forbidden := map[string]string{
		"C":                      "the default build is pure Go",
		"github.com/spf13/cobra": "only the commands know about commands",
		"github.com/modelcontextprotocol/go-sdk/mcp": "only mcpbridge speaks MCP",
		"github.com/tiktoken-go/tokenizer":           "12 MB: for benchmarks only",
		"net/http/pprof":                             "it registers itself",
		"go.opentelemetry.io/otel/sdk/trace":         "the library records by the API; what sends is the binary's",
		"go.opentelemetry.io/otel/sdk/metric":        "the library records by the API; what sends is the binary's",
	}
	allowed := map[string]string{
		"internal/cli":   "github.com/spf13/cobra",
		"mcpbridge":      "github.com/modelcontextprotocol/go-sdk/mcp",
		"telemetry/otlp": "go.opentelemetry.io/otel/sdk/trace go.opentelemetry.io/otel/sdk/metric",
	}
	eachFile(t, func(pkg, file string, f *ast.File) {
		for _, spec := range f.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if why, bad := forbidden[imp]; bad && !strings.Contains(allowed[pkg], imp) {
				t.Errorf("%s imports %s: %s", file, imp, why)
			}
		}
	})
}
