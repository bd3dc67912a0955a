//! Which sections may start from a `defaults` that has rules (manual §4, the rules of named `defaults`): HAProxy evaluates
//! those rules in place, so each must fit every section that uses them.

use super::Shared;
use super::line::Line;
use crate::model::Proxy;
use crate::tree::Section;

/// The rules of a `defaults` section, and who uses them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rules {
    any: bool,
    /// `tcp-request connection` or `session`.
    early: bool,
    /// `tcp-response content`
    answers: bool,
    user: Option<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Defaults,
    Frontend,
    Backend,
    Listen,
}

impl Rules {
    /// Those of a `defaults` that was just built.
    pub fn of(defaults: &Proxy) -> Rules {
        let early =
            !defaults.tcp_request_connection.is_empty() || !defaults.tcp_request_session.is_empty();
        let answers = !defaults.tcp_response_content.is_empty();
        let others = !defaults.http_request.is_empty()
            || !defaults.http_response.is_empty()
            || !defaults.http_after_response.is_empty()
            || !defaults.tcp_request_content.is_empty();
        Rules {
            any: early || answers || others,
            early,
            answers,
            user: None,
        }
    }

    /// Notes that a section starts from them, and refuses it where it must not. `defaults` is the section they stand in.
    pub fn used_by(&mut self, section: &Section, defaults: &Section, shared: &mut Shared<'_>) {
        if !self.any {
            return;
        }
        let kind = match section.kind() {
            "defaults" => Kind::Defaults,
            "frontend" => Kind::Frontend,
            "backend" => Kind::Backend,
            _ => Kind::Listen,
        };
        let other = matches!(self.user, Some(user) if user != kind);
        let what = match kind {
            Kind::Defaults => {
                "a defaults section cannot inherit from a defaults section defining TCP/HTTP rules"
            }
            Kind::Listen => {
                "a listen section cannot inherit from a defaults section defining TCP/HTTP rules"
            }
            _ if other => {
                "frontends and backends cannot inherit from the same defaults section if it defines TCP/HTTP rules"
            }
            Kind::Backend if self.early => {
                "a backend section cannot inherit from a defaults section defining 'tcp-request connection' or 'tcp-request session' rules"
            }
            Kind::Frontend if self.answers => {
                "a frontend section cannot inherit from a defaults section defining 'tcp-response content' rules"
            }
            _ => {
                self.user = Some(kind);
                return;
            }
        };
        let message = match kind {
            Kind::Listen => format!("{what}."),
            _ => {
                let place = defaults.header.span().place();
                format!("{what} (defaults section at {place}).")
            }
        };
        shared.settle(Err(Line::new(&section.header).fault(0, message)));
    }
}
