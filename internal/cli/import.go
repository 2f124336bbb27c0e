package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/helve-ai/helve/app"
	"github.com/helve-ai/helve/clientconf"
	"github.com/helve-ai/helve/credentials"
	"github.com/helve-ai/helve/guard"
	"github.com/helve-ai/helve/inject"
)

// defaultAppFile is where servers are imported to if no app file is named.
const defaultAppFile = "helve.yaml"

// importFlags are the flags of helve import.
type importFlags struct {
	all, dryRun, replace     bool
	keepSecrets              bool
	install, uninstall, file string
	present                  string
}

// An importReport is what helve import did, or would do.
type importReport struct {
	DryRun   bool                   `json:"dry_run,omitempty"`
	App      string                 `json:"app,omitempty"`
	Backup   string                 `json:"backup,omitempty"` // of the app file
	Files    []importedFile         `json:"files"`
	Servers  []clientconf.Outcome   `json:"servers"`
	Secrets  []clientconf.Reference `json:"secrets"`
	Warnings []clientconf.Warning   `json:"warnings"`
	Install  *installReport         `json:"install,omitempty"`

	taken []clientconf.Server // as the clients' files have them
	text  []byte              // of the app file
	file  *clientconf.File
}

// An importedFile is a client's file and how many servers it holds.
type importedFile struct {
	File    string `json:"file"`
	Client  string `json:"client,omitempty"`
	Servers int    `json:"servers"`
	Error   string `json:"error,omitempty"`
}

// An installReport says what became of a client's file.
type installReport struct {
	Client  string   `json:"client"`
	File    string   `json:"file"`
	Action  string   `json:"action"`
	View    string   `json:"view,omitempty"`
	Note    string   `json:"note,omitempty"`
	Backup  string   `json:"backup,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Own     []string `json:"own,omitempty"` // the servers that the client goes on starting itself
	// Of an uninstall where the file had changed: the servers that Helve had
	// taken over and that are in it again, and what else is in the backup alone.
	Returned []string `json:"returned,omitempty"`
	Missing  []string `json:"missing,omitempty"`
}

func (c *cli) importCommand() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use: "import [FILE…]", Short: "Take over the MCP servers of other clients, and put Helve into their files", Args: cobra.ArbitraryArgs,
		Long: `Take over the MCP servers that the files of other clients declare: Claude Code,
Claude Desktop, Cursor, VS Code, Windsurf, Gemini CLI and Codex. They are added
to the app file of --app, or to helve.yaml in the current folder; what stands
there stays as it is. A secret is never copied in clear: a reference takes its
place, and with --keep-secrets its value is kept as helve secrets set does.

Without files, it lists those that are found on this machine.

--install writes Helve into a client's file and keeps a backup beside it;
--uninstall restores that to the byte, or, where the client has written its file
anew since, takes Helve's entry out and puts back the servers that the app file
holds as the backup does.`,
		Example: `  helve import                               # what is there
  helve import .mcp.json ~/.cursor/mcp.json
  helve import --all --dry-run
  helve import --install cursor --replace    # take its servers over; it sees Helve only
  helve import --uninstall cursor`,
		RunE: func(cmd *cobra.Command, args []string) error { return c.runImport(cmd.Context(), f, args) },
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.all, "all", false, "import every file that is found")
	fl.BoolVar(&f.dryRun, "dry-run", false, "say what would be done, and write nothing")
	fl.BoolVar(&f.keepSecrets, "keep-secrets", false, "keep the secrets that the files hold, sealed, as helve secrets set does")
	fl.StringVar(&f.install, "install", "", "write Helve into the file of this client: "+clientIDs())
	fl.StringVar(&f.uninstall, "uninstall", "", "take Helve out of the file of this client")
	fl.StringVar(&f.file, "file", "", "the client's file, if it is not where it usually is")
	fl.BoolVar(&f.replace, "replace", false, "with --install: import the client's servers and remove them from its file")
	fl.StringVar(&c.profile, "profile", "", "with --install: what the client may use, as helve mcp --profile")
	fl.StringVar(&f.present, "present", "", "with --install: auto, full, compact or discovery (what suits the client, if left out)")
	cmd.MarkFlagsMutuallyExclusive("install", "uninstall")
	return cmd
}

func clientIDs() string {
	var ids []string
	for _, cl := range clientconf.Clients {
		ids = append(ids, cl.ID)
	}
	return strings.Join(ids, ", ")
}

// places returns where clients keep their files on this machine.
func places() (clientconf.Places, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return clientconf.Places{}, err
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return clientconf.Places{}, err
	}
	dir, err := os.Getwd()
	return clientconf.Places{Home: home, Config: config, Dir: dir, Codex: os.Getenv("CODEX_HOME"), Claude: os.Getenv("CLAUDE_CONFIG_DIR")}, err
}

func (f importFlags) check(args []string) error {
	switch {
	case f.replace && f.install == "":
		return usage("--replace needs --install CLIENT")
	case f.file != "" && f.install == "" && f.uninstall == "":
		return usage("--file needs --install or --uninstall; to import a file, name it without a flag")
	case f.present != "" && f.install == "":
		return usage("--present needs --install CLIENT")
	case f.uninstall != "" && (f.all || len(args) > 0):
		return usage("--uninstall imports nothing; leave the files out")
	case f.all && len(args) > 0:
		return usage("--all imports the files that are found; leave %s out", args[0])
	}
	if _, err := inject.ParseMode(f.present); err != nil {
		return usage("--present: %v", err)
	}
	return nil
}

func (c *cli) runImport(_ context.Context, f importFlags, args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	if c.profile != "" && f.install == "" {
		return usage("--profile needs --install CLIENT")
	}
	if err := c.checkProfile(c.profile); err != nil {
		return err
	}
	p, err := places()
	if err != nil {
		return err
	}
	var client clientconf.Client
	if id := f.install + f.uninstall; id != "" {
		if client, err = clientconf.ClientOf(id); err != nil {
			return usage("%v", err)
		}
		if f.file == "" {
			f.file = client.User(p)
		}
	}
	if f.uninstall != "" {
		return c.uninstall(client, f)
	}
	switch {
	case f.all:
		for _, found := range findFiles(p) {
			if found.Error != "" {
				return errors.New(found.Error)
			}
			if found.Servers > 0 {
				args = append(args, found.File)
			}
		}
		if len(args) == 0 {
			return errors.New("no file with MCP servers was found")
		}
	case len(args) == 0 && f.install == "":
		return c.listFiles(findFiles(p))
	}
	if f.replace && !slices.Contains(args, f.file) {
		args = append(args, f.file)
	}
	return c.importFiles(client, f, args)
}

// importFiles reads everything, judges the result, and writes only then.
func (c *cli) importFiles(client clientconf.Client, f importFlags, files []string) error {
	r, err := c.planImport(files)
	if err != nil {
		return err
	}
	r.DryRun = f.dryRun
	var install *pendingInstall
	if f.install != "" {
		if install, err = c.planInstall(client, f, r); err != nil {
			return err
		}
		r.Install = &install.report
	}
	if f.keepSecrets && !f.dryRun { // first: without them the servers would not start
		if err := c.keepSecrets(r); err != nil {
			return err
		}
	}
	if !f.dryRun {
		if r.text != nil {
			if r.Backup, err = r.file.Backup(); err != nil {
				return err
			}
			if err := r.file.Replace(r.text); err != nil {
				return err
			}
		}
		if install != nil {
			if err := install.write(); err != nil {
				return err
			}
		}
	}
	return c.showImport(r)
}

// keepSecrets keeps the values of references. One that is kept with another
// value stays, and is told.
func (c *cli) keepSecrets(r *importReport) error {
	text := r.text
	if text == nil {
		text = r.file.Data
	}
	cfg, err := c.checkApp(r.App, text)
	if err != nil {
		return err
	}
	kept := c.credentialStore(cfg)
	for i, ref := range r.Secrets {
		value, ok := ref.Value()
		if !ok {
			continue
		}
		switch old, err := kept.Get(ref.Name); {
		case errors.Is(err, credentials.ErrNotFound):
			if err := kept.Set(ref.Name, value); err != nil {
				return err
			}
		case err != nil:
			return err
		case old != value:
			fmt.Fprintf(c.err, "%s a secret %s is kept with another value than that at %s, and stays; helve secrets set %s replaces it\n", c.style(c.err).warn("warning:"), ref.Name, clean(ref.Source), ref.Name)
		}
		r.Secrets[i].Kept = true
	}
	return nil
}

// planImport works out what the app file becomes.
func (c *cli) planImport(files []string) (*importReport, error) {
	r := &importReport{Files: []importedFile{}, Servers: []clientconf.Outcome{}, Secrets: []clientconf.Reference{}, Warnings: []clientconf.Warning{}}
	var servers []clientconf.Server
	for _, name := range files {
		file, err := clientconf.Open(name)
		if err != nil {
			return nil, err
		}
		if !file.Exists {
			if client, err := clientconf.ClientOf(name); err == nil {
				return nil, fmt.Errorf("%s: there is no such file; helve import without a file shows those of the clients, helve import --install %s writes Helve into that of %s", name, name, client.Title)
			}
			return nil, fmt.Errorf("%s: there is no such file", name)
		}
		read, warnings, err := clientconf.Read(name, file.Data)
		if err != nil {
			return nil, err
		}
		r.Files = append(r.Files, importedFile{File: name, Servers: len(read)})
		r.Warnings = append(r.Warnings, warnings...)
		servers = append(servers, read...)
	}
	r.App = c.appFile
	if r.App == "" {
		r.App = defaultAppFile
	}
	var err error
	if r.file, err = clientconf.Open(r.App); err != nil {
		return nil, err
	}
	if len(servers) == 0 {
		return r, nil
	}
	return r, c.merge(r, servers)
}

func (c *cli) merge(r *importReport, servers []clientconf.Server) error {
	names := map[string]app.MCPServer{}
	if len(strings.TrimSpace(string(r.file.Data))) > 0 {
		cfg, err := c.checkApp(r.App, r.file.Data)
		if err != nil {
			return fmt.Errorf("the app file has mistakes, and was not changed:\n%w", err)
		}
		names = cfg.Tools.MCPServers
	}
	secrets := secretKinds()
	good, refused := c.acceptable(servers, secrets)
	if len(good) == 0 {
		good, refused = servers, nil // the error says what is wrong
	}
	servers = good
	text, outcomes, refs, err := clientconf.Merge(r.App, r.file.Data, servers, secrets, func(name string) bool { _, ok := names[name]; return ok })
	if err != nil {
		return err
	}
	r.Servers = outcomes
	r.Secrets = append(r.Secrets, refs...)
	for i, o := range outcomes {
		if o.Action != "skipped" {
			r.taken = append(r.taken, servers[i])
		}
	}
	r.Servers = append(r.Servers, refused...)
	if string(text) == string(r.file.Data) {
		return nil
	}
	if _, err := c.checkApp(r.App, text); err != nil {
		return fmt.Errorf("with these servers the app file would have mistakes; nothing was written:\n%w", err)
	}
	r.text = text
	return nil
}

// secretKinds says what is not copied.
func secretKinds() clientconf.Secrets {
	return clientconf.Secrets{Key: guard.SecretKey, Value: func(s string) bool { return (*guard.Redactor)(nil).Text(s) != s }}
}

// acceptable returns the servers that an app file can have, and what is said of
// the others: one that Helve cannot reach, say over a socket, keeps none of the
// rest from being taken over.
func (c *cli) acceptable(servers []clientconf.Server, secrets clientconf.Secrets) (good []clientconf.Server, refused []clientconf.Outcome) {
	for _, s := range servers {
		text, _, _, err := clientconf.Merge("", nil, []clientconf.Server{s}, secrets, nil)
		if err == nil && len(text) > 0 { // Helve itself adds nothing
			_, err = c.checkApp("", text)
		}
		if problems := app.ProblemsOf(err); len(problems) > 0 {
			_, place, _ := strings.Cut(problems[0].Path, "tools.mcp_servers.")
			_, field, _ := strings.Cut(place, ".")
			refused = append(refused, clientconf.Outcome{Name: s.Name, Action: "skipped", Note: strings.TrimSpace(field + " " + problems[0].Message)})
			continue
		}
		good = append(good, s)
	}
	return good, refused
}

// checkApp reads an app file where variables need not be set yet: what they
// stand for is a name or, if that does not do, a URL.
func (c *cli) checkApp(file string, data []byte) (cfg *app.Config, err error) {
	for _, unset := range []string{"unset", "http://unset.invalid"} {
		o := c.loadOptions()
		o.Env = func(name string) (string, bool) {
			if v, ok := os.LookupEnv(name); ok {
				return v, true
			}
			return unset, true
		}
		if cfg, err = app.Parse(file, data, o); err == nil {
			return cfg, nil
		}
	}
	return nil, err
}

// A pendingInstall is a client's file that is about to be written.
type pendingInstall struct {
	report installReport
	file   *clientconf.File
	text   []byte
	// before is what the file was without Helve, to be kept; nil: nothing is,
	// since the backup of an earlier install is that of this one, or since there
	// was no file.
	before []byte
}

// planInstall works out what the client's file becomes.
func (c *cli) planInstall(client clientconf.Client, f importFlags, r *importReport) (*pendingInstall, error) {
	file, err := clientconf.Open(f.file)
	if err != nil {
		return nil, err
	}
	p := &pendingInstall{file: file, report: installReport{Client: client.ID, File: f.file, Action: "installed", View: client.View(), Note: client.Note}}
	if f.present != "" {
		p.report.View = f.present
	}
	switch {
	case r.file.Exists || r.text != nil:
		c.appFile = r.App
	case c.appFile != "":
		return nil, noApp(c.appFile)
	}
	entry, err := c.clientEntry(p.report.View)
	if err != nil {
		return nil, err
	}
	base, backedUp := file.Data, false
	p.before = file.Data
	if client.Installed(f.file, file.Data) {
		backup, err := clientconf.Open(file.BackupPath())
		if err != nil {
			return nil, err
		}
		old, exact, err := client.Uninstall(f.file, file.Data, backup.Data)
		if err != nil && backup.Exists {
			return nil, err
		}
		p.report.Action, backedUp = "renewed", backup.Exists
		switch {
		case !exact && !backup.Exists: // somebody wrote it there by hand
		case exact && (!f.replace || !backup.Exists):
			base, p.before = old, nil
		case !exact && f.replace:
			p.before = old // servers that were added since are in no backup
			if client.Plain(f.file, file.Data) {
				base = old
			}
		default:
			p.before = nil
		}
	}
	var replace []clientconf.Server
	for _, server := range r.taken {
		if f.replace && server.File() == f.file {
			replace = append(replace, server)
			p.report.Removed = append(p.report.Removed, server.Name)
		}
	}
	if p.text, err = client.Install(f.file, base, entry, replace); err != nil {
		return nil, err
	}
	if string(p.text) == string(file.Data) {
		p.report.Action = "unchanged"
	} else if p.before != nil || backedUp {
		p.report.Backup = file.BackupPath()
	}
	if others, _, err := clientconf.Read(f.file, file.Data); err == nil {
		for _, s := range others {
			if !f.replace && !s.Helve() && !s.Disabled && !slices.Contains(p.report.Own, s.Name) {
				p.report.Own = append(p.report.Own, s.Name)
			}
			if s.Helve() && s.Name != "helve" {
				p.report.Note = strings.TrimPrefix(p.report.Note+fmt.Sprintf("; Helve stands there as %q, too, and the client would start both: take one of them out", s.Name), "; ")
			}
		}
	}
	if len(replace) > 0 && p.report.Backup != "" { // where the values are from now on
		for i, ref := range r.Secrets {
			if at, ok := strings.CutPrefix(ref.Source, f.file+":"); ok {
				r.Secrets[i].Source = p.report.Backup + ":" + at
			}
		}
	}
	return p, nil
}

// noApp is the error of a client's file that would name an app file which is not there.
func noApp(file string) error {
	return fmt.Errorf("--app: there is no file %s, with which the client would start Helve; write it first, or import servers into it", file)
}

func (p *pendingInstall) write() error {
	if p.report.Action == "unchanged" {
		return nil
	}
	if p.before != nil {
		if _, err := p.file.BackupAs(p.before); err != nil {
			return err
		}
	}
	return p.file.Replace(p.text)
}

// uninstall takes Helve out of a client's file.
func (c *cli) uninstall(client clientconf.Client, f importFlags) error {
	file, err := clientconf.Open(f.file)
	if err != nil {
		return err
	}
	if !file.Exists {
		return fmt.Errorf("%s: there is no such file; name it with --file", f.file)
	}
	backup, err := clientconf.Open(file.BackupPath())
	if err != nil {
		return err
	}
	text, exact, err := client.Uninstall(f.file, file.Data, backup.Data)
	if err != nil {
		return err
	}
	r := installReport{Client: client.ID, File: f.file, Action: "removed"}
	switch {
	case exact && backup.Exists:
		r.Action = "restored"
	case exact:
		r.Action = "deleted"
	case backup.Exists:
		r.Backup = file.BackupPath()
		if text, err = c.putBack(client, &r, file, text, backup.Data); err != nil {
			return err
		}
	}
	if !f.dryRun {
		if err := applyUninstall(r.Action, file, text); err != nil {
			return err
		}
	}
	if c.json {
		return c.printJSON(map[string]any{"dry_run": f.dryRun, "uninstall": r})
	}
	said := map[string]string{
		"restored": f.file + " is as it was before Helve was installed.",
		"deleted":  f.file + " was made for Helve, and is removed.",
		"removed":  "Helve's entry is taken out of " + f.file,
	}[r.Action]
	switch {
	case r.Action == "restored" && client.Installed(f.file, text):
		said += " It held Helve by hand; the same command again takes that out, too."
	case len(r.Returned) > 0:
		said += "; the file had changed since, so of the rest only the servers that Helve had taken over were put back: " + strings.Join(r.Returned, ", ") + "."
	case r.Backup != "":
		said += "; the file had changed since, so nothing else was restored."
	case r.Action == "removed":
		said += "."
	}
	fmt.Fprintln(c.out, clean(f.would(said)))
	if len(r.Missing) > 0 {
		fmt.Fprintln(c.out, clean("Not put back, since the app file does not have them as they were: "+strings.Join(r.Missing, ", ")+"."))
	}
	if r.Backup != "" {
		fmt.Fprintf(c.out, "What it was before is in %s.\n", r.Backup)
	}
	return nil
}

// putBack returns a client's file with the servers that were taken out of it
// when Helve took them over: those that the app file of Helve's entry has as
// the backup has them.
func (c *cli) putBack(client clientconf.Client, r *installReport, file *clientconf.File, text, backup []byte) ([]byte, error) {
	missing := slices.DeleteFunc(client.Missing(r.File, file.Data, backup), clientconf.Server.Helve)
	if len(missing) == 0 {
		return text, nil
	}
	var taken []clientconf.Server
	if name := client.AppFile(r.File, file.Data); name != "" {
		held, err := clientconf.Open(name)
		if err != nil {
			return nil, err
		}
		if _, outcomes, _, err := clientconf.Merge(name, held.Data, missing, secretKinds(), nil); err == nil {
			for i, o := range outcomes {
				if o.Action == "same" {
					taken = append(taken, missing[i])
				}
			}
		}
	}
	text, taken, err := client.PutBack(r.File, text, backup, taken)
	for _, s := range missing {
		if slices.ContainsFunc(taken, func(o clientconf.Server) bool { return o.Source == s.Source }) {
			r.Returned = append(r.Returned, s.Name)
		} else {
			r.Missing = append(r.Missing, s.Name)
		}
	}
	return text, err
}

func applyUninstall(action string, file *clientconf.File, text []byte) error {
	if action == "deleted" {
		return file.Remove()
	}
	if err := file.Replace(text); err != nil || action == "removed" {
		return err
	}
	return os.Remove(file.BackupPath())
}

// would marks what is told of a dry run.
func (f importFlags) would(s string) string {
	if f.dryRun {
		return "Dry run, nothing is written: " + s
	}
	return s
}

// findFiles returns the clients' files that there are.
func findFiles(p clientconf.Places) []importedFile {
	var out []importedFile
	for _, cl := range clientconf.Clients {
		for _, name := range cl.Files(p) {
			file, err := clientconf.Open(name)
			if err == nil && !file.Exists {
				continue
			}
			found := importedFile{File: name, Client: cl.Title}
			if err == nil {
				var servers []clientconf.Server
				if servers, _, err = clientconf.Read(name, file.Data); err == nil {
					found.Servers = len(servers) - countHelve(servers)
				}
			}
			if err != nil {
				found.Error = err.Error()
			}
			out = append(out, found)
		}
	}
	return out
}

func countHelve(servers []clientconf.Server) (n int) {
	for _, s := range servers {
		if s.Helve() {
			n++
		}
	}
	return n
}

func (c *cli) listFiles(found []importedFile) error {
	if c.json {
		return c.printJSON(map[string]any{"files": append([]importedFile{}, found...)})
	}
	if len(found) == 0 {
		fmt.Fprintln(c.out, "No client's configuration was found in the home folder or here. Name a file: helve import FILE")
		return nil
	}
	var rows [][]string
	var full []string
	for _, f := range found {
		what := fmt.Sprintf("%d", f.Servers)
		if f.Error != "" {
			what = "?"
		}
		rows = append(rows, []string{f.Client, what, f.File})
		if f.Servers > 0 {
			full = append(full, f.File)
		}
	}
	c.table([]string{"CLIENT", "SERVERS", "FILE"}, rows)
	for _, f := range found {
		if f.Error != "" {
			fmt.Fprintf(c.err, "%s %s\n", c.style(c.err).warn("warning:"), clean(f.Error))
		}
	}
	if len(full) > 0 {
		fmt.Fprintf(c.out, "\nImport them with:\n  helve import %s\nor all of them with: helve import --all\n", quoteAll(full))
	}
	return nil
}

func (c *cli) showImport(r *importReport) error {
	if c.json {
		return c.printJSON(r)
	}
	for _, w := range r.Warnings {
		fmt.Fprintf(c.err, "%s %s\n", c.style(c.err).warn("warning:"), clean(w.String()))
	}
	verb := ""
	if r.DryRun {
		fmt.Fprintln(c.out, "Dry run: nothing is written.")
		verb = "would be "
	}
	added := 0
	for _, o := range r.Servers {
		line := o.Name
		if o.As != "" && o.As != o.Name {
			line += " as " + o.As
		}
		line += ": " + map[string]string{"added": verb + "added", "same": "left as it is", "skipped": "left out"}[o.Action]
		if o.Note != "" {
			line += " (" + o.Note + ")"
		}
		if o.Action == "added" {
			added++
		}
		fmt.Fprintln(c.out, clean(line))
	}
	if len(r.Files) > 0 {
		fmt.Fprintf(c.out, "%d of %d servers %sadded to %s.\n", added, len(r.Servers), verb, r.App)
	}
	if r.Backup != "" {
		fmt.Fprintf(c.out, "What it was before is in %s.\n", r.Backup)
	}
	c.showSecrets(r.Secrets)
	if added > 0 && !r.DryRun && r.Install == nil {
		file := quoteAll([]string{r.App})
		fmt.Fprintf(c.out, "\nLook at it with: helve app explain %s\nPut it into a client with: helve import --install CLIENT --app %s\n", file, file)
	}
	if r.Install != nil {
		c.showInstall(*r.Install, verb)
	}
	return nil
}

// showSecrets says what is to be set before Helve starts. Variables of the
// client's own that are set are not told.
func (c *cli) showSecrets(refs []clientconf.Reference) {
	var lines, keep []string
	told, kept := map[string]bool{}, map[string]bool{}
	for _, r := range refs {
		name, from := "HELVE_SECRET_"+r.Name, "its value is at "+r.Source
		if _, set := os.LookupEnv(r.Name); r.Variable && set {
			continue
		}
		if r.Kept {
			kept[r.Name] = true
			continue
		}
		switch {
		case r.Variable:
			name, from = r.Name, r.Source+" refers to it"
		case r.Asked:
			from = "the client asked for it"
		}
		if r.Early {
			from += "; that server cannot be started without it"
		}
		if told[name] { // another server needs it, too
			continue
		}
		told[name] = true
		if !r.Early {
			keep = append(keep, clean("  helve secrets set "+r.Name))
		}
		lines = append(lines, clean(fmt.Sprintf("  export %s=…   # %s of %s: %s", name, r.Place, r.Server, from)))
	}
	if len(kept) > 0 {
		fmt.Fprintf(c.out, "\nKept, sealed, for the references to them: %s. helve secrets list names them.\n", strings.Join(slices.Sorted(maps.Keys(kept)), ", "))
	}
	if len(lines) > 0 {
		lead := "No secret was copied. Set these before Helve is started:"
		if len(kept) > 0 {
			lead = "Set these before Helve is started:"
		}
		fmt.Fprintf(c.out, "\n%s\n%s\n", lead, strings.Join(lines, "\n"))
		if len(keep) > 0 {
			fmt.Fprintf(c.out, "Or keep for good what need not be in the environment (--keep-secrets does that for what the files hold):\n%s\n", strings.Join(keep, "\n"))
		}
	}
}

func (c *cli) showInstall(r installReport, verb string) {
	switch r.Action {
	case "unchanged":
		fmt.Fprintf(c.out, "\nHelve is in %s already.\n", r.File)
		return
	case "renewed":
		fmt.Fprintf(c.out, "\nHelve's entry in %s %srenewed, with the view %s.\n", r.File, verb, r.View)
	default:
		fmt.Fprintf(c.out, "\nHelve %sadded to %s, with the view %s.\n", verb, r.File, r.View)
	}
	if len(r.Removed) > 0 {
		fmt.Fprintln(c.out, clean("Removed there: "+strings.Join(r.Removed, ", ")+"."))
	}
	if len(r.Own) > 0 {
		fmt.Fprintln(c.out, clean(fmt.Sprintf("It goes on starting %s itself; with --replace Helve takes that over, and its model sees their tools through Helve only.", summary(r.Own))))
	}
	if r.Backup != "" {
		fmt.Fprintf(c.out, "What it was before is in %s.\n", r.Backup)
	}
	if r.Note != "" {
		fmt.Fprintf(c.out, "%s.\n", r.Note)
	}
	fmt.Fprintf(c.out, "Take it out again with: helve import --uninstall %s --file %s\n", r.Client, quoteAll([]string{r.File}))
}

// summary names a few of many.
func summary(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// clientEntry returns what a client's file says to start this Helve.
func (c *cli) clientEntry(present string) (clientconf.Entry, error) {
	dir := c.root_
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if _, err := os.Stat(dir); err != nil {
		return clientconf.Entry{}, fmt.Errorf("--root: %w", err)
	}
	conf := c.clientConfig(present)
	return clientconf.Entry{Command: conf.Command, Args: conf.Args}, nil
}
