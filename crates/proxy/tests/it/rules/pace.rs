//! Limits of new connections and sessions a second.

use super::script::play;

const GLOBAL: &str = "server one 127.0.0.1:81\nglobal\n";

#[test]
fn rates() {
    // Three at once, then as the second passes: the events of the one before fade out.
    let script = "accepts\nc1 connects\nc2 connects\naccepts\nc3 connects\nrefrains\nwait 900\nrefrains\nwait 500\naccepts";
    play("rate-limit sessions", "rate-limit sessions 3", script);
    for keyword in ["maxconnrate", "maxsessrate"] {
        let lines = format!("{GLOBAL}{keyword} 3\nbackend last");
        play(keyword, &lines, script);
    }
    play(
        "a slow one",
        "rate-limit sessions 1",
        "c1 connects\nrefrains\nwait 999\nrefrains\nwait 2001\naccepts\nc2 connects\nrefrains",
    );
    play(
        "a connection that is refused is no session",
        "rate-limit sessions 1\ntcp-request connection reject",
        "c1 gone\naccepts",
    );
    play(
        "but it is a connection",
        &format!("tcp-request connection reject\n{GLOBAL}maxconnrate 1\nbackend last"),
        "c1 gone\nrefrains\nwait 3000\naccepts",
    );
}
