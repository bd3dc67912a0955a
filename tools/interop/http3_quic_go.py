"""Runs the client in quic-go against the program: `http3_quic_go.py PROGRAM CLIENT`."""

import signal
import subprocess
import sys

from h3_client import DEADLINE, certificate, free_port, origin, running

CONFIG = """
global
 nbthread 2
 cluster-secret shared
defaults
 mode http
 timeout client 60s
 timeout server 60s
 timeout connect 5s
frontend tcp
 bind 127.0.0.1:{port} ssl crt {crt}
 http-request return status 204
frontend web
 bind quic4@127.0.0.1:{port} ssl crt {crt}
 default_backend origin
frontend early
 bind quic4@127.0.0.1:{early} ssl crt {crt} allow-0rtt
 http-request return status 200 content-type text/plain lf-string "%[ssl_fc_early_rcvd]"
backend origin
 server s 127.0.0.1:{origin}
"""


def reset(client, command, port):
    """After a crash, the next process with the same secret resets the client's connection."""
    with running(command, port) as process:
        with_pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        waiting = subprocess.Popen(client, **with_pipes)
        try:
            assert waiting.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGKILL)
            process.wait(DEADLINE)
            with running(command, port):
                waiting.communicate(b"\n", DEADLINE)
            assert waiting.returncode == 0
        finally:
            waiting.kill()


def main():
    program, client = sys.argv[1:]
    port, early = free_port(), free_port()
    with certificate() as crt:
        config = f"{crt}.cfg"
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(port=port, early=early, crt=crt, origin=origin()))
        command = [program, "-db", "-f", config]
        with running(command, port):
            subprocess.run([client, f"127.0.0.1:{port}", f"127.0.0.1:{early}"], check=True, timeout=2 * DEADLINE)
        reset([client, "reset", f"127.0.0.1:{port}"], command, port)


main()
