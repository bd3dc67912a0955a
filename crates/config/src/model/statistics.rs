//! The statistics page of a proxy (manual §4.2 stats).

use super::HttpRule;
use std::sync::Arc;
use syntax::octets::Octets;

/// Where the page is, where nothing else is said.
pub const URI_DEFAULT: &[u8] = b"/haproxy?stats";
/// The realm of its passwords, where nothing else is said.
pub const REALM_DEFAULT: &[u8] = b"HAProxy Statistics";

/// `stats …` of a proxy.
#[derive(Clone, Debug)]
pub struct StatsPage {
    /// What its addresses begin with.
    pub uri: Octets,
    /// `stats realm`
    pub realm: Option<Octets>,
    /// `stats auth`: users and their passwords.
    pub users: Vec<(Octets, Octets)>,
    /// `stats refresh`, seconds; 0 for never.
    pub refresh_s: u32,
    /// `stats http-request`
    pub http_request: Vec<Arc<HttpRule>>,
    /// `stats admin`: one that holds lets servers be changed.
    pub admin: Vec<Arc<sample::Condition>>,
    /// `stats scope`: the names of proxies, `.` for this one; none for all.
    pub scope: Vec<Octets>,
    /// `stats show-version`
    pub shows_version: bool,
    /// `stats show-legends`
    pub shows_legends: bool,
    /// `stats show-modules`
    pub shows_modules: bool,
    /// `stats show-node`, and the name if not that of section `global`.
    pub node: Option<Option<Octets>>,
    /// `stats show-desc`, and the text if not that of section `global`.
    pub description: Option<Option<Octets>>,
}

impl Default for StatsPage {
    fn default() -> Self {
        StatsPage {
            uri: URI_DEFAULT.into(),
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
