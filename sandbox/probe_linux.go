package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bwrapPlaces are where bubblewrap may be: folders that only root changes.
var bwrapPlaces = []string{"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap", "/run/wrappers/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

const installBubblewrap = "install bubblewrap (Debian and Ubuntu: apt-get install bubblewrap; Fedora: dnf install bubblewrap)"

// run runs a command as the status says.
func (r *Runner) run(ctx context.Context, s Spec, status Status) (*Result, error) {
	seen := slices.Concat([]string{s.Root}, s.Readable, s.Writable)
	s.Hide, s.Keep = slices.Clone(s.Hide), slices.Clone(s.Keep)
	if home, err := os.UserHomeDir(); err == nil {
		s.Hide = append(s.Hide, secretsOfHome(realPath(home), seen)...)
	}
	hide, keep := within(r.o.Hide, seen), within(r.o.Keep, seen)
	s.anchors = above(slices.Concat(hide, keep, s.Stay), s.Root)
	s.Hide = append(s.Hide, hide...)
	s.Keep = append(s.Keep, keep...)
	if s.ReadOnly {
		status.group = nil // which costs more time than such a command, and few of them start others
	}
	switch {
	case status.Active == Bubblewrap:
		return runBwrap(ctx, &s, status)
	case status.Active == Landlock:
		res, err := r.runHelper(ctx, &s, status)
		if res != nil && res.Code != 0 && !s.ReadOnly && len(s.Hide)+len(s.Keep) > 0 {
			res.Notes = append(res.Notes, "under Landlock nothing can be made or removed directly in a folder that holds what is ignored or protected, such as .helve and .git in the root; "+installBubblewrap+" to lift that")
		}
		return res, err
	case len(r.o.Helper) > 0:
		return r.runHelper(ctx, &s, status)
	}
	return runPlain(ctx, &s)
}

// above returns the folders between the root and these places, outer ones first.
func above(places []string, root string) []string {
	var dirs []string
	for _, p := range places {
		for dir := filepath.Dir(p); dir != root && beneath(dir, root); dir = filepath.Dir(dir) {
			if info, err := os.Lstat(dir); err == nil && info.IsDir() && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return dirs
}

// probe finds out what works, strongest first, by running a program that does nothing.
func probe(o Options) Status {
	status := Status{Active: None, group: findGroups(), abi: landlockABI()}
	status.Groups = status.group.String()
	if o.Mode == Off {
		status.Missing = []string{"the app turns it off: security.sandbox: off"}
		return weaknesses(status)
	}
	unused := func(c Confinement, format string, args ...any) {
		status.Missing = append(status.Missing, string(c)+": "+fmt.Sprintf(format, args...))
	}
	if slices.Contains(o.Without, Bubblewrap) {
		unused(Bubblewrap, "is not to be used")
	} else if err := probeBwrap(&status); err == nil {
		return weaknesses(status)
	} else {
		unused(Bubblewrap, "%v", err)
		status.Remedy = bwrapRemedy(status.program)
	}
	switch {
	case slices.Contains(o.Without, Landlock):
		unused(Landlock, "is not to be used")
	case status.abi == 0:
		unused(Landlock, "the kernel has none, or it is not among the modules that were enabled at boot (lsm=landlock,...)")
	case status.abi < leastABI:
		unused(Landlock, "the kernel's version %d is too old; %d is needed (Linux 6.2)", status.abi, leastABI)
	case len(o.Helper) == 0:
		unused(Landlock, "the program that runs Helve has no helper for it")
	default:
		status.Active, status.Detail = Landlock, fmt.Sprintf("version %d", status.abi)
		if err := (&Runner{o: o}).try(status); err != nil {
			unused(Landlock, "%v", err)
			status.Active, status.Detail = None, ""
			break
		}
		return weaknesses(status)
	}
	return weaknesses(status)
}

// probeBwrap tries bubblewrap, with a user namespace and, for root, without one.
func probeBwrap(status *Status) error {
	i := slices.IndexFunc(bwrapPlaces, func(p string) bool {
		info, err := os.Stat(p)
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
	})
	if i < 0 {
		return fmt.Errorf("it is not installed")
	}
	trial := *status
	trial.Active, trial.program = Bubblewrap, bwrapPlaces[i]
	var first error
	for _, userns := range []bool{true, false} {
		trial.userns = userns
		err := (&Runner{}).try(trial)
		if err == nil {
			trial.Detail = trial.program
			*status = trial
			return nil
		}
		if first == nil {
			first = err
		}
		if os.Geteuid() != 0 {
			break
		}
	}
	status.program = trial.program
	return first
}

// try runs a program that does nothing.
func (r *Runner) try(status Status) error {
	dir, err := os.MkdirTemp("", "helve-probe-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	nothing := "/usr/bin/true"
	if _, err := os.Stat(nothing); err != nil {
		nothing = "/bin/true"
	}
	dir = realPath(dir)
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		return err
	}
	s := Spec{Path: realPath(nothing), Args: []string{"true"}, Dir: root, Root: root, ReadOnly: true, Limits: Limits{Time: 20 * time.Second}.filled()}
	res, err := r.run(context.Background(), s, status)
	if err != nil {
		return err
	}
	if res.Code != 0 || res.Ended != "" {
		return fmt.Errorf("a program that does nothing ended with %d %s", res.Code, res.Ended)
	}
	return nil
}

// weaknesses adds what the active confinement does not stop.
func weaknesses(status Status) Status {
	switch status.Active {
	case Bubblewrap:
		if !status.userns {
			status.Weak = append(status.Weak, "bubblewrap gets no user namespace: commands run as root without its capabilities")
		}
	case Landlock:
		status.Weak = append(status.Weak,
			"commands see the names of ignored files, and cannot make or remove files directly in a folder that holds something ignored or protected")
		if status.abi < 6 {
			status.Weak = append(status.Weak, "commands can send signals to the user's other processes (Linux 6.12 stops that)")
		}
	default:
		status.Weak = append(status.Weak, "commands see and change what the user can who runs Helve, and reach the network")
	}
	if g := status.group; g == nil || g.memory == "" || g.pids == "" {
		status.Weak = append(status.Weak, "no control group can be made for "+uncounted(g)+" (run Helve in a session of systemd, as a service with Delegate=yes, or as root)")
	}
	return status
}

// uncounted says what no control group can be made for, and what holds instead.
func uncounted(g *groups) string {
	var missing []string
	if g == nil || g.memory == "" {
		missing = append(missing, "memory, which is limited for each process")
	}
	if g == nil || g.pids == "" {
		missing = append(missing, "the number of processes, which is limited for each user, and for root not at all")
	}
	return strings.Join(missing, ", and for ")
}

// bwrapRemedy says what would make bubblewrap work.
func bwrapRemedy(program string) string {
	if program == "" {
		return installBubblewrap
	}
	for _, k := range []struct{ file, bad, remedy string }{
		{"kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"},
		{"user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"},
		{"kernel/apparmor_restrict_unprivileged_userns", "1", "give bwrap an AppArmor profile that permits userns, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
	} {
		text, err := os.ReadFile(filepath.Join("/proc/sys", k.file))
		if err == nil && strings.TrimSpace(string(text)) == k.bad {
			return "bubblewrap needs user namespaces: " + k.remedy
		}
	}
	return "bubblewrap needs user namespaces, which a container may forbid: start it with permission to make them"
}
