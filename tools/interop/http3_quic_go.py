"""Runs the client in quic-go against the program: `http3_quic_go.py PROGRAM CLIENT`."""

import subprocess
import sys

from h3_client import DEADLINE, certificate, free_port, origin, running

CONFIG = """
global
 nbthread 2
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


def main():
    program, client = sys.argv[1:]
    port, early = free_port(), free_port()
    with certificate() as crt:
        config = f"{crt}.cfg"
        with open(config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(port=port, early=early, crt=crt, origin=origin()))
        with running([program, "-db", "-f", config], port):
            subprocess.run([client, f"127.0.0.1:{port}", f"127.0.0.1:{early}"], check=True, timeout=2 * DEADLINE)


main()
