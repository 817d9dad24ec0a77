// The system-call filter as the kernel would run it: each call that is refused, on each CPU, and those that work needs.
import { expect } from 'chai'
import { seccompFilter } from '../../../src/engine/sandbox/seccomp.ts'

/** Calls that a command never makes for its work, by their numbers. */
const refused: Record<string, Record<string, number>> = {
	x64: {
		ptrace: 101,
		process_vm_readv: 310,
		process_vm_writev: 311,
		pidfd_getfd: 438,
		process_madvise: 440,
		kcmp: 312,
		add_key: 248,
		request_key: 249,
		keyctl: 250,
		bpf: 321,
		userfaultfd: 323,
		perf_event_open: 298,
		io_uring_setup: 425,
		io_uring_enter: 426,
		io_uring_register: 427,
		mount: 165,
		umount2: 166,
		pivot_root: 155,
		chroot: 161,
		unshare: 272,
		setns: 308,
		open_tree: 428,
		move_mount: 429,
		fsopen: 430,
		fsconfig: 431,
		fsmount: 432,
		fspick: 433,
		mount_setattr: 442,
		name_to_handle_at: 303,
		open_by_handle_at: 304,
		kexec_load: 246,
		kexec_file_load: 320,
		init_module: 175,
		finit_module: 313,
		delete_module: 176,
		acct: 163,
		quotactl: 179,
		quotactl_fd: 443,
		swapon: 167,
		swapoff: 168,
		reboot: 169,
		syslog: 103,
		iopl: 172,
		ioperm: 173,
		modify_ldt: 154,
		vhangup: 153,
		uselib: 134,
		ustat: 136,
		_sysctl: 156,
		create_module: 174,
		get_kernel_syms: 177,
		query_module: 178,
		nfsservctl: 180,
		lookup_dcookie: 212,
		clock_settime: 227,
		adjtimex: 159,
		clock_adjtime: 305,
		settimeofday: 164,
		sethostname: 170,
		setdomainname: 171,
	},
	arm64: {
		ptrace: 117,
		process_vm_readv: 270,
		process_vm_writev: 271,
		pidfd_getfd: 438,
		process_madvise: 440,
		kcmp: 272,
		add_key: 217,
		request_key: 218,
		keyctl: 219,
		bpf: 280,
		userfaultfd: 282,
		perf_event_open: 241,
		io_uring_setup: 425,
		io_uring_enter: 426,
		io_uring_register: 427,
		mount: 40,
		umount2: 39,
		pivot_root: 41,
		chroot: 51,
		unshare: 97,
		setns: 268,
		open_tree: 428,
		move_mount: 429,
		fsopen: 430,
		fsconfig: 431,
		fsmount: 432,
		fspick: 433,
		mount_setattr: 442,
		name_to_handle_at: 264,
		open_by_handle_at: 265,
		kexec_load: 104,
		kexec_file_load: 294,
		init_module: 105,
		finit_module: 273,
		delete_module: 106,
		acct: 89,
		quotactl: 60,
		quotactl_fd: 443,
		swapon: 224,
		swapoff: 225,
		reboot: 142,
		syslog: 116,
		vhangup: 58,
		nfsservctl: 18,
		lookup_dcookie: 42,
		clock_settime: 112,
		adjtimex: 171,
		clock_adjtime: 266,
		settimeofday: 170,
		sethostname: 161,
		setdomainname: 162,
	},
}

describe('sandbox: filter', () => {
	/** What the kernel would answer: a small classic-BPF machine. */
	const answer = (
		cpu: string,
		blockUnix: boolean,
		nr: number,
		args: number[] = [],
		arch = cpu === 'x64' ? 0xc000003e : 0xc00000b7,
	): number => {
		const program = seccompFilter(cpu, { blockUnix })!
		const data = new Map([
			[0, nr],
			[4, arch],
			...args.map((value, index) => [16 + 8 * index, value >>> 0] as [number, number]),
		])
		let a = 0
		for (let at = 0; at < program.length / 8; at++) {
			const [code, yes, no, k] = [
				program.readUInt16LE(at * 8),
				program[at * 8 + 2]!,
				program[at * 8 + 3]!,
				program.readUInt32LE(at * 8 + 4),
			]
			if (code === 0x20) a = data.get(k) ?? 0
			else if (code === 0x06) return k
			else at += (code === 0x15 ? a === k : code === 0x35 ? a >= k : (a & k) !== 0) ? yes : no
		}
		throw new Error('the program ended without an answer')
	}
	const [allow, kill, eperm, enosys, nofamily] = [0x7fff0000, 0x80000000, 0x50001, 0x50026, 0x50061]

	for (const [cpu, number] of [
		[
			'x64',
			{ read: 0, ptrace: 101, clone: 56, clone3: 435, ioctl: 16, socket: 41, socketpair: 53, keyctl: 250, mount: 165 },
		],
		[
			'arm64',
			{
				read: 63,
				ptrace: 117,
				clone: 220,
				clone3: 435,
				ioctl: 29,
				socket: 198,
				socketpair: 199,
				keyctl: 219,
				mount: 40,
			},
		],
	] as const)
		it(`answers each call as meant on ${cpu}`, () => {
			const says = (nr: number, ...args: number[]) => answer(cpu, false, nr, args)
			expect(says(number.read)).to.equal(allow)
			for (const nr of [number.ptrace, number.keyctl, number.mount, 425, 428, 442])
				expect(says(nr), String(nr)).to.equal(eperm)
			expect(says(number.clone3)).to.equal(enosys)
			expect(says(number.clone, 0x11)).to.equal(allow)
			for (const flag of [0x10000000, 0x20000000, 0x40000000, 0x20000, 0x2000000, 0x4000000, 0x8000000])
				expect(says(number.clone, flag | 0x11)).to.equal(eperm)
			for (const command of [0x5412, 0x541c, 0x5423]) expect(says(number.ioctl, 0, command)).to.equal(eperm)
			expect(says(number.ioctl, 0, 0x5413)).to.equal(allow)
			// An argument that looks like the number of another call is none.
			expect(says(number.clone, number.ioctl, 0x5412)).to.equal(allow)
			expect(says(number.ioctl, 44, number.socket)).to.equal(allow)
			for (const family of [1, 2, 10]) expect(says(number.socket, family, 1, 0)).to.equal(allow)
			expect(says(number.socket, 16, 3, 0)).to.equal(allow)
			for (const family of [16, 17, 31, 38, 40, 44])
				expect(says(number.socket, family, 3, 9), String(family)).to.equal(nofamily)
			expect(answer(cpu, true, number.socket, [1, 1, 0])).to.equal(nofamily)
			expect(answer(cpu, true, number.socket, [2, 1, 0])).to.equal(allow)
			expect(answer(cpu, true, number.socketpair, [1, 1, 0])).to.equal(allow)
			expect(answer(cpu, false, number.read, [], 0x40000003)).to.equal(kill)
			expect(answer(cpu, false, number.read, [], 0xc0000000 + 1)).to.equal(kill)
			if (cpu === 'x64') expect(says(0x40000000 + 39)).to.equal(kill)
		})

	for (const [cpu, calls] of Object.entries(refused))
		it(`proc-10 refuses each call that reaches other processes, keys, mounts, the kernel or the clock, on ${cpu}`, () => {
			for (const [name, nr] of Object.entries(calls)) expect(answer(cpu, false, nr), name).to.equal(eperm)
		})

	it('has no table for another CPU, and says so', () =>
		expect(seccompFilter('ppc64', { blockUnix: false })).to.equal(null))
})
