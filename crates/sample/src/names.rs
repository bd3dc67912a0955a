//! Names to which expressions refer: variables, proxies, servers, ACLs.

use std::collections::HashMap;
use std::sync::Arc;

use crate::auth::Userlist;
use crate::vars::VarNames;
use crate::{Acls, ContextFacts, SlotCounts, VarRef, VarScope};

/// A frontend or backend of the configuration.
#[derive(Debug)]
struct ProxyName {
    name: String,
    is_frontend: bool,
    is_backend: bool,
    servers: Vec<String>,
}

/// The declarations so far.
#[derive(Debug, Default)]
pub(crate) struct Names {
    proxies: Vec<ProxyName>,
    vars: HashMap<(VarScope, String), u32>,
    counts: SlotCounts,
    /// The servers that expressions name.
    pub named_servers: Vec<(u32, u32)>,
    /// The backends that expressions name.
    pub named_backends: Vec<u32>,
    /// The contexts that `otel.context` reads, by their slots. Those of previous configurations
    /// are among them.
    pub contexts: Vec<String>,
    /// For each, whether this configuration reads it.
    pub reads_context: Vec<bool>,
    userlists: HashMap<String, Arc<Userlist>>,
    tables: HashMap<String, Arc<tables::Table>>,
    pub var_names: VarNames,
    /// The proxy whose section is being compiled.
    pub current: Option<u32>,
    /// The ACLs that `acl()` can name.
    pub acls: Acls,
}

/// Whether a text has the form of a variable: a scope, and then the characters of a name.
pub(crate) fn names_variable(text: &str) -> bool {
    VarScope::PREFIXES
        .iter()
        .find_map(|(prefix, _)| text.strip_prefix(prefix))
        .is_some_and(|name| !name.is_empty() && name.chars().all(is_name))
}

fn is_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.')
}

impl Names {
    pub(crate) fn declare_proxy(&mut self, name: &str, is_frontend: bool, is_backend: bool) -> u32 {
        self.proxies.push(ProxyName {
            name: name.into(),
            is_frontend,
            is_backend,
            servers: Vec::new(),
        });
        self.proxies.len() as u32 - 1
    }

    pub(crate) fn declare_server(&mut self, proxy: u32, name: &str) {
        if let Some(proxy) = self.proxies.get_mut(proxy as usize) {
            proxy.servers.push(name.into());
        }
    }

    pub(crate) fn declare_userlist(&mut self, name: &str, list: Arc<Userlist>) {
        self.userlists.insert(name.into(), list);
    }

    /// A list of users by name.
    pub(crate) fn userlist(&self, name: &str) -> Result<Arc<Userlist>, String> {
        let list = self.userlists.get(name).cloned();
        list.ok_or_else(|| format!("unable to find userlist '{name}'"))
    }

    pub(crate) fn declare_table(&mut self, table: Arc<tables::Table>) {
        self.tables.insert(table.definition().name.clone(), table);
    }

    /// A table by name, or that of the current proxy.
    pub(crate) fn table(&self, name: &str) -> Result<Arc<tables::Table>, String> {
        let current = self
            .current
            .and_then(|index| self.proxies.get(index as usize));
        let name = match name {
            "" => current.map_or("", |proxy| &proxy.name),
            _ => name,
        };
        let table = self.tables.get(name).cloned();
        table.ok_or_else(|| format!("unable to find table '{name}'"))
    }

    /// The slot of a context. A new name gets a new slot. If there is none, it gets the slot of a
    /// name that only previous configurations read.
    pub(crate) fn context(&mut self, name: &str) -> Result<u8, String> {
        let known = self.contexts.iter().position(|known| known == name);
        let slot = match known {
            Some(slot) => slot,
            None if self.contexts.len() < ContextFacts::MAX => {
                self.contexts.push(name.to_owned());
                self.reads_context.push(true);
                self.contexts.len() - 1
            }
            None => {
                let max = ContextFacts::MAX;
                let unread = self.reads_context.iter().position(|is_read| !is_read);
                let slot =
                    unread.ok_or_else(|| format!("more than {max} contexts are asked for"))?;
                name.clone_into(&mut self.contexts[slot]);
                slot
            }
        };
        self.reads_context[slot] = true;
        Ok(slot as u8)
    }

    /// Gives the variables and contexts of a previous configuration the same slots in this one.
    pub(crate) fn resume(&mut self, counts: SlotCounts, vars: &VarNames, contexts: &[String]) {
        self.counts = counts;
        self.var_names = vars.clone();
        let named = vars.all();
        self.vars = named
            .map(|(var, name)| ((var.scope, name.to_owned()), var.slot))
            .collect();
        self.contexts = contexts.to_vec();
        self.reads_context = vec![false; contexts.len()];
    }

    pub(crate) fn counts(&self) -> SlotCounts {
        self.counts
    }

    /// The slot of a variable. A new name gets a new slot.
    pub(crate) fn var(&mut self, full: &str) -> Result<VarRef, String> {
        if full.is_empty() {
            return Err("Empty variable name cannot be accepted".into());
        }
        let found = VarScope::PREFIXES.iter().find_map(|(prefix, scope)| {
            full.strip_prefix(prefix)
                .filter(|name| !name.is_empty())
                .map(|name| (*scope, name))
        });
        let Some((scope, name)) = found else {
            return Err(format!(
                "invalid variable name '{full}'. A variable name must start with its scope. \
                 The scope can be 'proc', '(p)sess', '(p)txn', '(p)req', '(p)res' or 'check'"
            ));
        };
        if let Some(other) = name.chars().find(|letter| !is_name(*letter)) {
            return Err(format!("invalid syntax at char '{other}'"));
        }
        Ok(VarRef {
            scope,
            slot: self.slot(scope, name),
        })
    }

    fn slot(&mut self, scope: VarScope, name: &str) -> u32 {
        let count = match scope {
            VarScope::Proc => &mut self.counts.proc,
            VarScope::Sess => &mut self.counts.sess,
            VarScope::Txn => &mut self.counts.txn,
            VarScope::Req => &mut self.counts.req,
            VarScope::Res => &mut self.counts.res,
            VarScope::Check => &mut self.counts.check,
            VarScope::Parent => return 0,
        };
        if let Some(slot) = self.vars.get(&(scope, name.to_owned())) {
            return *slot;
        }
        let slot = *count;
        *count += 1;
        self.vars.insert((scope, name.to_owned()), slot);
        self.var_names.push(VarRef { scope, slot }, name);
        slot
    }

    /// A frontend by name, or the current one.
    pub(crate) fn frontend(&self, name: &str) -> Result<u32, String> {
        self.proxy(name, |proxy| proxy.is_frontend, "frontend")
    }

    /// A backend by name, or the current one.
    pub(crate) fn backend(&mut self, name: &str) -> Result<u32, String> {
        let index = self.proxy(name, |proxy| proxy.is_backend, "backend")?;
        if !name.is_empty() {
            self.named_backends.push(index);
        }
        Ok(index)
    }

    fn proxy(
        &self,
        name: &str,
        is: impl Fn(&ProxyName) -> bool,
        what: &str,
    ) -> Result<u32, String> {
        let index = if name.is_empty() {
            self.current
                .filter(|&index| self.proxies.get(index as usize).is_some_and(&is))
        } else {
            self.proxies
                .iter()
                .position(|proxy| proxy.name == name && is(proxy))
                .map(|index| index as u32)
        };
        index.ok_or_else(|| match name {
            "" => format!("missing {what} name: the current proxy is none"),
            _ => format!("unable to find {what} '{name}'"),
        })
    }

    /// A server by `backend/server`, or by its name in the current backend.
    pub(crate) fn server(&mut self, name: &str) -> Result<(u32, u32), String> {
        let (backend, server) = name.rsplit_once('/').unwrap_or(("", name));
        if server.is_empty() {
            return Err("missing server name".into());
        }
        let backend = if backend.is_empty() {
            self.current.ok_or("backend name must be set")?
        } else {
            self.backend(backend)
                .map_err(|_| format!("unable to find proxy '{backend}'"))?
        };
        let proxy = self
            .proxies
            .get(backend as usize)
            .ok_or("backend name must be set")?;
        match proxy.servers.iter().position(|known| known == server) {
            Some(index) => {
                self.named_servers.push((backend, index as u32));
                Ok((backend, index as u32))
            }
            None => Err(format!(
                "unable to find server '{server}' in proxy '{}'",
                proxy.name
            )),
        }
    }
}
