//! What a cluster's API server says of the endpoints of a service.

use collector::run::k8s::{Fault, Lines};
use collector::run::send::K8sSlices;

/// A stream of events in pieces of some size, and the same as a list: whatever it is, hosts are
/// hosts, and the version can stand in a URL.
pub fn k8s_events(data: &[u8]) {
    let Some((size, data)) = data.split_first() else {
        return;
    };
    for by_hostname in [false, true] {
        let mut slices = K8sSlices::new(by_hostname);
        let _ = slices.list(data);
        let _ = follow(&mut slices, data, usize::from(*size) + 1);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        let mut texts = slices.hosts().chain(slices.version());
        assert!(texts.all(|text| text.len() <= 253 && text.bytes().all(is_plain)));
    }
}

fn follow(slices: &mut K8sSlices, data: &[u8], size: usize) -> Result<(), Fault> {
    let mut lines = Lines::default();
    for piece in data.chunks(size) {
        lines.push(piece);
        while let Some(line) = lines.line()? {
            assert!(!line.contains(&b'\n'));
            slices.event(&line)?;
        }
    }
    Ok(())
}
