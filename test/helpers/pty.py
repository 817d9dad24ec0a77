# A program on a pseudo-terminal: plays steps of "wait for this text, type that" and prints what came out and how it ended, as JSON.
import fcntl, json, os, select, signal, struct, sys, termios, time

job = json.load(sys.stdin)
pid, master = os.forkpty()
if pid == 0:
    os.chdir(job["cwd"])
    os.execve(job["argv"][0], job["argv"], job["env"])


def resize(rows, columns):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


resize(24, 100)
end = time.time() + job["seconds"]
output = b""
mark = 0
played = 0
status = None
closed = False
last = time.time()


def pump(seconds):
    """Reads what is there for so long; False when the program is gone."""
    global output, status, closed
    until = time.time() + seconds
    while True:
        if status is None:
            done, code = os.waitpid(pid, os.WNOHANG)
            if done:
                status = code
        if not closed:
            ready, _, _ = select.select([master], [], [], 0.01)
            if ready:
                try:
                    data = os.read(master, 65536)
                except OSError:
                    data = b""
                if data:
                    output += data
                    continue
                closed = True
        else:
            time.sleep(0.01)
        if status is not None:
            return False
        if time.time() >= until:
            return True


for step in job["steps"]:
    alive = True
    if "expect" in step:
        wanted = step["expect"].encode()
        while True:
            at = output.find(wanted, mark)
            if at >= 0:
                mark = at + len(wanted)
                break
            if not alive or time.time() > end:
                break
            alive = pump(0.02)
        if at < 0:
            break
    if "wait" in step:
        pump(step["wait"])
    if "resize" in step:
        resize(*step["resize"])
        os.kill(pid, signal.SIGWINCH)
    if step.get("hangup"):
        os.close(master)
        closed = True
    elif "send" in step and not closed:
        try:
            os.write(master, step["send"].encode())
        except OSError:
            pass
    played += 1
    last = time.time()

while status is None and time.time() < end:
    pump(0.05)
code = None
ended = time.time()
if status is None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
elif os.WIFEXITED(status):
    code = os.WEXITSTATUS(status)
else:
    code = 128 + os.WTERMSIG(status)
json.dump({"output": output.decode(errors="replace"), "code": code, "pid": pid, "played": played,
           "endedAfter": round((ended - last) * 1000)}, sys.stdout)
