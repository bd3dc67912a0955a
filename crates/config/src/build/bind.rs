//! `bind` lines, and `stats socket`, which takes the same options (manual §5.1).

use super::line::{Cursor, Line, Parse};
use super::tls::{self, TlsParser, bind::BindWords};
use super::{Shared, address, did_you_mean, tcp, values};
use crate::diagnostic::Severity;
use crate::keywords::{self, Places, bind::KEYWORDS, tls::OPTIONS};
use crate::model::{Bind, BindAddress, Mode, Proto, Proxy};

/// Parses one option of a bind line, after its name was taken.
pub type BindParser = fn(&mut Bind, &mut Cursor<'_>) -> Parse;

/// Parses the addresses at word `at` and the options after them. Returns one bind per address.
pub fn line(line: &Line<'_>, at: usize, shared: &mut Shared<'_>) -> Parse<Vec<Bind>> {
    let template = Template::new(shared);
    line_from(line, at, &template, shared)
}

/// The same for a frontend, whose lines may ask for QUIC.
pub fn frontend_line(line: &Line<'_>, at: usize, shared: &mut Shared<'_>) -> Parse<Vec<Bind>> {
    let template = Template {
        takes_quic: true,
        ..Template::new(shared)
    };
    line_from(line, at, &template, shared)
}

/// The settings from which bind lines start.
#[derive(Clone)]
pub struct Template {
    bind: Bind,
    words: BindWords,
    /// The lines may ask for QUIC.
    takes_quic: bool,
}

/// As [`line()`], with other initial settings.
pub fn line_from(
    line: &Line<'_>,
    at: usize,
    template: &Template,
    shared: &mut Shared<'_>,
) -> Parse<Vec<Bind>> {
    // A bad address is reported before a bad option.
    listen(line, at, shared)?;
    let mut template = template.clone();
    template.options(line, at + 1, shared)?;
    addresses(line, at, &template, shared)
}

/// One bind for each address in word `at`.
pub fn addresses(
    line: &Line<'_>,
    at: usize,
    template: &Template,
    shared: &mut Shared<'_>,
) -> Parse<Vec<Bind>> {
    let addresses = listen(line, at, shared)?;
    let Template {
        mut bind,
        mut words,
        takes_quic,
    } = template.clone();
    bind.origin = line.span(at).place();
    if addresses.iter().any(|listen| is_quic(&listen.address)) {
        let statement = line.texts(0)[..at].join(" ");
        let written = line.arg(at);
        if !takes_quic {
            let message = format!("'{statement} {written}' : there is no QUIC here.");
            return Err(line.fault(at, message));
        }
        if words.enable(line, at) {
            let message = format!(
                "'{statement} {written}' : QUIC protocol detected, enabling ssl. Use 'ssl' to shut this warning."
            );
            shared.settle(Err(line.fault(at, message).as_warning()));
        }
    }
    bind.tls = words.finish(line, line.arg(at), shared);
    let prefix = bind.guid.take();
    let numbered = addresses.into_iter().enumerate();
    Ok(numbered
        .map(|(number, listen)| {
            let mut bind = bind.clone();
            bind.address = listen.address;
            bind.guid = prefix.as_ref().map(|prefix| format!("{prefix}-{number}"));
            bind.tcp.multipath = listen.multipath;
            bind.quic.descriptor = listen.descriptor;
            bind
        })
        .collect())
}

fn is_quic(address: &BindAddress) -> bool {
    matches!(address, BindAddress::Quic(_))
}

/// Reports what bind lines with QUIC of a proxy cannot have.
pub fn check_quic(proxy: &Proxy, shared: &mut Shared<'_>) {
    let required = |bind: &&Bind| bind.quic.is_required && !is_quic(&bind.address);
    for bind in proxy.binds.iter().filter(required) {
        let message = format!(
            "frontend '{}' : MUX protocol 'quic' is not usable for the 'bind' without QUIC at [{}].",
            proxy.name, bind.origin
        );
        shared.diagnostics.add(Severity::Alert, None, message);
    }
    for bind in proxy.binds.iter().filter(|bind| is_quic(&bind.address)) {
        let (name, place) = (&proxy.name, &bind.origin);
        if bind.accept_proxy {
            let message = format!(
                "Binding [{place}] for frontend {name}: QUIC protocol does not support PROXY protocol yet. 'accept-proxy' option cannot be used with a QUIC listener."
            );
            shared.diagnostics.add(Severity::Alert, None, message);
        }
        let unusable = match bind.proto {
            Some(Proto::Tcp) => "none",
            Some(Proto::H1) => "h1",
            Some(Proto::H2) => "h2",
            None if proxy.mode != Mode::Http => "quic",
            None => continue,
        };
        let message = format!(
            "frontend '{name}' : MUX protocol '{unusable}' is not usable for the 'bind' of QUIC at [{place}]."
        );
        shared.diagnostics.add(Severity::Alert, None, message);
    }
}

fn listen(line: &Line<'_>, at: usize, shared: &Shared<'_>) -> Parse<Vec<address::Listen>> {
    let statement = line.texts(0)[..at].join(" ");
    let resolved = address::resolved(line, at, shared, &format!("'{statement}'"))?;
    address::binds(&resolved, &shared.unix_prefix)
        .map_err(|message| line.fault(at, format!("'{statement}' : {message}.")))
}

impl Template {
    /// The defaults of all bind lines.
    pub fn new(shared: &Shared<'_>) -> Template {
        Template {
            bind: shared.unix_template.clone(),
            words: shared.tls.bind.clone(),
            takes_quic: false,
        }
    }

    /// Reads the options of a line from word `at` on.
    pub fn options(&mut self, line: &Line<'_>, at: usize, shared: &mut Shared<'_>) -> Parse {
        let statement = line.texts(0)[..at].join(" ");
        let Template {
            bind: template,
            words,
            takes_quic: _,
        } = self;
        let mut cursor = Cursor { line: *line, at };
        while !cursor.peek().is_empty() {
            let word = cursor.take();
            let own = keywords::find(KEYWORDS, word);
            // As in HAProxy, a bad option ends the line, because the start of the next option is
            // unknown.
            match (own, tls::find(word, Places::BIND)) {
                (Some(keyword), _) => {
                    if let Some(parser) = shared.use_of(keyword, "bind", &mut cursor)? {
                        parser(template, &mut cursor)?;
                    }
                }
                (None, Some(keyword)) => match shared.use_of(keyword, "bind", &mut cursor)? {
                    Some(TlsParser::Shared(parser)) => {
                        parser(&mut words.words, &mut cursor, shared)?;
                    }
                    Some(TlsParser::Bind(parser)) => parser(words, &mut cursor, shared)?,
                    Some(TlsParser::Server(_) | TlsParser::Nothing) | None => {}
                },
                (None, None) => {
                    let shared_names = OPTIONS
                        .iter()
                        .filter(|row| row.places.intersects(Places::BIND));
                    let names = KEYWORDS.iter().map(|k| k.name);
                    let hint = did_you_mean(word, names.chain(shared_names.map(|k| k.name)));
                    return Err(
                        cursor.fault(format!("'{statement}' : unknown keyword '{word}'{hint}."))
                    );
                }
            }
        }
        Ok(())
    }
}

/// A bind line without options.
pub fn blank() -> Bind {
    Bind {
        address: BindAddress::Fd(-1),
        name: None,
        id: 0,
        maxconn: None,
        backlog: None,
        accept_proxy: false,
        v4v6: false,
        v6only: false,
        idle_ping: None,
        quic: crate::model::QuicBind::default(),
        interface: None,
        tfo: false,
        transparent: false,
        tcp: net::TcpOptions::default(),
        defer_accept: false,
        tls: None,
        proto: None,
        mss: None,
        tcp_ss: 0,
        mode: None,
        uid: None,
        gid: None,
        level: None,
        exposes_listeners: false,
        severity_output: None,
        is_removed: false,
        guid: None,
        origin: String::new(),
    }
}

/// Options without arguments.
macro_rules! switches {
    ($($name:ident)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(bind: &mut Bind, _cursor: &mut Cursor<'_>) -> Parse {
            bind.$name = true;
            Ok(())
        }
    )*};
}
switches!(accept_proxy defer_accept tfo transparent v4v6 v6only);

/// `guid-prefix`
pub fn guid_prefix(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.guid = Some(values::guid(cursor)?);
    Ok(())
}

/// `backlog`
pub fn backlog(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.backlog = Some(cursor.number(0..=i32::MAX as u32)?);
    Ok(())
}

/// `expose-fd`
pub fn expose_fd(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    match cursor.value("'listeners'")? {
        "listeners" => bind.exposes_listeners = true,
        _ => return Err(cursor.fault("'expose-fd' only supports 'listeners'.")),
    }
    Ok(())
}

/// `gid`
pub fn gid(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.gid = Some(cursor.number(0..=u32::MAX)?);
    Ok(())
}

/// `group`
pub fn group(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    let name = cursor.value("a group name")?;
    bind.gid = Some(
        values::group_id(name)
            .ok_or_else(|| cursor.fault(format!("'group' : '{name}' unknown group name.")))?,
    );
    Ok(())
}

/// `id`
pub fn id(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.id = cursor.number(1..=i32::MAX as u32)?;
    Ok(())
}

/// `idle-ping`
pub fn idle_ping(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.value("a time")?;
    let time = values::time(text)
        .map_err(|bad| cursor.fault(values::time_message(bad, text, "idle-ping")))?;
    bind.idle_ping = Some(time).filter(|time| !time.is_zero());
    Ok(())
}

/// `interface`
pub fn interface(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.interface = Some(cursor.value("an interface name")?.to_owned());
    Ok(())
}

/// `level`
pub fn level(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    match cursor.value("'user', 'operator' or 'admin'")? {
        word @ ("user" | "operator" | "admin") => bind.level = Some(word.to_owned()),
        _ => return Err(cursor.fault("'level' only supports 'user', 'operator', and 'admin'.")),
    }
    Ok(())
}

/// `maxconn`
pub fn maxconn(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.maxconn = Some(cursor.number(1..=i32::MAX as u32)?);
    Ok(())
}

/// `mode`, octal.
pub fn mode(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.value("an octal mode")?;
    let mode = u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o7777);
    bind.mode =
        Some(mode.ok_or_else(|| {
            cursor.fault(format!("'mode' expects an octal number (got '{text}')."))
        })?);
    Ok(())
}

/// `mss`
pub fn mss(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    let mss = cursor.number(-65535..=65535)?;
    if mss == 0 {
        return Err(
            cursor.fault("'mss' : expects an MSS with and absolute value between 1 and 65535.")
        );
    }
    bind.mss = Some(mss);
    Ok(())
}

/// `name`
pub fn name(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.name = Some(cursor.octets("a name")?);
    Ok(())
}

/// `proto`
pub fn proto(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.proto = values::proto(cursor)?;
    bind.quic.is_required = bind.proto.is_none();
    Ok(())
}

/// `severity-output`
pub fn severity_output(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    match cursor.value("'none', 'number' or 'string'")? {
        word @ ("none" | "number" | "string") => bind.severity_output = Some(word.to_owned()),
        _ => {
            return Err(
                cursor.fault("'severity-output' : expects one of 'none', 'number', or 'string'.")
            );
        }
    }
    Ok(())
}

/// `tcp-ss`
pub fn tcp_ss(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    let mode = cursor.take().parse().ok().filter(|mode| *mode <= 2);
    bind.tcp_ss = mode.ok_or_else(|| {
        cursor.fault("'tcp-ss' : TCP Save SYN option expects an integer argument from 0 to 2.")
    })?;
    Ok(())
}

/// `cc`
pub fn cc(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.tcp.congestion = Some(tcp::congestion(cursor)?);
    Ok(())
}

/// `namespace`
pub fn namespace(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.tcp.namespace = Some(tcp::namespace(cursor)?);
    Ok(())
}

/// `tcp-md5sig`
pub fn tcp_md5sig(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.tcp.md5_key = Some(tcp::md5_key(cursor)?);
    Ok(())
}

/// `tcp-ut`
pub fn tcp_ut(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.tcp.user_timeout_ms = tcp::user_timeout(cursor)?;
    Ok(())
}

/// `uid`
pub fn uid(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    bind.uid = Some(cursor.number(0..=u32::MAX)?);
    Ok(())
}

/// `user`
pub fn user(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    let name = cursor.value("a user name")?;
    bind.uid = Some(
        values::user_id(name)
            .ok_or_else(|| cursor.fault(format!("'user' : '{name}' unknown user name.")))?,
    );
    Ok(())
}
