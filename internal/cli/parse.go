package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/parse"
	"github.com/helve-ai/helve/schema"
)

func (c *cli) parseCommand() *cobra.Command {
	var format, model, toolsFile string
	var list bool
	cmd := &cobra.Command{
		Use: "parse", Short: "Read the tool calls in a model's text", Args: cobra.NoArgs,
		Long: `Read a model's text from standard input and print what it says, what it thinks,
and which tools it calls.

--tools names a file with the tools that were offered: a JSON array, or one JSON
object a line, as chat completions, MCP or plain {name, parameters} have them.
Only calls of these are read, and arguments are typed by their schemas. Without
it every name counts as offered.`,
		Example: "  helve parse --format hermes --tools tools.json --json < answer.txt\n  helve parse --model Qwen/Qwen3-Coder-30B < answer.txt\n  helve parse --list",
		RunE: func(*cobra.Command, []string) error {
			if list {
				return c.listFormats()
			}
			f, err := formatOf(format, model)
			if err != nil {
				return err
			}
			tools, err := toolsOf(toolsFile)
			if err != nil {
				return err
			}
			m, err := c.readMessage(f.New(tools))
			if err != nil {
				return err
			}
			return c.printMessage(m)
		},
	}
	cmd.Flags().StringVar(&format, "format", "auto", "the format of the text, or auto: see --list")
	cmd.Flags().StringVar(&model, "model", "", "the format that this model writes, by its name")
	cmd.Flags().StringVar(&toolsFile, "tools", "", "a file with the tools that were offered")
	cmd.Flags().BoolVar(&list, "list", false, "list the formats")
	cmd.MarkFlagsMutuallyExclusive("format", "model")
	cmd.MarkFlagFilename("tools", "json", "jsonl")
	cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formatNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func formatNames() []string {
	var names []string
	for _, f := range parse.Formats() {
		names = append(names, f.Name)
	}
	return names
}

func formatOf(name, model string) (*parse.Format, error) {
	if model != "" {
		_, reads := parse.ForModel(model)
		return reads, nil
	}
	if f := parse.ByName(name); f != nil {
		return f, nil
	}
	hint := "helve parse --list lists them"
	if near := schema.Closest(name, formatNames(), 3); len(near) > 0 {
		hint = "did you mean " + strings.Join(near, ", ") + "?"
	}
	return nil, usage("--format %s: there is no such format; %s", name, hint)
}

// toolsOf reads the tools that were offered; nil for no file.
func toolsOf(file string) (*parse.Tools, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, usage("--tools: %w", err)
	}
	offers, err := parse.ReadOffers(data)
	if err != nil {
		return nil, usage("--tools %s: %w", file, err)
	}
	return parse.NewTools(offers...), nil
}

// readMessage reads standard input piece by piece, as a model's text arrives.
func (c *cli) readMessage(p parse.Parser) (parse.Message, error) {
	var chunks []string
	buf := make([]byte, 64<<10)
	for {
		n, err := c.in.Read(buf)
		if n > 0 {
			chunks = append(chunks, string(buf[:n]))
		}
		if err == io.EOF {
			return parse.Read(p, chunks...), nil
		}
		if err != nil {
			return parse.Message{}, fmt.Errorf("standard input: %w", err)
		}
	}
}

func (c *cli) printMessage(m parse.Message) error {
	type call struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if c.json {
		calls := make([]call, 0, len(m.Calls))
		for _, k := range m.Calls {
			calls = append(calls, call{k.Name, k.Args})
		}
		return c.printJSON(struct {
			Content  string   `json:"content"`
			Thinking string   `json:"thinking"`
			Calls    []call   `json:"calls"`
			Notes    []string `json:"notes"`
		}{m.Content, m.Thinking, calls, append([]string{}, m.Notes...)})
	}
	s := c.style(c.out)
	if t := strings.TrimSpace(m.Thinking); t != "" {
		fmt.Fprintln(c.out, s.dim(cleanText(t)))
	}
	if t := strings.TrimSpace(m.Content); t != "" {
		fmt.Fprintln(c.out, cleanText(t))
	}
	for _, k := range m.Calls {
		fmt.Fprintf(c.out, "%s %s %s\n", s.good("→"), s.bold(clean(k.Name)), clean(string(k.Args)))
	}
	for _, n := range m.Notes {
		fmt.Fprintf(c.err, "%s %s\n", c.style(c.err).warn("note:"), clean(n))
	}
	return nil
}

func (c *cli) listFormats() error {
	if c.json {
		type row struct {
			Name   string `json:"name"`
			Doc    string `json:"doc"`
			Models string `json:"models"`
		}
		var rows []row
		for _, f := range parse.Formats() {
			rows = append(rows, row{f.Name, f.Doc, f.Models})
		}
		return c.printJSON(rows)
	}
	var rows [][]string
	for _, f := range parse.Formats() {
		rows = append(rows, []string{f.Name, f.Models, f.Doc})
	}
	c.table([]string{"FORMAT", "MODELS", "WHAT IT IS"}, rows)
	return nil
}
