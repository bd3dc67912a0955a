//! Bodies that are made while they leave: statistics in each of their forms, and what Prometheus reads. A part is made when the one
//! before it has left, so that memory stays small and a worker does not stay with it for long.

use net::Now;
use stats::page::{self, Facts, Links, Outcome, Table};
use stats::{Kind, Row, csv, json, typed};

use super::export::Export;
use super::{Cursor, Selection, View};
use crate::ids::ProxyId;
use crate::running::Running;
use crate::shared::{ServerTables, Shared};

/// Bytes of a part, about.
const PART_BYTES: usize = 16 << 10;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    maker: Maker,
    part: String,
    sent: usize,
    is_over: bool,
}

/// What makes a body.
#[derive(Clone, Debug)]
pub(crate) enum Maker {
    Dump(Box<Dump>),
    Export(Box<Export>),
}

impl Made {
    pub fn new(maker: Maker) -> Made {
        Made {
            maker,
            part: String::new(),
            sent: 0,
            is_over: false,
        }
    }

    /// What is made and has not left.
    pub fn rest(&self) -> &[u8] {
        &self.part.as_bytes()[self.sent..]
    }

    /// So many bytes of it have left.
    pub fn leave(&mut self, bytes: usize) {
        self.sent += bytes;
    }

    /// Everything is made.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Makes the next part; nothing of the one before is left.
    pub fn make(&mut self, running: &Running, shared: &Shared, now: Now) {
        self.part.clear();
        self.sent = 0;
        let servers = shared.server_tables();
        while !self.is_over && self.part.len() < PART_BYTES {
            self.is_over = match &mut self.maker {
                Maker::Dump(dump) => dump.step((running, shared, &servers, now), &mut self.part),
                Maker::Export(export) => {
                    let view = View {
                        running,
                        shared,
                        servers: &servers,
                        now,
                        legends: false,
                    };
                    export.step(&view, &mut self.part)
                }
            };
        }
    }

    /// The whole of it, where it fits a part.
    pub fn into_whole(self) -> Result<Vec<u8>, Made> {
        match self.is_over {
            true => Ok(self.part.into_bytes()),
            false => Err(self),
        }
    }
}

/// The forms of statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Page,
    Csv,
    Typed,
    Json,
    Schema,
}

impl Form {
    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Form::Page => "text/html",
            Form::Csv | Form::Typed => "text/plain",
            Form::Json | Form::Schema => "application/json",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begins,
    /// Whether a row was written before.
    Goes(bool),
}

/// Statistics on their way to a client.
#[derive(Clone, Debug)]
pub(crate) struct Dump {
    pub form: Form,
    pub selection: Selection,
    /// The proxy whose page it is.
    pub proxy: ProxyId,
    pub links: Links,
    pub outcome: Option<Outcome>,
    /// Servers can be changed.
    pub is_admin: bool,
    cursor: Cursor,
    state: State,
    /// The proxy whose table is open.
    open: Option<usize>,
}

impl Dump {
    pub fn new(form: Form, selection: Selection, proxy: ProxyId, links: Links) -> Dump {
        Dump {
            form,
            selection,
            proxy,
            links,
            outcome: None,
            is_admin: false,
            cursor: Cursor::default(),
            state: State::Begins,
            open: None,
        }
    }

    /// Writes the next piece; whether it was the last.
    fn step(
        &mut self,
        (running, shared, servers, now): (&Running, &Shared, &ServerTables, Now),
        out: &mut String,
    ) -> bool {
        let page = running.proxy(self.proxy).stats.as_deref();
        let view = View {
            running,
            shared,
            servers,
            now,
            legends: page.is_some_and(|page| page.shows_legends),
        };
        let follows = match self.state {
            State::Begins => {
                self.state = State::Goes(false);
                return self.begin(&view, out);
            }
            State::Goes(follows) => follows,
        };
        let Some((place, row)) = self.cursor.next(&view, &self.selection) else {
            self.end(&view, out);
            return true;
        };
        self.row(&view, place, &row, follows, out);
        self.state = State::Goes(true);
        false
    }

    fn begin(&self, view: &View<'_>, out: &mut String) -> bool {
        match self.form {
            Form::Page => self.head(view, out),
            Form::Csv => csv::header(out),
            Form::Typed => {}
            Form::Json => out.push('['),
            Form::Schema => out.push_str(&json::schema()),
        }
        self.form == Form::Schema
    }

    fn head(&self, view: &View<'_>, out: &mut String) {
        let config = &view.running.config;
        let Some(settings) = view.running.proxy(self.proxy).stats.as_deref() else {
            return;
        };
        let process = &view.running.process;
        let activity = view.shared.activity(view.now.ms());
        let node = settings.node.as_ref().map(|own| match own {
            Some(own) => own.to_string(),
            None => config
                .global
                .node
                .clone()
                .unwrap_or_else(|| process.hostname.clone()),
        });
        let description = settings.description.as_ref().and_then(|own| match own {
            Some(own) => Some(own.to_string()),
            None => config.global.description.as_ref().map(ToString::to_string),
        });
        let product = match settings.shows_version {
            true => concat!("Spangate ", env!("CARGO_PKG_VERSION")),
            false => "Spangate",
        };
        let uptime_ns = view.now.mono_ns.saturating_sub(process.started.mono_ns);
        page::head(
            &Facts {
                product,
                node: node.as_deref(),
                description: description.as_deref(),
                pid: process.pid,
                uptime_s: uptime_ns / 1_000_000_000,
                connections: view.shared.clients(),
                maxconn: config.global.maxconn.unwrap_or(0),
                connection_rate: activity.connection_rate,
                requests: activity.requests,
                threads: process.nbthread,
                links: self.links.clone(),
                outcome: self.outcome,
            },
            out,
        );
    }

    fn row(
        &mut self,
        view: &View<'_>,
        place: usize,
        row: &Row<'_>,
        follows: bool,
        out: &mut String,
    ) {
        match self.form {
            Form::Csv => csv::row(row, out),
            Form::Typed => typed::row(row, false, out),
            Form::Json => {
                if follows {
                    out.push(',');
                }
                json::row(row, out);
            }
            Form::Schema => {}
            Form::Page => {
                if self.open != Some(place) {
                    self.close(view, out);
                    self.open = Some(place);
                    self.with_table(view, place, |table| page::begin(table, out));
                }
                let selectable = row.kind == Kind::Server && self.is_admin;
                page::row(row, selectable, None, out);
            }
        }
    }

    /// Ends the table that is open.
    fn close(&self, view: &View<'_>, out: &mut String) {
        if let Some(place) = self.open {
            self.with_table(view, place, |table| page::end(table, out));
        }
    }

    fn with_table(&self, view: &View<'_>, place: usize, with: impl FnOnce(&Table<'_>)) {
        let proxy = &view.running.config.proxies[place];
        let form = format!("{}{}", self.links.uri, self.links.options);
        let settings = view.running.proxy(self.proxy).stats.as_deref();
        let shows = settings.is_some_and(|settings| settings.description.is_some());
        let description = proxy.description.as_ref().filter(|_| shows);
        let description = description.map(ToString::to_string);
        let has_servers = view.servers.servers(place).next().is_some();
        with(&Table {
            name: &proxy.name,
            iid: proxy.id,
            description: description.as_deref(),
            form: (self.is_admin && has_servers).then_some(form.as_str()),
            percentiles: false,
        });
    }

    fn end(&self, view: &View<'_>, out: &mut String) {
        match self.form {
            Form::Page => {
                self.close(view, out);
                page::foot(out);
            }
            Form::Json => out.push_str("]\n"),
            Form::Csv | Form::Typed | Form::Schema => {}
        }
    }
}
