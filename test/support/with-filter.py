"""with-filter.py FILTER PROGRAM ARGS…: runs a program under a seccomp filter, as systemd does.

FILTER is a JSON array of the permitted system calls. Any other call ends the process with SIGSYS. libseccomp is the library
with which systemd builds its filters; the program `systemd` of Debian depends on it.
"""
import ctypes
import json
import os
import sys

KILL_PROCESS, ALLOW = 0x80000000, 0x7FFF0000
permitted = json.loads(sys.argv[1])

seccomp = ctypes.CDLL('libseccomp.so.2')
seccomp.seccomp_init.restype = ctypes.c_void_p
context = ctypes.c_void_p(seccomp.seccomp_init(ctypes.c_uint32(KILL_PROCESS)))
for name in permitted:
    number = seccomp.seccomp_syscall_resolve_name(name.encode())
    # Below 0: this architecture does not have the call.
    if number >= 0 and seccomp.seccomp_rule_add(context, ctypes.c_uint32(ALLOW), number, 0) != 0:
        sys.exit(f'{name} cannot be permitted')
# Also sets no_new_privs, without which only root may install a filter.
if seccomp.seccomp_load(context) != 0:
    sys.exit('The kernel does not take the filter.')
os.execvp(sys.argv[2], sys.argv[2:])
