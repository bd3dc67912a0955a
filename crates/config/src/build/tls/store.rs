//! Section `crt-store` (manual §12.7): certificates with their files, which lines name as `@store/name`.

use super::super::Shared;
use super::super::line::{Line, Parse};
use super::certificates::{self, Place, from_base};
use crate::keywords::other;
use crate::keywords::{self, Keyword};
use crate::tree::Section;
use std::path::PathBuf;

/// Reads a section.
pub fn section(section: &Section, table: &[Keyword<()>], shared: &mut Shared<'_>) {
    let header = Line::new(&section.header);
    if let Some(known) = keywords::find(other::SECTIONS, section.kind()) {
        let is_noted = super::super::parser_of(known, &header, 0, shared).map(drop);
        shared.settle(is_noted);
    }
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
            Some(keyword) => {
                let noted = super::super::parser_of(keyword, &line, 0, shared);
                noted.and_then(|_| store.statement(&line, shared))
            }
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
        match line.keyword() {
            "crt-base" => self.crt_base = Some(line.path(1).to_owned()),
            "key-base" => self.key_base = Some(line.path(1).to_owned()),
            _ => self.load(line, shared)?,
        }
        Ok(())
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
        let mut source = loads.source;
        source.origin = line.span(0).place();
        let name = match &loads.alias {
            Some(alias) => format!("@{}/{alias}", self.name),
            None if self.name.is_empty() => from_base(line.path(at), place.crt_base)
                .to_string_lossy()
                .into_owned(),
            None => format!("@{}/{}", self.name, line.arg(at)),
        };
        if shared.settings.serves_tls
            && let Err(error) = std::fs::metadata(&source.path)
        {
            return Err(line.fault(at, certificates::unreadable(&source.path, &error)));
        }
        if shared.tls.stores.contains_key(&name) {
            return Err(line.fault(
                0,
                format!("'load' in section 'crt-store': store '{name}' was already defined."),
            ));
        }
        shared.tls.stores.insert(name, source);
        Ok(())
    }
}
