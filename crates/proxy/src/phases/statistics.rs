//! The statistics page and the Prometheus exporter: responses that are generated while they are
//! sent.

use config::model::{REALM_DEFAULT, Service, StatsPage};
use http::{Method, Name};
use net::Driver;
use stats::page::Outcome;

use super::Cx;
use super::reply::Body;
use crate::ids::{ProxyId, RuleId};
use crate::rules::status::begin_response;
use crate::rules::{Outcome as Decision, RuleSet, Waiting};
use crate::runtime_config::deadline;
use crate::shared::{
    Admin, Cause as ChangeCause, Checker, FrontCount, OpState, ServerChange, ServerView, Shared,
};
use crate::statistics::export::{self, Export, Wanted};
use crate::statistics::generated_body::{Dump, Form, GeneratedBody, Maker};
use crate::statistics::request::{self, Asked};
use crate::stream::{RuleWait, Rules, Step, Stream};

/// The page loads nothing from other origins, runs no scripts, and cannot be framed.
const POLICY: &[u8] =
    b"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Whether a request is for a statistics page.
pub(crate) fn is_for_page(page: &StatsPage, stream: &Stream) -> bool {
    let is_method = matches!(stream.txn.method, Method::Get | Method::Head | Method::Post);
    let target = if page.uri.starts_with(b"/") {
        stream.request.path_and_query()
    } else {
        stream.request.target()
    };
    is_method && target.starts_with(&page.uri)
}

impl<D: Driver> Cx<'_, D> {
    /// Whether a request is for the statistics page of this proxy. Most proxies have none.
    #[inline(always)]
    pub(super) fn asks_statistics(&self, stream: &Stream, proxy: ProxyId) -> bool {
        match &self.runtime_config.proxy(proxy).stats {
            None => false,
            Some(page) => is_for_page(page, stream),
        }
    }

    /// Responds with the statistics page. `waited`: the rule that has waited, and for what.
    pub(super) fn serve_statistics(
        &mut self,
        stream: &mut Stream,
        proxy: ProxyId,
        waited: Option<(RuleId, RuleWait)>,
    ) -> Step {
        let runtime_config = self.runtime_config;
        let Some(page) = runtime_config.proxy(proxy).stats.as_deref() else {
            return Step::Wait;
        };
        match self.http_rules(stream, proxy, RuleSet::Statistics, Rules::default()) {
            Decision::End(end) => return self.end_by_rule(stream, end),
            // No action of this set waits.
            Decision::Continue | Decision::Wait(_) => {}
        }
        stream.route.answered_by = page.place;
        if !page.users.is_empty() && !has_account(page, stream) {
            self.accounts()
                .tell_front(stream, FrontCount::DeniedRequests);
            stream.ended_by(b'L', b'R');
            stream.request_processed(self.now());
            stream.challenge = Some(page.realm.as_deref().unwrap_or(REALM_DEFAULT).into());
            self.error_page(stream, 401);
            return Step::Wait;
        }
        let target = if page.uri.starts_with(b"/") {
            stream.request.path_and_query()
        } else {
            stream.request.target()
        };
        let asked = Asked::of(&target[page.uri.len()..]);
        let is_admin = self.is_admin(stream, page);
        if stream.txn.method == Method::Post {
            let enough = stream
                .up
                .is_here(&stream.request, runtime_config.bufsize(), None);
            if is_admin && !enough {
                let rule = RuleId {
                    proxy,
                    place: RuleSet::Request.rules(runtime_config.proxy(proxy)).len(),
                };
                let wait = match waited {
                    Some((waited, wait)) if waited == rule => wait,
                    Some(_) | None => {
                        let timeout_ms = runtime_config.timeouts(stream.frontend).http_request;
                        RuleWait::Body {
                            until_ms: deadline(self.now(), timeout_ms),
                        }
                    }
                };
                return self.wait_for(stream, Waiting { rule, wait });
            }
            let outcome = self.change_servers(stream, page, proxy, is_admin);
            self.intercepted(stream, "<STATS>");
            self.see_page(stream, page, &asked, outcome);
            return Step::Wait;
        }
        self.intercepted(stream, "<STATS>");
        let uri = page.uri.to_string();
        let mut links = asked.links(&uri, page.refresh_s);
        links.refresh_s = page.refresh_s;
        let refreshes = page.refresh_s > 0 && !links.norefresh;
        let refresh = format!("{}; url={}{}", page.refresh_s, links.uri, links.options);
        let form = asked.form;
        let mut selection = asked.selection;
        selection.scope = self.scope_of(page, proxy);
        let mut dump = Dump::new(form, selection, proxy, links);
        dump.outcome = asked.outcome;
        dump.is_admin = is_admin;
        let response = &mut stream.response;
        begin_response(response, 200);
        response.append(b"cache-control", b"no-cache");
        response.append(b"content-type", form.media_type().as_bytes());
        if form == Form::Page {
            response.append(b"content-security-policy", POLICY);
            response.append(b"x-content-type-options", b"nosniff");
            if refreshes {
                response.append(b"refresh", refresh.as_bytes());
            }
        }
        self.make(stream, Maker::Dump(Box::new(dump)));
        Step::Wait
    }

    /// `use-service`
    pub(super) fn use_service(&mut self, stream: &mut Stream, service: Service) {
        match service {
            Service::PrometheusExporter => self.export_metrics(stream),
        }
    }

    fn export_metrics(&mut self, stream: &mut Stream) {
        if !matches!(stream.txn.method, Method::Get | Method::Head) {
            return self.error_page(stream, 405);
        }
        let target = stream.request.path_and_query();
        let query = target.iter().position(|byte| *byte == b'?');
        let query = query.map_or(&b""[..], |at| &target[at + 1..]);
        let Some(wanted) = Wanted::of(query) else {
            return self.error_page(stream, 400);
        };
        let accepted = stream.request.find(b"accept");
        let format = export::format(accepted.map(|(_, value)| value));
        self.intercepted(stream, "<PROMEX>");
        let response = &mut stream.response;
        begin_response(response, 200);
        response.append(b"cache-control", b"no-cache");
        response.append(b"content-type", format.content_type().as_bytes());
        self.make(stream, Maker::Export(Box::new(Export::new(wanted, format))));
    }

    /// Counts and logs a request that the process itself answers.
    fn intercepted(&mut self, stream: &mut Stream, service: &'static str) {
        if !stream.backend_counted || stream.frontend == stream.backend {
            self.accounts().tell_front(stream, FrontCount::Intercepted);
        }
        stream.txn.service = Some(service);
        stream.ended_by(b'L', b'R');
        stream.request_processed(self.now());
    }

    /// Sends the response whose head is begun, with a body that is generated while it is sent, or
    /// sent at once where it is small.
    fn make(&mut self, stream: &mut Stream, maker: Maker) {
        stream.txn.status = 200;
        let mut made = GeneratedBody::new(maker);
        made.make(self.runtime_config, &self.core.ambient.shared, self.now());
        // As in HAProxy, the service counts as the server of its response.
        stream.txn.bytes_from_server += stream.response.wire_bytes() as u64;
        let body = match made.into_whole() {
            Ok(whole) => {
                stream.txn.bytes_from_server += whole.len() as u64;
                Body::Made(whole)
            }
            Err(made) => Body::Growing(Box::new(made)),
        };
        self.answer(stream, body);
    }

    /// Whether this request may change servers.
    fn is_admin(&mut self, stream: &mut Stream, page: &StatsPage) -> bool {
        !page.admin.is_empty()
            && self
                .with_eval(stream, |eval, stream| {
                    let mut conditions = page.admin.iter();
                    conditions.any(|condition| eval.holds(stream, condition))
                })
                .unwrap_or(false)
    }

    /// For each proxy, whether a page may show it; none where it may show all.
    fn scope_of(&self, page: &StatsPage, own: ProxyId) -> Option<Vec<bool>> {
        if page.scope.is_empty() {
            return None;
        }
        let is_in = |(place, proxy): (usize, &config::model::Proxy)| {
            let mut names = page.scope.iter();
            names.any(|name| {
                **name == *proxy.name.as_bytes() || (**name == *b"." && ProxyId::at(place) == own)
            })
        };
        let proxies = self.runtime_config.config.proxies.iter().enumerate();
        Some(proxies.map(is_in).collect())
    }

    /// Redirects the client of a form to the page, which shows the outcome.
    fn see_page(&mut self, stream: &mut Stream, page: &StatsPage, asked: &Asked, outcome: Outcome) {
        let uri = page.uri.to_string();
        let links = asked.links(&uri, page.refresh_s);
        let location = format!("{uri};st={}{}", outcome.code(), links.options);
        let response = &mut stream.response;
        begin_response(response, 303);
        response.append(b"cache-control", b"no-cache");
        response.append(b"content-type", b"text/plain");
        response.append(b"location", location.as_bytes());
        stream.txn.status = 303;
        self.answer(stream, Body::Nothing);
    }

    /// Executes the action of a form's body.
    fn change_servers(
        &mut self,
        stream: &mut Stream,
        page: &StatsPage,
        own: ProxyId,
        is_admin: bool,
    ) -> Outcome {
        let mut fields = [b"origin".as_slice(), b"referer"].into_iter();
        let origin = fields.find_map(|name| {
            let last = stream.request.find(name).last();
            last.map(|(_, value)| value)
        });
        let is_same = request::is_same_origin(origin, stream.request.get(Name::Host));
        if !is_admin || !is_same {
            return Outcome::Deny;
        }
        if !stream.up.came {
            return Outcome::TooLarge;
        }
        let Some(action) = request::action(&stream.up.waiting) else {
            return Outcome::BadParameters;
        };
        let proxies = &self.runtime_config.config.proxies;
        let number: Option<u32> = action
            .backend
            .strip_prefix('#')
            .and_then(|id| id.parse().ok());
        let backend = proxies.iter().position(|proxy| {
            let is_named = match number {
                Some(number) => proxy.id == number,
                None => proxy.name == action.backend,
            };
            proxy.is_backend && !proxy.is_removed && is_named
        });
        let scope = self.scope_of(page, own);
        let in_scope = |place: usize| scope.as_ref().is_none_or(|scope| scope[place]);
        let Some(backend) = backend else {
            return match (action.backend.is_empty(), scope.is_some()) {
                (true, _) => Outcome::Nothing,
                (false, true) => Outcome::Deny,
                (false, false) => Outcome::BadParameters,
            };
        };
        if !in_scope(backend) {
            return Outcome::Deny;
        }
        // These four are older names of actions.
        let known = stats::page::ACTIONS.iter().map(|(name, _)| *name);
        let mut known = known.chain(["disable", "enable", "stop", "start"]);
        if !known.any(|name| name == action.action) {
            return if action.action.is_empty() {
                Outcome::Nothing
            } else {
                Outcome::BadParameters
            };
        }
        let shared = std::sync::Arc::clone(&self.core.ambient.shared);
        let tables = shared.server_tables();
        let mut altered = 0;
        for name in &action.servers {
            let found = tables
                .servers(backend)
                .find(|(_, server)| server.name == *name);
            let Some((place, _)) = found else { continue };
            altered += usize::from(self.act(&shared, (backend, place), &action.action));
        }
        match (action.servers.len(), altered) {
            (0, _) => Outcome::Nothing,
            (_, 0) => Outcome::BadParameters,
            (all, altered) if all == altered => Outcome::Done,
            _ => Outcome::Partial,
        }
    }

    /// Executes an action on a server, given by the places of its backend and its own. Whether the
    /// action applies to the server.
    fn act(&mut self, shared: &Shared, (backend, place): (usize, usize), action: &str) -> bool {
        match act(action, &shared.server_view(backend, place)) {
            None => false,
            Some(Act::KillSessions) => {
                shared.kill_sessions(backend, place);
                true
            }
            Some(Act::Change(changes)) => {
                for change in changes {
                    let woken = shared.change_server_for(backend, place, change, ChangeCause::Web);
                    woken.into_iter().for_each(|worker| self.io.wake(worker));
                }
                true
            }
        }
    }
}

/// The effect of an action on a server.
enum Act {
    /// Applies the changes in this order.
    Change(Vec<ServerChange>),
    /// Ends its streams.
    KillSessions,
}

/// The effect of an action of the page on a server in this state; none where it does not apply.
fn act(action: &str, server: &ServerView) -> Option<Act> {
    use ServerChange::{Checks, Drain, Health, Maintenance};
    let has = |flag| server.admin.has(flag);
    let checks_itself = server.tracked.is_none();
    let (applies, changes) = match action {
        "ready" => (true, vec![Maintenance(false), Drain(false)]),
        "drain" => (true, vec![Maintenance(false), Drain(true)]),
        "maint" => (true, vec![Maintenance(true)]),
        "disable" => (!has(Admin::FORCED_MAINTENANCE), vec![Maintenance(true)]),
        "enable" => (has(Admin::FORCED_MAINTENANCE), vec![Maintenance(false)]),
        "stop" => (!has(Admin::FORCED_DRAIN), vec![Drain(true)]),
        "start" => (has(Admin::FORCED_DRAIN), vec![Drain(false)]),
        "dhlth" | "ehlth" => (
            server.check.is_configured,
            vec![Checks(Checker::Health, action == "ehlth")],
        ),
        "dagent" | "eagent" => (
            server.agent.is_configured,
            vec![Checks(Checker::Agent, action == "eagent")],
        ),
        "hrunn" => (
            checks_itself,
            vec![Health(Checker::Health, OpState::Running)],
        ),
        "hnolb" => (
            checks_itself,
            vec![Health(Checker::Health, OpState::Stopping)],
        ),
        "hdown" => (
            checks_itself,
            vec![Health(Checker::Health, OpState::Stopped)],
        ),
        "arunn" => (
            server.agent.is_enabled,
            vec![Health(Checker::Agent, OpState::Running)],
        ),
        "adown" => (
            server.agent.is_enabled,
            vec![Health(Checker::Agent, OpState::Stopped)],
        ),
        "shutdown" => return Some(Act::KillSessions),
        _ => return None,
    };
    applies.then_some(Act::Change(changes))
}

/// Whether a request has the password of one of the page's users (RFC 7617).
fn has_account(page: &StatsPage, stream: &Stream) -> bool {
    use base64::Engine as _;
    let Some((_, value)) = stream.request.find(b"authorization").last() else {
        return false;
    };
    let Some((scheme, rest)) = value.split_at_checked(6) else {
        return false;
    };
    if !scheme.eq_ignore_ascii_case(b"basic ") {
        return false;
    }
    let engine = base64::engine::general_purpose::STANDARD;
    let Ok(given) = engine.decode(rest.trim_ascii()) else {
        return false;
    };
    let mut users = page.users.iter();
    users.any(|(user, password)| is_same(&given, &[&user[..], b":", &password[..]].concat()))
}

/// Compares in a time that does not depend on where the values differ.
fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differs) == 0
}
