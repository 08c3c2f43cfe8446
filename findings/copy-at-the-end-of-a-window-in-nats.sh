#!/usr/bin/env bash
# a message twice in a replicated stream of NATS, while one of three servers is stopped
#
# NATS, JetStream: a stream leaves out a message whose id it has had within its window for duplicates. Replicas agree on a log.
# Guess: the leader decides whether a message is a copy, and all replicas keep the same messages.
# Seen: with nats-server 2.9.10 of Debian 12, each replica decides when it comes to the message, by its own clock. One that was
# stopped when the window ended leaves out the copy that the others keep. It goes on, has fewer messages and counts behind the
# others; nothing in the answers of the servers says so, and a consumer at it gets other numbers for the same messages.
# A program for which the number of a message is a place that all know has to send its messages without ids.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

debian_install nats-server
root/usr/sbin/nats-server --version
cat >servers.py <<'PY'
import json, signal, socket, subprocess, time, urllib.request

def free():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]

ports = [(free(), free(), free()) for _ in range(3)]
routes = ",".join(f"nats://127.0.0.1:{route}" for _, route, _ in ports)

def start(number):
    client, route, page = ports[number]
    return subprocess.Popen(
        ["root/usr/sbin/nats-server", "-a", "127.0.0.1", "-p", str(client), "-n", str(number), "-js", "-sd", f"store{number}",
         "--cluster_name=c", f"--cluster=nats://127.0.0.1:{route}", f"--routes={routes}", f"--http_port={page}"],
        stderr=subprocess.DEVNULL)

class Client:
    def __init__(self, number):
        self.socket = socket.create_connection(("127.0.0.1", ports[number][0]), 5)
        self.file = self.socket.makefile("rb")
        self.file.readline()
        self.socket.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true}\r\nSUB in 1\r\n')

    def ask(self, subject, body, number=None):
        if number:
            head = f"NATS/1.0\r\nNats-Msg-Id: {number}\r\n\r\n"
            text = f"HPUB {subject} in {len(head)} {len(head) + len(body)}\r\n{head}{body}\r\n"
        else:
            text = f"PUB {subject} in {len(body)}\r\n{body}\r\n"
        self.socket.sendall(text.encode())
        while True:
            words = self.file.readline().split()
            if words[:1] == [b"PING"]:
                self.socket.sendall(b"PONG\r\n")
            elif words[:1] in ([b"MSG"], [b"HMSG"]):
                return json.loads(self.file.read(int(words[-1]) + 2))

def messages(number):
    """Of a server's own replica."""
    page = f"http://127.0.0.1:{ports[number][2]}/jsz?streams=1"
    with urllib.request.urlopen(page, timeout=5) as answer:
        [account] = json.load(answer)["account_details"]
    return account["stream_detail"][0]["state"]["last_seq"]

stream = {"name": "s", "subjects": ["a"], "num_replicas": 3, "storage": "file", "retention": "limits", "discard": "old",
          "max_msgs": -1, "max_bytes": -1, "max_age": 0, "max_consumers": -1, "duplicate_window": 1_000_000_000}
servers = [start(number) for number in range(3)]
try:
    for _ in range(60):
        try:
            if "error" not in Client(0).ask("$JS.API.STREAM.CREATE.s", json.dumps(stream)):
                break
        except (OSError, ValueError):
            pass
        time.sleep(1)
    time.sleep(1)
    leader = int(Client(0).ask("$JS.API.STREAM.INFO.s", "")["cluster"]["leader"])
    stopped, other = [number for number in range(3) if number != leader]
    client, differs = Client(leader), False
    for round in range(20):
        first = client.ask("a", "x", f"id{round}")
        time.sleep(0.2)
        servers[stopped].send_signal(signal.SIGSTOP)
        time.sleep(1.5)
        again = client.ask("a", "x", f"id{round}")
        servers[stopped].send_signal(signal.SIGCONT)
        time.sleep(1.5)
        assert again["seq"] == first["seq"] + 1, "the window was over"
        assert messages(other) == messages(leader), "nobody stopped this one"
        if messages(stopped) != messages(leader):
            differs = True
            break
    told = Client(0).ask("$JS.API.STREAM.INFO.s", "")["cluster"]
    replica = next(one for one in told["replicas"] if one["name"] == str(stopped))
    print("fewer" if differs else "as many", replica["current"], replica.get("lag", 0))
finally:
    for one in servers:
        one.kill()
PY
read -r messages current lag < <(python3 servers.py)
seen 'messages of the replica that was stopped' fewer "$messages"
seen 'the servers say that it is current' True "$current"
seen 'messages that it lacks, in their words' 0 "$lag"
