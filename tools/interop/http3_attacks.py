"""Attacks over QUIC and HTTP/3: `http3_attacks.py PROGRAM [--beside HAPROXY] [--only NAMES]`.

Without `--beside`, the attacks are short, and what must hold is asserted: a good client is served meanwhile, memory
is bounded, nothing is left afterwards, and little is sent to addresses that are not validated. With `--beside`, the
attacks are longer, both proxies get the same packets, and a table in Markdown tells what they cost.
"""

import argparse
import dataclasses
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable

import h3_attacks as quic
import h3_stream_attacks as http
from h3_attacks import Field
from h3_hostile import initials
from h3_measures import Helpers, Proxy, certificate, measured

# Of clients and of handshakes, and without packets, seconds.
TIMEOUT = 2
# After this time, a proxy has forgotten clients that have vanished, seconds.
FORGOTTEN = 12
# A good client beside an attack waits at most so long, seconds.
WAIT_MAX = 2

# With `--beside`.
RUNS = 3
# Seconds between the end of an attack and the last look.
AFTER = 5

# The most bytes for each one of an address that is not validated (RFC 9000 section 8).
AMPLIFICATION_MAX = 3


@dataclasses.dataclass
class Attack:
    """An attack, and what it may cost when it is short."""

    run: Callable
    # In the table, and in the short run.
    units: int
    short: int
    # Growth of the resident memory in the short run.
    growth_kib_max: int
    # How many bytes may be sent for each received one. Clients that have shown their addresses get downloads.
    amplification_max: int = sys.maxsize
    settings: str = ""
    options: str = ""

    @property
    def name(self):
        kind = "force-retry" if self.options else self.settings.split()[-1] if self.settings else ""
        return self.run.__name__ + (f" ({kind})" if kind else "")


SPOOFED = {"amplification_max": AMPLIFICATION_MAX}
NO_RETRY = {"settings": "tune.quic.fe.sec.retry-threshold 100000"}
ATTACKS = [
    Attack(quic.nothing, 1, 1, 4096),
    Attack(quic.hellos, 20_000, 500, 8192, **SPOOFED),
    Attack(quic.hellos, 20_000, 500, 4096, options="quic-force-retry", **SPOOFED),
    Attack(quic.hellos, 2000, 500, 32768, **NO_RETRY, **SPOOFED),
    Attack(quic.bad_tags, 20_000, 500, 4096, **SPOOFED),
    Attack(quic.short_hellos, 20_000, 500, 4096, amplification_max=0),
    Attack(quic.unknown_versions, 20_000, 500, 4096, amplification_max=1),
    Attack(quic.garbage, 20_000, 1000, 4096, amplification_max=1),
    Attack(quic.short_headers, 20_000, 1000, 4096, amplification_max=1),
    Attack(quic.truncated, 4000, 400, 4096),
    Attack(quic.repeated, 10_000, 500, 4096),
    Attack(quic.shuffled, 10_000, 500, 4096),
    Attack(quic.replayed, 1000, 200, 4096, **SPOOFED),
    Attack(quic.handshakes, 300, 30, 8192),
    Attack(http.partial_heads, 2000, 200, 8192),
    Attack(http.rapid_resets, 5000, 500, 8192),
    Attack(http.stopped_streams, 5000, 500, 8192),
    Attack(http.inserts, 2000, 200, 8192),
    Attack(http.blocked_sections, 1600, 160, 8192),
    Attack(http.large_heads, 200, 20, 8192),
    Attack(http.huffman_bombs, 1000, 100, 8192),
    Attack(http.index_bombs, 1000, 100, 8192),
    Attack(quic.new_connection_ids, 8000, 400, 4096),
    Attack(quic.retired_connection_ids, 2000, 200, 4096),
    Attack(quic.path_challenges, 8000, 400, 4096),
    Attack(quic.pings, 8000, 400, 4096),
    Attack(quic.credit, 4000, 200, 4096),
    Attack(quic.tiny_stream_frames, 8000, 400, 8192),
    Attack(quic.packed_stream_frames, 2000, 200, 8192),
    Attack(quic.crypto_gaps, 2000, 200, 8192),
    Attack(quic.optimistic_acks, 8000, 400, 4096),
    Attack(quic.ack_ranges, 4000, 200, 8192),
    Attack(http.small_windows, 8000, 400, 8192),
    Attack(http.unread_downloads, 64, 16, 8192),
    Attack(http.many_unread_downloads, 400, 100, 8192),
    Attack(http.slow_uploads, 8000, 400, 8192),
    Attack(http.empty_data, 4000, 200, 8192),
    Attack(http.priority_updates, 4000, 200, 8192),
    Attack(http.unknown_frames, 4000, 200, 8192),
    Attack(http.many_settings, 1000, 100, 8192),
]


class Short:
    """Each attack for a moment, and what must hold."""

    def __init__(self, program, folder, helpers, hellos):
        self.program, self.folder, self.helpers, self.hellos = program, folder, helpers, hellos

    def run(self, attacks):
        """Attacks with the same configuration have the same process."""
        kinds = dict.fromkeys((attack.settings, attack.options) for attack in attacks)
        for settings, options in kinds:
            proxy = Proxy(self.program, self.folder, self.helpers.origin, TIMEOUT, settings, options)
            with proxy:
                # What the first client costs is no attack's.
                with self.helpers.good_client(proxy.port):
                    time.sleep(0.3)
                for attack in attacks:
                    if (attack.settings, attack.options) == (settings, options):
                        self.attack(proxy, attack)
                self.nothing_is_left(proxy)

    def attack(self, proxy, attack):
        field = Field(proxy.port, attack.short, self.hellos)
        cost, _ = measured(self.helpers, proxy, lambda: attack.run(field))
        told = f"{attack.name}: {cost}, {field.done} units, ended with {field.ends}"
        assert proxy.process.poll() is None, told
        assert cost.good.answered > 1 and cost.good.failed == 0 and cost.good.is_served_after, told
        assert cost.good.worst < WAIT_MAX, told
        assert cost.peak_kib <= attack.growth_kib_max, told
        assert field.received_bytes <= attack.amplification_max * field.sent_bytes, (told, field.received_bytes)

    def nothing_is_left(self, proxy):
        """Clients that have vanished are forgotten."""
        end = time.monotonic() + FORGOTTEN
        while left := proxy.connections():
            assert time.monotonic() < end, f"{left} connections are left"
            time.sleep(0.1)
        lines = dict(line.split(": ", 1) for line in proxy.command("show info").splitlines() if ": " in line)
        assert lines["Panics"] == "0" and int(lines["CurrConns"]) == 0, lines
        assert int(lines["CurrSslConns"]) == 0, lines


class Beside:
    """Each attack on both proxies by turns."""

    def __init__(self, programs, folder, helpers, hellos):
        self.programs, self.folder, self.helpers, self.hellos = programs, folder, helpers, hellos
        # CPU seconds per second that the good client alone costs, by program.
        self.idle = {}

    def run(self, attacks):
        print("| attack | units | CPU/unit, us | | peak, KiB | | after, KiB | | connections left | |", end="")
        print(" good: answered (failed) | | worst, ms | | bytes out/in | | closed | |")
        print("|---|--:|" + "--:|" * 16)
        for attack in attacks:
            results = [[], []]
            watchers = []
            for _ in range(RUNS):
                for place, program in enumerate(self.programs):
                    results[place].append(self.once(attack, program, watchers))
            for watcher in watchers:
                watcher.join()
            if attack.run.__name__ == "nothing":
                for program, runs in zip(self.programs, results, strict=True):
                    self.idle[program] = statistics.median(cost.cpu / cost.seconds for cost, _ in runs)
            print(self.row(attack, results), flush=True)

    def once(self, attack, program, watchers):
        """Attacks a new process. Somebody looks at it once more some time after the attack, and ends it."""
        proxy = Proxy(program, self.folder, self.helpers.origin, TIMEOUT, attack.settings, attack.options)
        proxy.__enter__()
        with self.helpers.good_client(proxy.port):
            time.sleep(0.3)
        field = Field(proxy.port, attack.units, self.hellos)
        cost, memory = measured(self.helpers, proxy, lambda: attack.run(field))
        cost.cpu -= cost.seconds * self.idle.get(program, 0)

        def watch():
            time.sleep(AFTER)
            if proxy.process.poll() is None:
                cost.after_kib = proxy.memory("VmRSS") - memory
                cost.left = proxy.connections()
            proxy.__exit__(None, None, None)

        watchers.append(threading.Thread(target=watch))
        watchers[-1].start()
        return cost, field

    def row(self, attack, results):
        """What the runs have cost, as medians, for both proxies."""

        def both(value, text="{:.0f}"):
            values = [statistics.median(value(cost, field) for cost, field in runs) for runs in results]
            return " | ".join(text.format(one) for one in values)

        good = [
            f"{statistics.median(cost.good.answered for cost, _ in runs):.0f} "
            f"({sum(cost.good.failed for cost, _ in runs)})"
            for runs in results
        ]
        ends = [" ".join(f"{n}x{code:#x}" for code, n in runs[0][1].ends.items()) for runs in results]
        units = [statistics.median(field.done for _, field in runs) for runs in results]
        columns = [
            attack.name,
            f"{units[0]:.0f}" if units[0] == units[1] else f"{units[0]:.0f}/{units[1]:.0f}",
            both(lambda cost, field: 1e6 * cost.cpu / max(field.done, 1), "{:.1f}"),
            both(lambda cost, _: cost.peak_kib),
            both(lambda cost, _: cost.after_kib),
            both(lambda cost, _: cost.left),
            " | ".join(good),
            both(lambda cost, _: 1000 * cost.good.worst),
            both(lambda _, field: field.received_bytes / max(field.sent_bytes, 1), "{:.2f}"),
            " | ".join(ends),
        ]
        return "| " + " | ".join(columns) + " |"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("program")
    arguments.add_argument("--beside")
    arguments.add_argument("--only", help="names of attacks, with commas", type=lambda names: names.split(","))
    arguments = arguments.parse_args()
    attacks = [one for one in ATTACKS if not arguments.only or one.run.__name__ in arguments.only]
    with tempfile.TemporaryDirectory() as folder, Helpers() as helpers:
        certificate(folder)
        if arguments.beside:
            most = max(attack.units for attack in attacks)
            programs = [arguments.program, arguments.beside]
            Beside(programs, folder, helpers, initials(most)).run(attacks)
        else:
            most = max(attack.short for attack in attacks)
            Short(arguments.program, folder, helpers, initials(most)).run(attacks)
            print("interop: HTTP/3 under attack: a good client is served, memory is bounded, nothing is left: ok")


if __name__ == "__main__":
    main()
