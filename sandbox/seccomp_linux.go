package sandbox

import (
	"encoding/binary"
	"fmt"
	"runtime"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// A forbidden is a system call that a confined command does not get, or not
// with some value of an argument. Arguments are compared as the 32 bits that
// the kernel reads of them, or else a caller could set the others.
type forbidden struct {
	call  int
	arg   int    // of the argument, from 0; -1: whatever the arguments
	mask  uint32 // of its bits that count; 0: all
	value uint32 // what they must not be; any bit of the mask with anyBit
	any   bool
	errno unix.Errno
}

func always(errno unix.Errno, calls ...int) []forbidden {
	var list []forbidden
	for _, c := range calls {
		list = append(list, forbidden{call: c, arg: -1, errno: errno})
	}
	return list
}

const (
	newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	tiocLinux     = 0x541c
)

// calls are forbidden to every confined command: they reach past the
// confinement, or parts of the kernel that programs rarely need and attacks
// often do.
func calls() []forbidden {
	list := always(unix.EPERM,
		unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSCONFIG,
		unix.SYS_FSPICK, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT,
		unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
		unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
		unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
		unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
		unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME)
	// Programs do without these where the kernel is older.
	list = append(list, always(unix.ENOSYS, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3)...)
	return append(list,
		forbidden{call: unix.SYS_CLONE, arg: 0, mask: newNamespaces, any: true, errno: unix.EPERM},
		forbidden{call: unix.SYS_UNSHARE, arg: 0, mask: newNamespaces, any: true, errno: unix.EPERM},
		forbidden{call: unix.SYS_IOCTL, arg: 1, value: unix.TIOCSTI, errno: unix.EPERM},
		forbidden{call: unix.SYS_IOCTL, arg: 1, value: tiocLinux, errno: unix.EPERM},
	)
}

// sockets are forbidden where no network namespace keeps a command from the
// network: every family but those that are named. Pairs of sockets serve
// programs among themselves; a pair of datagram sockets would not, since each
// can send elsewhere.
func sockets(families ...uint32) []forbidden {
	var list []forbidden
	for family := range uint32(64) {
		allowed := false
		for _, f := range families {
			allowed = allowed || f == family
		}
		if !allowed {
			list = append(list, forbidden{call: unix.SYS_SOCKET, arg: 0, value: family, errno: unix.EACCES})
		}
	}
	list = append(list, forbidden{call: unix.SYS_SOCKET, arg: 0, mask: ^uint32(63), any: true, errno: unix.EACCES})
	return append(list, forbidden{call: unix.SYS_SOCKETPAIR, arg: 1, mask: 0xf, value: unix.SOCK_DGRAM, errno: unix.EACCES})
}

// audit numbers of the architectures for which there is a filter.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// filter assembles the forbidden calls for the kernel. Calls by another
// architecture's numbers (32-bit programs) are all refused: the same filter
// would mean other calls by them.
func filter(list []forbidden) ([]bpf.RawInstruction, error) {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return nil, fmt.Errorf("there is no filter of system calls for %s", runtime.GOARCH)
	}
	const number, archOffset, arguments = 0, 4, 16
	load := func(off uint32) bpf.Instruction { return bpf.LoadAbsolute{Off: off, Size: 4} }
	refuse := func(errno unix.Errno) bpf.Instruction {
		return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	program := []bpf.Instruction{
		load(archOffset),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: arch, SkipTrue: 1}, refuse(unix.ENOSYS),
		load(number),
	}
	if runtime.GOARCH == "amd64" { // numbers of the x32 interface
		program = append(program, bpf.JumpIf{Cond: bpf.JumpLessThan, Val: 0x40000000, SkipTrue: 1}, refuse(unix.ENOSYS))
	}
	for _, f := range list {
		if f.arg < 0 {
			program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(f.call), SkipTrue: 1}, refuse(f.errno))
			continue
		}
		test := []bpf.Instruction{load(arguments + 8*uint32(f.arg))} // the low half: these machines are little-endian
		if f.mask != 0 {
			test = append(test, bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: f.mask})
		}
		unless := bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: f.value, SkipTrue: 1}
		if f.any {
			unless = bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}
		}
		test = append(test, unless, refuse(f.errno), load(number))
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(f.call), SkipTrue: uint8(len(test))})
		program = append(program, test...)
	}
	return bpf.Assemble(append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
}

// filterBytes is the filter as bubblewrap reads it: struct sock_filter[].
func filterBytes(program []bpf.RawInstruction) []byte {
	var b []byte
	for _, i := range program {
		b = binary.NativeEndian.AppendUint16(b, i.Op)
		b = append(b, i.Jt, i.Jf)
		b = binary.NativeEndian.AppendUint32(b, i.K)
	}
	return b
}
