//! Cookies of requests: reads the server from the persistence cookie, hides the cookie from that
//! server, and implements `capture cookie`.

use config::model::{Cookie, CookieMode, Proxy};
use http::Name;

use super::pairs::{Pair, Pairs, is_blank};
use super::{OF_CLIENT, dates, next_field};
use crate::evaluation::Eval;
use crate::ids::ServerId;
use crate::runtime_config::RuntimeConfig;
use crate::shared::ServerTables;
use crate::stream::{Binding, Stream};

/// The separator between the server's value and the application's in mode `prefix`.
pub(super) const PREFIX_END: u8 = b'~';
/// The character before each date.
pub(super) const DATE_START: u8 = b'|';
/// How far a date may be in the future, seconds, to tolerate wrong clocks.
const FUTURE_S: u64 = 86_400;

/// Whether a proxy of the stream reads the cookies of requests.
#[inline]
pub(crate) fn watches_requests(runtime_config: &RuntimeConfig, stream: &Stream) -> bool {
    runtime_config.proxy(stream.backend).cookie.is_some()
        || runtime_config
            .proxy(stream.frontend)
            .capture_cookie
            .is_some()
}

/// Reads the cookies of a request, and changes them as the backend's `cookie` requires.
pub(crate) fn request_cookies(eval: &mut Eval<'_>, stream: &mut Stream) {
    let is_watched = watches_requests(eval.runtime_config, stream);
    if !is_watched || !stream.has_request() || !stream.request.has(Name::Cookie) {
        return;
    }
    let frontend = eval.runtime_config.proxy(stream.frontend);
    let backend = eval.runtime_config.proxy(stream.backend);
    let mut request = std::mem::take(&mut stream.request);
    let mut out = std::mem::take(eval.text);
    let watch = Watch {
        frontend,
        backend,
        servers: eval.servers,
        now_s: eval.now.wall_ns / 1_000_000_000,
        is_up: &|server| eval.ambient.shared.servers.is_up(server),
    };
    let mut from = None;
    while let Some(field) = next_field(&request, Name::Cookie, from) {
        from = Some(field);
        let line = request.field(field).map_or(&[][..], |(_, value)| value);
        let left = one_line(line, &watch, stream, &mut out);
        match left {
            Left::Same => {}
            Left::Nothing => request.remove(field),
            Left::Changed => request.set_value(field, &out),
        }
        out.clear();
    }
    *eval.text = out;
    stream.request = request;
}

/// The context for reading cookies.
struct Watch<'a> {
    frontend: &'a Proxy,
    backend: &'a Proxy,
    servers: &'a ServerTables,
    /// The current UNIX time, seconds.
    now_s: u64,
    is_up: &'a dyn Fn(ServerId) -> bool,
}

/// The result for a field.
enum Left {
    Same,
    Changed,
    Nothing,
}

/// Reads one field. If it changes, its new value is in `out`.
fn one_line(line: &[u8], watch: &Watch<'_>, stream: &mut Stream, out: &mut Vec<u8>) -> Left {
    let mut edit = Edit { copied: 0, out };
    // The start of a cookie that is to be removed, with its attributes.
    let mut hidden: Option<usize> = None;
    let mut others = false;
    for pair in Pairs::of_request(line) {
        // An RFC 2109 attribute of the previous cookie.
        if line.get(pair.name.0) == Some(&b'$') {
            continue;
        }
        if pair.has_value {
            capture(line, &pair, watch.frontend, stream);
        }
        let cookie = watch.backend.cookie.as_ref().filter(|cookie| {
            pair.has_value && line[pair.name.0..pair.name.1] == *cookie.name.as_bytes()
        });
        let Some(cookie) = cookie else {
            others = true;
            edit.hide(line, hidden.take(), pair.from);
            edit.tighten(line, &pair);
            continue;
        };
        let delimiter = read(line, &pair, cookie, watch, stream);
        match cookie.mode {
            CookieMode::Prefix if delimiter < pair.value.1 => {
                others = true;
                edit.tighten(line, &pair);
                edit.cut(line, pair.value.0, delimiter + 1);
                hidden = None;
            }
            CookieMode::Insert if cookie.indirect => {
                hidden.get_or_insert(pair.from);
            }
            _ => edit.tighten(line, &pair),
        }
    }
    match hidden {
        Some(_) if !others => return Left::Nothing,
        Some(at) => edit.cut(line, at, line.len()),
        None => {}
    }
    match edit.copied {
        0 => Left::Same,
        _ => {
            edit.out.extend_from_slice(&line[edit.copied..]);
            if edit.out.is_empty() {
                return Left::Nothing;
            }
            Left::Changed
        }
    }
}

/// Copies a line without some of its parts.
struct Edit<'a> {
    /// The line is copied or cut up to here; 0 where nothing was copied.
    copied: usize,
    out: &'a mut Vec<u8>,
}

impl Edit<'_> {
    fn cut(&mut self, line: &[u8], from: usize, to: usize) {
        self.out.extend_from_slice(&line[self.copied..from]);
        self.copied = to;
    }

    /// Removes the blanks beside the equal sign.
    fn tighten(&mut self, line: &[u8], pair: &Pair) {
        if pair.is_loose() {
            self.cut(line, pair.name.1, pair.equal);
            self.cut(line, pair.equal + 1, pair.value.0);
        }
    }

    /// Removes the text from a delimiter up to the next delimiter that stays, and puts one blank
    /// after that. At the line's start the delimiter is removed too.
    fn hide(&mut self, line: &[u8], from: Option<usize>, to: usize) {
        let Some(from) = from else { return };
        let blanks = line[to + 1..].iter().take_while(|byte| is_blank(**byte));
        let rest = to + 1 + blanks.count();
        if from == 0 {
            return self.cut(line, 0, rest);
        }
        let blanks = line[self.copied..from].iter().rev();
        let blanks = blanks.take_while(|byte| is_blank(**byte));
        self.cut(line, from - blanks.count(), rest);
        self.out.extend_from_slice(&[line[to], b' ']);
    }
}

/// `capture cookie`: captures the first cookie whose text begins with the configured prefix.
fn capture(line: &[u8], pair: &Pair, frontend: &Proxy, stream: &mut Stream) {
    let Some(capture) = &frontend.capture_cookie else {
        return;
    };
    let text = &line[pair.name.0..pair.value.1];
    let slot = &mut stream.txn.captured_request_cookie;
    if slot.get().is_none() && text.starts_with(capture.prefix.as_bytes()) {
        slot.set(&text[..text.len().min(capture.len)]);
    }
}

/// Reads the persistence cookie: binds the stream to the server that it names, and records the
/// cookie's state. Returns the end of the server's part of the value.
fn read(
    line: &[u8],
    pair: &Pair,
    cookie: &Cookie,
    watch: &Watch<'_>,
    stream: &mut Stream,
) -> usize {
    let now_s = watch.now_s;
    let (begin, end) = pair.value;
    let value = &line[begin..end];
    let find = |wanted: u8| value.iter().position(|byte| *byte == wanted);
    let mut length = value.len();
    if cookie.mode == CookieMode::Prefix {
        length = find(PREFIX_END).unwrap_or(length);
    } else if let Some(bar) = find(DATE_START) {
        length = bar;
        read_dates(&value[bar + 1..], stream);
    }
    let delimiter = begin + length;
    let persist = &mut stream.route.persist;
    let is_old = |date_s: u64, age_s: u32| {
        let (date, limit) = (date_s, u64::from(age_s));
        date > 0
            && limit > 0
            && (now_s.saturating_sub(date) > limit || date.saturating_sub(now_s) > FUTURE_S)
    };
    let expired = if is_old(persist.first_s, cookie.maxlife_s) {
        Some(b'O')
    } else if is_old(persist.last_s, cookie.maxidle_s) {
        Some(b'E')
    } else {
        None
    };
    if let Some(state) = expired {
        (persist.first_s, persist.last_s) = (0, 0);
        stream.mark_cookie(OF_CLIENT, state);
        return end;
    }
    // `use-server` or an earlier cookie may have chosen the server already.
    let passed_over = persist.ignored || stream.route.target.is_some();
    let server = &value[..length];
    let mut state = if passed_over { b'U' } else { b'I' };
    if !server.is_empty() && !passed_over {
        for (id, line) in watch.servers.of(stream.backend) {
            if line.cookie.as_deref() != Some(server) {
                continue;
            }
            let is_up = (watch.is_up)(id);
            state = if is_up { b'V' } else { b'D' };
            if is_up || watch.backend.options.persist || stream.route.persist.forced {
                stream.bind(id, Binding::Cookie);
                break;
            }
        }
    }
    // A cookie that binds or names a server that is down replaces the previous state; other states
    // only replace the initial one.
    if matches!(state, b'V' | b'D') || stream.txn.termination[OF_CLIENT] == b'N' {
        stream.mark_cookie(OF_CLIENT, state);
    }
    delimiter
}

/// `<last seen>[|<first seen>]`
fn read_dates(text: &[u8], stream: &mut Stream) {
    if let Some(last_s) = dates::read(text) {
        stream.route.persist.last_s = last_s;
    }
    let second = text.iter().position(|byte| *byte == DATE_START);
    if let Some(bar) = second
        && let Some(first_s) = dates::read(&text[bar + 1..])
    {
        stream.route.persist.first_s = first_s;
    }
}

#[cfg(test)]
mod tests {
    use config::model::CaptureCookie;

    use super::*;

    /// Small texts of what matters in a field, made from a number.
    fn line(mut number: u64) -> Vec<u8> {
        const PARTS: [&[u8]; 16] = [
            b"S", b"=", b";", b",", b" ", b"\"", b"\\", b"$", b"S=a", b"b=1", b"|", b"~", b"a",
            b"\t", b"\xff", b"; ",
        ];
        let mut line = Vec::new();
        while number > 0 {
            line.extend_from_slice(PARTS[(number % 16) as usize]);
            number /= 16;
        }
        line
    }

    fn backend(mode: CookieMode, indirect: bool) -> Proxy {
        Proxy {
            cookie: Some(Cookie {
                name: "S".into(),
                mode,
                indirect,
                maxidle_s: 10,
                ..Cookie::default()
            }),
            capture_cookie: Some(CaptureCookie {
                prefix: "b".into(),
                len: 2,
            }),
            ..Proxy::default()
        }
    }

    #[test]
    fn any_field_can_be_read() {
        for (mode, indirect) in [
            (CookieMode::Insert, true),
            (CookieMode::Insert, false),
            (CookieMode::Prefix, false),
            (CookieMode::Rewrite, false),
        ] {
            let proxy = backend(mode, indirect);
            let servers = ServerTables::default();
            for round in 0..60_000_u64 {
                let line = line(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (round % 48));
                let mut stream = Stream::lone();
                let mut out = Vec::new();
                let watch = Watch {
                    frontend: &proxy,
                    backend: &proxy,
                    servers: &servers,
                    now_s: 1000,
                    is_up: &|_| true,
                };
                let left = one_line(&line, &watch, &mut stream, &mut out);
                let text = String::from_utf8_lossy(&line).into_owned();
                assert!(out.len() <= line.len() + 1, "{text}");
                if mode == CookieMode::Insert && indirect {
                    let rest: &[u8] = match left {
                        Left::Same => &line,
                        Left::Changed => &out,
                        Left::Nothing => b"",
                    };
                    let ours =
                        |pair: Pair| pair.has_value && rest[pair.name.0..pair.name.1] == *b"S";
                    assert!(!Pairs::of_request(rest).any(ours), "{text}");
                }
            }
        }
    }
}
