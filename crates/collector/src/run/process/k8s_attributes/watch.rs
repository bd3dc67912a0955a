//! Objects of one kind, as the API server tells of them, put into the cluster.

use std::collections::HashSet;
use std::sync::Weak;
use std::sync::atomic::Ordering::Relaxed;

use super::cluster::Cluster;
use super::kind::Kind;
use super::object::{Object, Page};
use crate::run::Log;
use crate::run::k8s::{
    Change, Event, Fault, NAME_BYTES_MAX, Objects, version, version_of_list, wrong,
};

/// Bytes of what tells where the next page begins.
const NEXT_BYTES_MAX: usize = 4096;

/// See the module.
pub struct Watched {
    kind: Kind,
    cluster: Weak<Cluster>,
    /// The processor, as messages call it.
    who: String,
    log: Log,
    /// The version that was seen last.
    version: Option<String>,
    /// Names or `uid`s of the list that is being read.
    seen: HashSet<String>,
    /// Whether a list was there whole.
    is_listed: bool,
}

impl Watched {
    /// Nothing was seen yet.
    pub fn new(kind: Kind, cluster: Weak<Cluster>, who: String, log: Log) -> Watched {
        Watched {
            kind,
            cluster,
            who,
            log,
            version: None,
            seen: HashSet::new(),
            is_listed: false,
        }
    }

    fn put(&mut self, object: Object) -> Result<(), Fault> {
        let meta = &object.metadata;
        let is_right = |text: &str| !text.is_empty() && text.len() <= NAME_BYTES_MAX;
        if !is_right(&meta.name) || !is_right(&meta.uid) {
            let plural = self.kind.plural();
            return Err(Fault::Wrong(format!("one of {plural} without name or uid")));
        }
        if let Some(cluster) = self.cluster.upgrade() {
            cluster.put(self.kind, object)?;
        }
        Ok(())
    }
}

impl Objects for Watched {
    fn page(&mut self, body: &[u8], is_first: bool) -> Result<Option<String>, Fault> {
        let page: Page = serde_json::from_slice(body).map_err(wrong)?;
        let seen = version_of_list(page.metadata.version)?;
        if is_first {
            self.seen.clear();
        }
        for object in page.items {
            self.seen.insert(self.kind.key(&object.metadata).clone());
            self.put(object)?;
        }
        if let Some(next) = page.metadata.next.filter(|next| !next.is_empty()) {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.=".contains(&byte);
            if next.len() > NEXT_BYTES_MAX || !next.bytes().all(is_plain) {
                return Err(Fault::Wrong("a next page that is none".to_owned()));
            }
            return Ok(Some(next));
        }
        self.version = Some(seen);
        if let Some(cluster) = self.cluster.upgrade() {
            cluster.keep(self.kind, &self.seen);
            if !self.is_listed {
                cluster.missing.fetch_sub(1, Relaxed);
            }
        }
        self.is_listed = true;
        self.seen = HashSet::new();
        Ok(None)
    }

    fn event(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let mut event: Event<Object> = serde_json::from_slice(line).map_err(wrong)?;
        let seen = version(event.object.metadata.version.take())?;
        let status = &event.object;
        match event.change(status.code, status.message.as_deref())? {
            Change::Put => self.put(event.object)?,
            Change::Deleted => {
                if let Some(cluster) = self.cluster.upgrade() {
                    cluster.remove(self.kind, &event.object);
                }
            }
            Change::Bookmark => {}
            Change::Unknown => return Ok(false),
        }
        self.version = seen.or(self.version.take());
        Ok(true)
    }

    fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    fn changed(&mut self) -> bool {
        self.cluster.strong_count() > 0
    }

    fn failed(&mut self, why: &str) -> bool {
        let plural = self.kind.plural();
        self.log.warn(&format!("{}: {plural}: {why}", self.who));
        self.cluster.strong_count() > 0
    }
}
