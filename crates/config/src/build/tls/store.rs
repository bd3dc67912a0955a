//! Section `crt-store` (manual §12.7): certificates with their files. Lines refer to them as
//! `@store/name`.

use super::super::Shared;
use super::super::line::{Line, Parse};
use super::certificates::{self, Place, from_base};
use crate::keywords::{self, Keyword};
use crate::tree::Section;
use std::path::PathBuf;

/// Reads a section.
pub fn section(section: &Section, table: &[Keyword<()>], shared: &mut Shared<'_>) {
    let header = Line::new(&section.header);
    shared.settle(header.at_most(1));
    let mut store = Store {
        name: section.name().map_or("", |name| &name.text).to_owned(),
        crt_base: None,
        key_base: None,
    };
    for line in section.statements.iter().map(Line::new) {
        let result = match keywords::find(table, line.keyword()) {
            None => Err(super::super::unknown(
                &line,
                section.kind(),
                table.iter().map(|row| row.name),
            )),
            Some(_) => store.statement(&line, shared),
        };
        shared.settle(result);
    }
}

struct Store {
    name: String,
    crt_base: Option<PathBuf>,
    key_base: Option<PathBuf>,
}

impl Store {
    fn statement(&mut self, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
        let base = match line.keyword() {
            "crt-base" => &mut self.crt_base,
            "key-base" => &mut self.key_base,
            _ => return self.load(line, shared),
        };
        line.need(1, || {
            format!(
                "'{}' expects a directory path as an argument.",
                line.keyword()
            )
        })?;
        *base = Some(line.path(1).to_owned());
        line.at_most(1)
    }

    fn load(&self, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
        let place = Place {
            unknown: |word| {
                format!("'load {word}' in section 'crt-store': unknown keyword '{word}'.")
            },
            has_options: false,
            crt_base: self.crt_base.as_ref().or(shared.tls.crt_base.as_ref()),
            key_base: self.key_base.as_ref().or(shared.tls.key_base.as_ref()),
        };
        let loads = certificates::loads(line, 1, &place)?;
        let Some(at) = loads.crt else {
            let message = "'load' in section 'crt-store': mandatory 'crt' parameter not found.";
            return Err(line.fault(line.count(), message));
        };
        let mut source = loads.source.clone();
        source.origin = line.span(0).place();
        let name = match &loads.alias {
            Some(alias) => format!("@{}/{alias}", self.name),
            None if self.name.is_empty() => from_base(line.path(at), place.crt_base)
                .to_string_lossy()
                .into_owned(),
            None => {
                let file = line.arg(at);
                let between = if file.starts_with('/') { "" } else { "/" };
                format!("@{}{between}{file}", self.name)
            }
        };
        loads.tell(line, shared);
        if let Err(error) = files::info(&source.path) {
            return Err(line.fault(at, certificates::unreadable(&source.path, &error)));
        }
        // The files of a store must exist when it is read, even if no line uses them.
        let beside = [&source.key, &source.ocsp, &source.issuer, &source.sctl];
        if let Some(missing) = beside
            .into_iter()
            .flatten()
            .find(|path| files::info(path).is_err())
        {
            let message = format!("'{}' cannot be read or parsed.", missing.display());
            return Err(line.fault(0, message));
        }
        if shared.tls.stores.contains_key(&name) {
            return Err(line.fault(
                0,
                format!("'load' in section 'crt-store': store '{name}' was already defined."),
            ));
        }
        source.name.clone_from(&name);
        shared.tls.stores.insert(name, source);
        Ok(())
    }
}
