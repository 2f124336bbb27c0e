package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/audit"
)

// auditDir returns the folder of the audit log, without opening the app.
func (c *cli) auditDir() (string, error) {
	if c.state != "" {
		return filepath.Join(c.state, "audit"), nil
	}
	cfg, err := c.config()
	if err != nil {
		return "", err
	}
	return filepath.Join(c.rootOf(cfg), ".helve", "audit"), nil
}

// begun reports whether there is a log in dir, and tells the user if there is none.
func (c *cli) begun(dir string) bool {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return true
	}
	fmt.Fprintf(c.err, "There is no audit log in %s yet: it begins with the first call. Name another folder with --root, --state or --app.\n", dir)
	return false
}

func (c *cli) auditCommand() *cobra.Command {
	var f audit.Filter
	var since, until string
	cmd := &cobra.Command{
		Use: "audit", Short: "Show the calls on record", Args: cobra.NoArgs,
		Example: "  helve audit --decision deny\n  helve audit --tool 'filesystem.*' --since 2h --json\n  helve audit verify",
		RunE: func(*cobra.Command, []string) error {
			if err := errors.Join(sinceTime(since, &f.Since), flagTime("--until", until, &f.Until)); err != nil {
				return err
			}
			if !slices.Contains([]string{"", "allow", "ask", "deny"}, f.Decision) {
				return usage("--decision %q: want allow, ask or deny", f.Decision)
			}
			dir, err := c.auditDir()
			if err != nil {
				return err
			}
			records := []audit.Record{}
			switch begun := c.begun(dir); {
			case !begun && c.json:
				return c.printJSON(records)
			case !begun:
				return nil
			}
			f.Newest = true
			for r, err := range audit.Query(dir, f) {
				if err != nil {
					return err
				}
				records = append(records, r)
			}
			slices.Reverse(records)
			return c.showRecords(records)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.Tool, "tool", "", "only tools whose name matches this glob")
	fl.StringVar(&f.Decision, "decision", "", "only this decision: allow, ask or deny")
	fl.StringVar(&f.Session, "session", "", "only this session")
	fl.StringVar(&f.App, "in-app", "", "only this app")
	fl.StringVar(&f.User, "user", "", "only this user")
	fl.StringVar(&f.Error, "error", "", "only this error code; * for any")
	fl.StringVar(&f.Text, "text", "", "only lines that contain this text")
	fl.StringVar(&since, "since", "", "only later than this: a time (RFC 3339), a date or a duration such as 2h")
	fl.StringVar(&until, "until", "", "only before this: a time (RFC 3339), a date or a duration such as 2h")
	fl.IntVar(&f.Limit, "limit", 50, "the newest so many; 0 for all")
	cmd.AddCommand(c.auditVerify())
	return cmd
}

func sinceTime(text string, at *time.Time) error { return flagTime("--since", text, at) }

// flagTime reads a moment: a duration before now, a date or a time.
func flagTime(flag, text string, at *time.Time) error {
	if text == "" {
		return nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		*at = time.Now().Add(-d)
		return nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			*at = t
			return nil
		}
	}
	return usage("%s %q: want a duration such as 2h, a date such as 2026-01-31, or an RFC 3339 time", flag, text)
}

func (c *cli) showRecords(records []audit.Record) error {
	if c.json {
		return c.printJSON(records)
	}
	if len(records) == 0 {
		fmt.Fprintln(c.err, "No call on record fits.")
		return nil
	}
	at := "2006-01-02 15:04:05"
	if w := c.width(); w > 0 && w < 100 {
		at = "01-02 15:04:05"
	}
	rows := make([][]string, len(records))
	for i, r := range records {
		what := string(r.Args)
		if r.Error != "" {
			what = r.Error + ": " + r.Reason + " " + what
		}
		rows[i] = []string{strconv.FormatUint(r.Seq, 10), r.Time.Local().Format(at), r.Kind, r.Tool, r.Decision, r.Duration.Round(time.Microsecond).String(), what}
	}
	c.table([]string{"SEQ", "TIME", "FROM", "TOOL", "DECISION", "TOOK", "ARGUMENTS"}, rows)
	return nil
}

func (c *cli) auditVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Check that no line of the audit log was changed, moved or taken out", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := c.auditDir()
			if err != nil {
				return err
			}
			if !c.begun(dir) {
				return &codedError{code: exitError, told: true, err: fs.ErrNotExist}
			}
			report, err := audit.Verify(dir)
			if err != nil {
				return err
			}
			ok := len(report.Problems) == 0
			if c.json {
				problems := make([]string, len(report.Problems))
				for i, p := range report.Problems {
					problems[i] = p.String()
				}
				if err := c.printJSON(map[string]any{"ok": ok, "lines": report.Lines, "files": report.Files, "first": report.First, "last": report.Last, "problems": problems}); err != nil {
					return err
				}
			} else if ok {
				fmt.Fprintf(c.out, "%s %d lines in %d files are as they were written.\n", c.style(c.out).good("✓"), report.Lines, report.Files)
			} else {
				for _, p := range report.Problems {
					fmt.Fprintln(c.err, p.String())
				}
			}
			if !ok {
				return &codedError{code: exitError, told: true, err: fmt.Errorf("the audit log has %d problems", len(report.Problems))}
			}
			return nil
		},
	}
}
