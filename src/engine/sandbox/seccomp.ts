// The system-call filter of sandboxed commands as classic-BPF bytes, for bubblewrap's --seccomp: no native code needed.

type Cpu = 'x64' | 'arm64'
interface Calls {
	/** AUDIT_ARCH_*: a call made for another one (i386 on x64) kills the process. */
	arch: number
	clone: number
	clone3: number
	ioctl: number
	socket: number
	/** Answered EPERM: tracing, keys, kernel programs, mounts, namespaces, handles, asynchronous rings that go round filters. */
	denied: number[]
}

const calls: Record<Cpu, Calls> = {
	x64: {
		arch: 0xc000003e,
		clone: 56,
		clone3: 435,
		ioctl: 16,
		socket: 41,
		denied: [
			...[101, 310, 311, 438, 440, 312], // ptrace, process_vm_readv, process_vm_writev, pidfd_getfd, process_madvise, kcmp
			...[248, 249, 250], // add_key, request_key, keyctl
			...[321, 323, 298, 425, 426, 427], // bpf, userfaultfd, perf_event_open, io_uring_*
			...[165, 166, 155, 161, 272, 308], // mount, umount2, pivot_root, chroot, unshare, setns
			...[428, 429, 430, 431, 432, 433, 442], // open_tree, move_mount, fsopen, fsconfig, fsmount, fspick, mount_setattr
			...[303, 304], // name_to_handle_at, open_by_handle_at
			...[246, 320, 175, 313, 176], // kexec_load, kexec_file_load, init_module, finit_module, delete_module
			...[163, 179, 443, 167, 168, 169, 103, 172, 173, 154, 153], // acct, quotactl, quotactl_fd, swapon, swapoff, reboot, syslog, iopl, ioperm, modify_ldt, vhangup
			...[134, 136, 156, 174, 177, 178, 180, 212], // uselib, ustat, _sysctl, create_module, get_kernel_syms, query_module, nfsservctl, lookup_dcookie
			...[227, 159, 305, 164, 170, 171], // clock_settime, adjtimex, clock_adjtime, settimeofday, sethostname, setdomainname
		],
	},
	arm64: {
		arch: 0xc00000b7,
		clone: 220,
		clone3: 435,
		ioctl: 29,
		socket: 198,
		denied: [
			...[117, 270, 271, 438, 440, 272],
			...[217, 218, 219],
			...[280, 282, 241, 425, 426, 427],
			...[40, 39, 41, 51, 97, 268],
			...[428, 429, 430, 431, 432, 433, 442],
			...[264, 265],
			...[104, 294, 105, 273, 106],
			...[89, 60, 443, 224, 225, 142, 116, 58],
			...[18, 42],
			...[112, 171, 266, 170, 161, 162],
		],
	},
}

const load = 0x20 // BPF_LD | BPF_W | BPF_ABS
const ifEqual = 0x15
const ifAtLeast = 0x35
const ifBits = 0x45
const result = 0x06
const allow = 0x7fff0000
const kill = 0x80000000
const errno = (code: number) => 0x00050000 + code
const EPERM = 1
const ENOSYS = 38
const EAFNOSUPPORT = 97
/** CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}. */
const newNamespaces = 0x7e020000
/** TIOCSTI, TIOCLINUX (both type into a terminal) and TIOCSETD. */
const terminalCommands = [0x5412, 0x541c, 0x5423]
const [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] = [1, 2, 10, 16]

/** Offsets in struct seccomp_data; of an argument the low 32 bits, which is what the kernel looks at for these calls. */
const at = { nr: 0, arch: 4, arg: (n: number) => 16 + 8 * n }

/** One rule: the bytes for a call number, or null for a CPU without a table (the caller then runs without a filter, and says so). */
export const seccompFilter = (cpu: string, options: { blockUnix: boolean }): Buffer | null => {
	if (cpu !== 'x64' && cpu !== 'arm64') return null
	const table = calls[cpu]
	const program: [code: number, yes: number, no: number, value: number][] = []
	const add = (code: number, value: number, yes = 0, no = 0) => program.push([code, yes, no, value])
	const when = (number: number, body: () => void) => {
		const jump = program.length
		add(ifEqual, number, 0, 0)
		body()
		program[jump]![2] = program.length - jump - 1
	}

	add(load, at.arch)
	add(ifEqual, table.arch, 1, 0)
	add(result, kill)
	add(load, at.nr)
	if (cpu === 'x64') {
		// x32 numbers (bit 30) reach the same calls by other numbers.
		add(ifAtLeast, 0x40000000, 0, 1)
		add(result, kill)
	}
	for (const number of table.denied) when(number, () => add(result, errno(EPERM)))
	// A filter cannot look into clone3's struct; on ENOSYS every libc falls back to clone, whose flags are visible.
	when(table.clone3, () => add(result, errno(ENOSYS)))
	when(table.clone, () => {
		add(load, at.arg(0))
		add(ifBits, newNamespaces, 0, 1)
		add(result, errno(EPERM))
		add(result, allow)
	})
	when(table.ioctl, () => {
		add(load, at.arg(1))
		for (const command of terminalCommands) when(command, () => add(result, errno(EPERM)))
		add(result, allow)
	})
	when(table.socket, () => {
		add(load, at.arg(0))
		for (const family of options.blockUnix ? [AF_INET, AF_INET6] : [AF_UNIX, AF_INET, AF_INET6])
			when(family!, () => add(result, allow))
		// Netlink only for routes (getifaddrs needs it).
		when(AF_NETLINK!, () => {
			add(load, at.arg(2))
			when(0, () => add(result, allow))
		})
		add(result, errno(EAFNOSUPPORT))
	})
	add(result, allow)

	const bytes = Buffer.alloc(program.length * 8)
	program.forEach(([code, yes, no, value], index) => {
		bytes.writeUInt16LE(code, index * 8)
		bytes.writeUInt8(yes, index * 8 + 2)
		bytes.writeUInt8(no, index * 8 + 3)
		bytes.writeUInt32LE(value, index * 8 + 4)
	})
	return bytes
}
