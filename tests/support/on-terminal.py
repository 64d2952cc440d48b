"""Runs a command on a pseudo-terminal of 60 columns, types the given keys, and prints what the terminal received.

Usage: on-terminal.py KEYS COMMAND [ARGUMENT ...]. The keys are typed when "[y/N] " is asked.
"""
import fcntl
import os
import pty
import struct
import sys
import termios

keys, command = sys.argv[1].encode(), sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 60, 0, 0))
    os.execv(command[0], command)
received = b""
while True:
    try:
        chunk = os.read(terminal, 4096)
    except OSError:
        break
    if not chunk:
        break
    received += chunk
    if keys and b"[y/N] " in received:
        os.write(terminal, keys)
        keys = b""
sys.stdout.buffer.write(received)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
