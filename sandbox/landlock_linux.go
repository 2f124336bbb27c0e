package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// leastABI is the first version of Landlock (Linux 6.2) under which a command
// cannot cut files short that it may not write.
const leastABI = 3

const (
	readFile  = ll.AccessFSExecute | ll.AccessFSReadFile
	readDir   = ll.AccessFSReadDir
	readAll   = readFile | readDir
	writeFile = ll.AccessFSWriteFile | ll.AccessFSTruncate
	changeDir = ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer
	writeAll  = readAll | writeFile | changeDir
	ofFiles   = readFile | writeFile | ll.AccessFSIoctlDev
	deviceUse = ll.AccessFSReadFile | ll.AccessFSWriteFile
)

// handled are the accesses that a kernel can refuse.
func handled(abi int) (files, net, scoped uint64) {
	files = ll.AccessFSRefer<<1 - 1
	for version, access := range map[int]uint64{3: ll.AccessFSTruncate, 5: ll.AccessFSIoctlDev, 9: ll.AccessFSResolveUnix} {
		if abi >= version {
			files |= access
		}
	}
	if abi >= 4 {
		net = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	if abi >= 10 {
		net |= ll.AccessNetBindUDP | ll.AccessNetConnectSendUDP
	}
	if abi >= 6 {
		scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	return files, net, scoped
}

// A ruleset is what a command is granted of the files.
type ruleset struct {
	fd     int
	files  uint64 // what it handles
	hidden []string
	kept   []string
	rules  int
}

// maxRules bounds the rules that make exceptions possible: Landlock grants a
// folder with all beneath it, and takes nothing back.
const maxRules = 20_000

// exception reports whether path is hidden or kept, or has such a path beneath it.
func (r *ruleset) exception(path string, writes bool) (itself, below bool) {
	lists := [][]string{r.hidden}
	if writes {
		lists = append(lists, r.kept)
	}
	for _, list := range lists {
		for _, p := range list {
			itself = itself || p == path
			below = below || strings.HasPrefix(p, strings.TrimSuffix(path, "/")+"/")
		}
	}
	return itself, below
}

// grant permits access to a path, but for what is hidden and kept of it. A
// folder with an exception beneath it is granted entry by entry: nothing can
// be made or removed in it then. Links are not followed and need no grant.
func (r *ruleset) grant(path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // what is not there need not be granted
	}
	defer unix.Close(fd)
	return r.grantOpen(fd, path, access)
}

func (r *ruleset) grantOpen(fd int, path string, access uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if slices.Contains(r.hidden, path) || st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return nil
	}
	writes := access&(writeFile|changeDir) != 0
	itself, below := r.exception(path, writes)
	if itself { // kept
		return r.grantOpen(fd, path, access&readAll)
	}
	if !dir {
		access &= ofFiles
	}
	if !dir || !below {
		return r.add(fd, access)
	}
	if err := r.add(fd, access&readDir); err != nil {
		return err
	}
	entries, err := entriesOf(fd)
	if err != nil {
		return nil // what cannot be listed here, the command cannot open either
	}
	for _, name := range entries {
		entry, err := unix.Openat(fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		err = r.grantOpen(entry, filepath.Join(path, name), access)
		unix.Close(entry)
		if err != nil {
			return err
		}
	}
	return nil
}

func entriesOf(fd int) ([]string, error) {
	again, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(again), "folder")
	defer f.Close()
	return f.Readdirnames(-1)
}

func (r *ruleset) add(fd int, access uint64) error {
	if access &= r.files; access == 0 {
		return nil
	}
	if r.rules++; r.rules > maxRules {
		return errors.New("too many files lie beside what is ignored or protected; name folders in .helveignore and .helveprotect, or install bubblewrap")
	}
	return ll.LandlockAddPathBeneathRule(r.fd, &ll.PathBeneathAttr{ParentFd: fd, AllowedAccess: access}, 0)
}

// restrictFiles has the kernel refuse this thread, and what it becomes, all
// files but those of the command.
func restrictFiles(s *Spec, home string, abi int) error {
	files, net, scoped := handled(abi)
	if s.Network {
		net = 0
	}
	fd, err := ll.LandlockCreateRuleset(&ll.RulesetAttr{HandledAccessFS: files, HandledAccessNet: net, Scoped: scoped}, 0)
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	defer unix.Close(fd)
	r := &ruleset{fd: fd, files: files, hidden: slices.Concat(hiddenInSystem(), s.Hide), kept: s.Keep}
	type granted struct {
		path   string
		access uint64
	}
	var list []granted
	for _, dir := range slices.Concat(systemDirs, s.Readable) {
		list = append(list, granted{dir, readAll})
	}
	for _, file := range []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"} {
		list = append(list, granted{file, deviceUse})
	}
	list = append(list, granted{"/proc/self", readAll}, granted{home, writeAll})
	for _, name := range []string{"cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "sys"} {
		list = append(list, granted{"/proc/" + name, readAll})
	}
	if file := resolverFile(); s.Network && file != "" {
		list = append(list, granted{file, readFile})
	}
	for _, dir := range s.Writable {
		list = append(list, granted{dir, writeAll})
	}
	access := uint64(writeAll)
	if s.ReadOnly {
		access = readAll
	}
	for _, g := range append(list, granted{s.Root, access}) {
		if err := r.grant(g.path, g.access); err != nil {
			return fmt.Errorf("landlock: %s: %w", g.path, err)
		}
	}
	if err := ll.LandlockRestrictSelf(fd, 0); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}

// landlockSockets are the families of sockets that are left to a command.
func landlockSockets(s *Spec, abi int) []uint32 {
	var families []uint32
	if abi >= 9 { // before, sockets of the machine's services could be reached by their files
		families = append(families, unix.AF_UNIX)
	}
	if s.Network {
		families = append(families, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)
	}
	return families
}

// landlockABI returns the kernel's version of Landlock; 0 when it has none.
func landlockABI() int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || abi < 0 {
		return 0
	}
	return abi
}
