// Named probes: each prints ESCAPED when it gets through. `live`: who gets through without a sandbox, so that no probe is dead.
import { homeSecrets } from '../../../src/engine/sandbox/names.ts'
import type { Setting } from './fixture.ts'

/** The token of the fixture as a pattern that does not match its own text in a command line. */
const token = 'SECRETTO[K]EN'

export interface Probe {
	id: string
	script: string
	/** The setting in which it acts without a sandbox: as anybody, or as root only. */
	live: 'any' | 'root'
	/** Settings it is for; default all. */
	in?: Setting[]
}

const yes = 'echo ESCAPED'
const shell = (id: string, script: string, live: Probe['live'] = 'any', settings?: Setting[]): Probe => ({
	id,
	script,
	live,
	...(settings ? { in: settings } : {}),
})
/** Acts when the condition holds. */
const when = (id: string, condition: string, live: Probe['live'] = 'any', settings?: Setting[]) =>
	shell(id, `${condition} && ${yes}`, live, settings)
const perl = (id: string, code: string, live: Probe['live'] = 'any') => shell(id, `perl -e '${code}'`, live)
/** A raw system call that the filter answers: through when it works or fails for any other reason. */
const call = (id: string, args: string, live: Probe['live'] = 'any', refusal = 1) => {
	// perl passes no literal to a system call.
	const strings: string[] = []
	const plain = args.replace(/"[^"]*"/g, (text) => `$s[${strings.push(text) - 1}]`)
	return perl(
		id,
		`my @s = (${strings.join(', ')}); $! = 0; my $r = syscall(${plain}); print "ESCAPED" if $r != -1 || $! != ${refusal}`,
		live,
	)
}
const reads = (id: string, files: string, live: Probe['live'] = 'any', settings?: Setting[]) =>
	when(id, `cat ${files} 2>/dev/null | grep -qa ${token}`, live, settings)
/** Changes a file of the project that the host obeys. */
const writes = (id: string, script: string, settings?: Setting[]) =>
	when(id, `{ ${script}; } 2>/dev/null`, 'any', settings)
const unixClient = (id: string, address: string) =>
	perl(
		id,
		`use Socket; alarm 3; socket(S, AF_UNIX, SOCK_STREAM, 0) or exit; connect(S, pack_sockaddr_un(${address})) or exit; print scalar <S>`,
	)

export const probes: Probe[] = [
	// What a home hides
	...homeSecrets.map((name) => reads(`mask ${name}`, `"$H/${name}" "$H/${name}/k"`)),
	reads('mask seen through /proc/self/root', '/proc/self/root$H/.ssh/k'),
	reads('proc-20 mask seen through /proc/1/root', '/proc/1/root$H/.ssh/k /proc/$HOSTPID/root$H/.ssh/k'),
	reads('mask seen through /proc/self/cwd', '/proc/self/cwd/../home/.ssh/k /proc/self/cwd/.ssh/k'),
	shell('proc-03 unmount a mask', `umount "$H/.ssh" 2>/dev/null; cat "$H/.ssh/k" | grep -q ${token} && ${yes}`),
	shell(
		'hard link to a hidden file',
		`ln "$H/.netrc" "$H/.netrc2-$$" 2>/dev/null || ln "$H/.netrc" "$R/hl-$$"; cat "$H/.netrc2-$$" "$R/hl-$$" 2>/dev/null | grep -q ${token} && ${yes}; rm -f "$H/.netrc2-$$" "$R/hl-$$"`,
	),
	shell(
		'link to a hidden file',
		`ln -sf "$H/.netrc" /tmp/sl-$$; grep -q ${token} /tmp/sl-$$ && ${yes}; rm -f /tmp/sl-$$`,
	),
	when(
		'secret-06 cp of a hidden folder',
		`cp -r "$H/.aws" /tmp/aws-$$ && grep -rq ${token} /tmp/aws-$$; s=$?; rm -rf /tmp/aws-$$; [ $s = 0 ]`,
	),
	writes('config-10 write of ~/.garuda/trust.json', 'echo {} > "$H/.garuda/trust.json"'),
	when('read of /etc/shadow', 'grep -q : /etc/shadow', 'root'),
	// Writing outside
	writes('env-01 append to ~/.profile', 'echo "export LD_PRELOAD=x" >> "$H/.profile"'),
	writes('append to ~/.bashrc', 'echo x >> "$H/.bashrc"'),
	writes('write into ~/.local/bin', 'echo x > "$H/.local/bin/tool"'),
	writes('write into ~/.config/autostart', 'echo x > "$H/.config/autostart/b.desktop"'),
	writes('new file in the home', 'echo x > "$H/new-$$"', ['build', 'plan', 'user']),
	when('write of /usr', '[ -w /usr ]', 'root'),
	when('write of /etc', '[ -w /etc ]', 'root'),
	when('remount / writable', 'mount -o remount,rw,bind / 2>/dev/null; [ -w /usr ]', 'root'),
	writes(
		'link-12 archive with a link',
		'd=/tmp/tar-$$; mkdir -p $d/in; cd $d/in; ln -s "$H" link; echo x > evil-$$; tar cf ../a.tar link; tar rf ../a.tar --transform "s,^evil,link/evil," evil-$$; mkdir ../out; cd ../out; tar xPf ../a.tar; [ -e "$H/evil-$$" ]; s=$?; rm -rf $d "$H/evil-$$"; [ $s = 0 ]',
		['build', 'user'],
	),
	writes('write through a link out of the root', 'ln -sfn "$H" "$R/out-$$"; echo x > "$R/out-$$/through"', [
		'build',
		'plan',
		'user',
	]),
	// What the host obeys inside the root
	...[
		'.vscode/tasks.json',
		'.idea/workspace.xml',
		'.mcp.json',
		'.envrc',
		'.husky/pre-commit',
		'.zed/tasks.json',
		'.git/config',
		'.githooks/post-checkout',
		'sub/.git/config',
	].map((name) => writes(`write of ${name}`, `echo x >> "$R/${name}"`)),
	writes('new .git/hooks/post-checkout', 'echo x > "$R/.git/hooks/post-checkout"'),
	writes('git-04 new hook in core.hooksPath', 'echo x > "$R/.githooks/pre-commit"'),
	writes('git-08 new hook of a nested repository', 'echo x > "$R/sub/.git/hooks/post-checkout"'),
	writes('link-09 target of a linked .git/info', 'echo x > "$R/shared-info/attributes"'),
	writes('git-02 git config core.fsmonitor', 'cd "$R" && unset GIT_DIR && git config core.fsmonitor "touch x"'),
	writes('git-05 git config filter', 'cd "$R" && unset GIT_DIR && git config filter.x.clean "touch x"'),
	writes('replace .git/config by rename', 'cp "$R/.git/config" "$R/.git/c2" && mv -f "$R/.git/c2" "$R/.git/config"'),
	writes('git-03 rename .git away', 'mv "$R/.git" "$R/.g2" && mv "$R/.g2" "$R/.git"'),
	writes('rename a nested .git away', 'mv "$R/sub/.git" "$R/sub/.g2" && mv "$R/sub/.g2" "$R/sub/.git"'),
	writes('rename .githooks away', 'mv "$R/.githooks" "$R/gh" && mv "$R/gh" "$R/.githooks"'),
	writes('rename .vscode away', 'mv "$R/.vscode" "$R/vs" && mv "$R/vs" "$R/.vscode"'),
	writes('remove .envrc', 'cp "$R/.envrc" /tmp/envrc-$$ && rm "$R/.envrc" && mv /tmp/envrc-$$ "$R/.envrc"'),
	writes('new file in .garuda', 'mkdir -p "$R/.garuda" && echo x > "$R/.garuda/settings.json"'),
	writes('chmod of a protected file', 'chmod 755 "$R/.mcp.json"'),
	writes('rename the parent of a mask', 'mv "$H/.config" "$H/c2" && mv "$H/c2" "$H/.config"'),
	writes('rename a mask', 'mv "$H/.ssh" "$H/s2" && mv "$H/s2" "$H/.ssh"'),
	// Plan mode
	writes('proc-27 write in the root', 'echo x > "$R/plan-$$"', ['plan']),
	writes('proc-27 write in a cache', 'echo x > "$CACHE/plan-$$"', ['plan']),
	writes(
		'proc-27 git commit',
		'cd "$R" && unset GIT_DIR && git -c core.hooksPath= -c user.name=a -c user.email=b commit -q --allow-empty -m x',
		['plan'],
	),
	// Other processes
	when('sees a host process', '[ -e /proc/$HOSTPID/status ] && grep -q sleep /proc/$HOSTPID/comm'),
	when('signals a host process', 'grep -q sleep /proc/$HOSTPID/comm && kill -0 $HOSTPID'),
	reads('environ of a host process', '/proc/$HOSTPID/environ'),
	reads('environ of every process', '/proc/[0-9]*/environ'),
	reads('env-09 command line of every process', '/proc/[0-9]*/cmdline'),
	reads('environ of the first process', '/proc/1/environ /proc/$HOSTPID/environ'),
	when('proc-15 inherited sockets', 'ls -l /proc/$$/fd /proc/$PPID/fd | grep -q "socket:"'),
	when('proc-23 capabilities', '! grep -q "CapEff:.0000000000000000" /proc/self/status', 'root'),
	when('capabilities to regain', '! grep -q "CapBnd:.0000000000000000" /proc/self/status'),
	when('setuid programs work', '! grep -q "NoNewPrivs:.1" /proc/self/status'),
	// The kernel's files
	perl(
		'proc-02 open core_pattern for writing',
		'print "ESCAPED" if open(F, "+<", "/proc/sys/kernel/core_pattern")',
		'root',
	),
	perl(
		'open any file of /proc/sys for writing',
		'for my $d (qw(kernel vm fs net/core user debug)) { for my $f (glob "/proc/sys/$d/*") { next unless -f $f; print "ESCAPED" and exit if open(F, "+<", $f) } }',
		'root',
	),
	perl(
		'open /proc/irq for writing',
		'for my $f (glob "/proc/irq/*/smp_affinity /proc/irq/default_smp_affinity") { print "ESCAPED" and exit if sysopen(F, $f, 1) }',
		'root',
	),
	when(
		'write of /sys',
		'[ -w /sys/kernel/mm/transparent_hugepage/enabled ] || [ -w /sys/kernel/uevent_helper ] || [ -w /sys/kernel/profiling ]',
		'root',
	),
	perl(
		'open a control group file for writing',
		'for my $f (glob "/sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/cgroup.procs") { print "ESCAPED" and exit if sysopen(F, $f, 1) }',
		'root',
	),
	when('read of /proc/keys', 'grep -q . /proc/keys'),
	when('device files of disks and the kernel log', '[ -e /dev/kmsg ]'),
	// Mounts and namespaces
	when('mount a file system', 'mount -t tmpfs none "$R/mnt" && umount "$R/mnt"', 'root'),
	when('bind over a protected file', 'mount --bind "$R/f.txt" "$R/.envrc" && umount "$R/.envrc"', 'root'),
	when('unshare a user namespace', 'unshare -U true'),
	when('unshare a mount namespace', 'unshare -m true', 'root'),
	when('bubblewrap in the sandbox', 'bwrap --ro-bind / / --unshare-user true'),
	perl(
		'proc-05 clone with a new user namespace',
		'my $r = syscall(56, 0x10000011, 0, 0, 0, 0); if ($r == 0) { syscall(231, 0) } print "ESCAPED" if $r > 0',
	),
	call('clone3', '435, 0, 0', 'any', 38),
	call('setns', '308, -1, 0'),
	call('open_tree', '428, -100, "/", 0'),
	call('fsopen', '430, "tmpfs", 0', 'root'),
	call('fspick', '433, -100, "/", 0', 'root'),
	call('fsconfig', '431, -1, 0, 0, 0, 0'),
	call('fsmount', '432, -1, 0, 0', 'root'),
	call('move_mount', '429, -1, "x", -1, "x", 0', 'root'),
	call('mount_setattr', '442, -1, "x", 0, 0, 0'),
	call('chroot', '161, "/"', 'root'),
	call('pivot_root', '155, 0, 0', 'root'),
	call('name_to_handle_at', '303, -100, "/", 0, 0, 0'),
	call('open_by_handle_at', '304, -1, 0, 0', 'root'),
	// Other doors of the kernel
	perl(
		'proc-10 ptrace of a child',
		'my $p = fork; if (!$p) { sleep 5; exit } my $r = syscall(101, 16, $p, 0, 0); print "ESCAPED" if $r == 0; kill 9, $p',
	),
	call('process_vm_readv', '310, $$, 0, 0, 0, 0, 0'),
	call('process_vm_writev', '311, $$, 0, 0, 0, 0, 0'),
	call('pidfd_getfd', '438, -1, 0, 0'),
	call('kcmp', '312, $$, $$, 0, 0, 0'),
	call('proc-24 keyctl', '250, 0, -3, 0'),
	call('add_key', '248, "user", "x", "y", 1, -2'),
	call('request_key', '249, "user", "nothing-here", 0, 0'),
	call('bpf', '321, 99, 0, 0', 'root'),
	call('userfaultfd', '323, 1'),
	call('perf_event_open', '298, 0, 0, -1, -1, 0'),
	call('proc-11 io_uring_setup', '425, 1, 0'),
	call('io_uring_enter', '426, -1, 0, 0, 0, 0, 0'),
	call('io_uring_register', '427, -1, 0, 0, 0'),
	call('kexec_load', '246, 0, 999, 0, 0', 'root'),
	call('init_module', '175, 0, 0, 0', 'root'),
	call('finit_module', '313, -1, 0, 0', 'root'),
	call('delete_module', '176, "nothing-here", 0', 'root'),
	call('swapon', '167, "/nothing-here", 0', 'root'),
	call('acct', '163, "/nothing-here"', 'root'),
	call('syslog', '103, 10, 0, 0', 'root'),
	call('iopl', '172, 0'),
	call('ioperm', '173, 0, 1, 0'),
	call('modify_ldt', '154, 0, 0, 0'),
	perl('proc-09 x32 system call', 'syscall(0x40000000 + 39); print "ESCAPED"'),
	when('proc-09 i386 system call', '"$R/i386"; [ $? = 42 ]'),
	shell(
		'TIOCSTI',
		`script -qec 'perl -e "my \\$c = qq(x); print qq(ESC), qq(APED) if syscall(16, 0, 0x5412, \\$c) == 0"' /dev/null`,
	),
	shell(
		'proc-07 TIOCSTI with high bits',
		`script -qec 'perl -e "my \\$c = qq(x); print qq(ESC), qq(APED) if syscall(16, 0, 0x5412 | (1 << 32), \\$c) == 0"' /dev/null`,
	),
	// Network and sockets
	shell('net-24 loopback service of the host', 'exec 3<>/dev/tcp/127.0.0.1/$PORT && head -1 <&3'),
	perl(
		'net-02 datagram to a resolver of the host',
		'use Socket; alarm 1; socket(S, AF_INET, SOCK_DGRAM, 0); send(S, "q", 0, pack_sockaddr_in($ENV{UDPPORT}, inet_aton("127.0.0.1"))); recv(S, my $b, 99, 0); print $b',
	),
	unixClient('abstract socket', '"\\0$ENV{ABSTRACT}"'),
	unixClient('proc-16 Unix socket in /tmp', '$ENV{HOSTSOCK}'),
	unixClient('Unix socket in the home', '"$ENV{H}/agent.sock"'),
	unixClient('Unix socket in the root', '"$ENV{R}/dev.sock"'),
	unixClient('Unix socket deep in the root', '"$ENV{R}/sub/deep.sock"'),
	perl('packet socket', 'print "ESCAPED" if socket(S, 17, 3, 0)', 'root'),
	perl('proc-19 netlink beyond routes', 'print "ESCAPED" if socket(S, 16, 3, 15)'),
	when('interfaces of the host', '[ "$(grep -c : /proc/net/dev)" -gt 1 ]'),
	reads('file of others in /tmp', '/tmp/garuda-$MARK.txt'),
	reads('file of others in /var/tmp', '/var/tmp/garuda-$MARK.txt'),
	reads('file of others in /dev/shm', '/dev/shm/garuda-$MARK.txt'),
	when('content of /run', 'ls -A /run | grep -q .'),
	// Environment
	...[
		'ANTHROPIC_API_KEY',
		'OPENAI_API_KEY',
		'AWS_SECRET_ACCESS_KEY',
		'GITHUB_TOKEN',
		'NODE_OPTIONS',
		'npm_config_script_shell',
		'GIT_SSH_COMMAND',
		'GIT_CEILING_DIRECTORIES',
		'LD_LIBRARY_PATH',
		'SSH_AUTH_SOCK',
		'DBUS_SESSION_BUS_ADDRESS',
		'DOCKER_HOST',
		'PROMPT_COMMAND',
		'PYTHONSTARTUP',
		'PERL5OPT',
	].map((name) => when(`env-06 variable ${name}`, `[ -n "$${name}" ]`)),
]
