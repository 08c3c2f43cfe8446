#!/usr/bin/env bash
# READY=1 and STATUS=1 → 2, to systemd
#
# sd_notify(3): the text of STATUS is UTF-8; and an address in NOTIFY_SOCKET that begins with @ is one without a file.
# Guess: a library sends the text in UTF-8, and fails aloud if it cannot.
# Seen: sdnotify 0.3.2 (Python) encodes in Latin-1: it sends ö as one byte, which is no UTF-8, and drops the whole
# notification with →, READY=1 with it, without an error. systemd-watchdog 1.0.1 and sd-notify 0.1.0 (Python) send UTF-8; the
# second takes @ for a part of a path, and fails.
# A service whose status has an arrow is never ready, and systemd ends it when its time to start is over.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

pip_install sdnotify==0.3.2 systemd-watchdog==1.0.1 sd-notify==0.1.0
cat >notify.py <<'PY'
import os, socket, sys

library, address, status = sys.argv[1:]
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(address.replace("@", "\0"))
receiver.setblocking(False)
os.environ["NOTIFY_SOCKET"] = address
try:
    if library == "sdnotify":
        import sdnotify
        sdnotify.SystemdNotifier().notify("READY=1\nSTATUS=" + status)
    else:
        if library == "systemd-watchdog":
            from systemd_watchdog import WatchDog as Notifier
        else:
            from sd_notify import Notifier
        notifier = Notifier()
        notifier.ready()
        notifier.status(status)
except OSError as error:
    print(error)
received = []
try:
    while True:
        received += receiver.recv(1000).split(b"\n")
except BlockingIOError:
    print(*(str(line)[2:-1] for line in received if line))
if address[0] != "@":
    os.unlink(address)
PY
notify() {
    v/bin/python notify.py "$@" | paste -sd ' ' | sed 's/ $//'
}
abstract=@finding-$$
seen 'sdnotify: ok' 'READY=1 STATUS=ok' "$(notify sdnotify socket ok)"
seen 'sdnotify: schön' 'READY=1 STATUS=sch\xf6n' "$(notify sdnotify socket schön)"
seen 'sdnotify: 1 → 2' '' "$(notify sdnotify socket '1 → 2')"
seen 'sdnotify: @' 'READY=1 STATUS=ok' "$(notify sdnotify $abstract ok)"
for library in systemd-watchdog sd-notify; do
    seen "$library: schön" 'READY=1 STATUS=sch\xc3\xb6n' "$(notify $library socket schön)"
    seen "$library: 1 → 2" 'READY=1 STATUS=1 \xe2\x86\x92 2' "$(notify $library socket '1 → 2')"
done
seen 'systemd-watchdog: @' 'READY=1 STATUS=ok' "$(notify systemd-watchdog $abstract ok)"
seen 'sd-notify: @' '[Errno 2] No such file or directory' "$(notify sd-notify $abstract ok)"
