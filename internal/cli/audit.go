package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/audit"
)

// auditDir returns the folder of the audit log, without opening the app.
func (c *cli) auditDir() string { return filepath.Join(c.stateDir(), "audit") }

func (c *cli) auditCommand() *cobra.Command {
	var f audit.Filter
	var since string
	cmd := &cobra.Command{
		Use: "audit", Short: "Show the calls on record", Args: cobra.NoArgs,
		Example: "  helve audit --decision deny\n  helve audit --tool 'filesystem.*' --since 2h --json\n  helve audit verify",
		RunE: func(*cobra.Command, []string) error {
			if err := sinceTime(since, &f.Since); err != nil {
				return err
			}
			f.Newest = true
			records := []audit.Record{}
			for r, err := range audit.Query(c.auditDir(), f) {
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
	fl.IntVar(&f.Limit, "limit", 50, "the newest so many; 0 for all")
	cmd.AddCommand(c.auditVerify())
	return cmd
}

func sinceTime(text string, at *time.Time) error {
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
	return usage("--since %q: want a duration such as 2h, a date such as 2026-01-31, or an RFC 3339 time", text)
}

func (c *cli) showRecords(records []audit.Record) error {
	if c.json {
		return c.printJSON(records)
	}
	if len(records) == 0 {
		fmt.Fprintln(c.err, "No call on record fits.")
		return nil
	}
	rows := make([][]string, len(records))
	for i, r := range records {
		what := string(r.Args)
		if r.Error != "" {
			what = r.Error + ": " + r.Reason + " " + what
		}
		rows[i] = []string{strconv.FormatUint(r.Seq, 10), r.Time.Local().Format("2006-01-02 15:04:05"), r.Kind, r.Tool, r.Decision, r.Duration.Round(time.Microsecond).String(), what}
	}
	c.table([]string{"SEQ", "TIME", "FROM", "TOOL", "DECISION", "TOOK", "ARGUMENTS"}, rows)
	return nil
}

func (c *cli) auditVerify() *cobra.Command {
	return &cobra.Command{
		Use: "verify", Short: "Check that no line of the audit log was changed, moved or taken out", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			report, err := audit.Verify(c.auditDir())
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
