//! The statistics page of a proxy (manual §4.2 stats).

use super::HttpRule;
use std::sync::Arc;
use syntax::octets::Octets;

/// The default path of the page.
pub const URI_DEFAULT: &[u8] = b"/haproxy?stats";
/// The default realm of its passwords.
pub const REALM_DEFAULT: &[u8] = b"HAProxy Statistics";

/// `stats …` of a proxy.
#[derive(Clone, Debug)]
pub struct StatsPage {
    /// The prefix of its addresses.
    pub uri: Octets,
    /// The place of its `stats uri`, or of its `stats enable`; none if it has neither.
    pub place: Option<sample::RulePlace>,
    /// `stats realm`
    pub realm: Option<Octets>,
    /// `stats auth`: users and their passwords.
    pub users: Vec<(Octets, Octets)>,
    /// `stats refresh` in seconds; 0 means never.
    pub refresh_s: u32,
    /// `stats http-request`
    pub http_request: Vec<Arc<HttpRule>>,
    /// `stats admin`: servers can be changed if one of the conditions holds.
    pub admin: Vec<Arc<sample::Condition>>,
    /// `stats scope`: the names of proxies, `.` for this one; empty means all.
    pub scope: Vec<Octets>,
    /// `stats show-version`
    pub shows_version: bool,
    /// `stats show-legends`
    pub shows_legends: bool,
    /// `stats show-modules`
    pub shows_modules: bool,
    /// `stats show-node`, with the name if it is not that of section `global`.
    pub node: Option<Option<Octets>>,
    /// `stats show-desc`, with the text if it is not that of section `global`.
    pub description: Option<Option<Octets>>,
}

impl Default for StatsPage {
    fn default() -> Self {
        StatsPage {
            uri: URI_DEFAULT.into(),
            place: None,
            realm: None,
            users: Vec::new(),
            refresh_s: 0,
            http_request: Vec::new(),
            admin: Vec::new(),
            scope: Vec::new(),
            shows_version: false,
            shows_legends: false,
            shows_modules: false,
            node: None,
            description: None,
        }
    }
}
