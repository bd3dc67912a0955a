//! TLS around connections that are not HTTP: data is forwarded unchanged, and each side ends
//! independently.

use crate::common;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use common::http::Wire as _;
use common::origin::Origin;
use common::tls::{Authority, secure};
use common::{DEFAULTS, Folder, Proxy, address, listener};

#[test]
fn tcp_passes_through_tls_on_both_sides() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let ca = folder.write("ca.pem", authority.pem());
    // All bytes of the client until its end, then the answer, then its own end.
    let origin = Origin::raw(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        all.reverse();
        stream.write_all(&all).unwrap();
        stream.close_write();
    });
    let (front, middle) = (listener(), listener());
    let config = format!(
        "{DEFAULTS}\n mode tcp\nlisten outer\n bind \"fd@${{FRONT}}\" ssl crt {crt}\n server s {} ssl verify required ca-file {ca} sni str(one.test)\n\
         listen inner\n bind \"fd@${{MIDDLE}}\" ssl crt {crt}\n server s {}\n",
        address(&middle),
        origin.at
    );
    let listeners = [("FRONT", &front), ("MIDDLE", &middle)];
    let proxy = Proxy::start_in(folder, &config, &listeners);
    for is_polite in [true, false] {
        let stream = TcpStream::connect(address(&front)).unwrap();
        let mut wire = secure(stream, &authority, "one.test");
        let bytes = common::pattern(300_000);
        wire.write_all(&bytes).unwrap();
        // The end with a TLS close, and without one.
        if is_polite {
            wire.conn.send_close_notify();
        }
        wire.flush().unwrap();
        if !is_polite {
            wire.close_write();
        }
        let mut back = Vec::new();
        wire.read_to_end(&mut back)
            .expect("its end by a word of TLS");
        back.reverse();
        assert!(back == bytes, "{is_polite}: {} bytes", back.len());
    }
    proxy.stop();
}
