//! Changes of lines in certificate lists.

use std::sync::Arc;

use config::build::tls::added::AddedLine;
use config::model::{CertificateSource, ListLine};

use super::super::Tls;
use super::super::files::Dependency;

/// Changes of certificate lists.
impl Tls {
    /// Adds a line to a list. Returns the certificate's name, and how many bind lines use the list.
    ///
    /// # Errors
    /// A message for the user. The list is unchanged then.
    pub fn add_to_list(&self, list: &str, line: &str) -> Result<(String, usize), String> {
        let mut files = self.files();
        let files = &mut *files;
        let Some(known) = files.lists.get(list) else {
            return Err(format!("crt-list '{list}' does not exist!"));
        };
        let line = AddedLine::parse(line, &files.global)?;
        let Some(line) = line else {
            return Err(
                "'add ssl crtlist' should contain the certificate name in the payload".to_owned(),
            );
        };
        let name = line.source.name.clone();
        match files.certificates.files.get(&name) {
            None => return Err(format!("certificate '{name}' does not exist!")),
            Some(stored) if stored.identity.is_none() => {
                return Err(format!("certificate '{name}' is empty!"));
            }
            Some(stored) => {
                let is_used = files.uses(Dependency::Certificate(&name)) > 0;
                let updates = |update| files.global.ocsp.are_on(update);
                let (before, now) = (stored.source.ocsp_update, line.source.ocsp_update);
                if is_used && updates(before) != updates(now) {
                    return Err(format!(
                        "'{name}' is already instantiated with incompatible parameters:\n {}",
                        different_update(updates(now))
                    ));
                }
            }
        }
        if known.is_directory {
            if known.entries.iter().any(|entry| entry.certificate == name) {
                return Err("file already exists in this directory!".to_owned());
            }
            if !line.entry.options.is_empty() || !line.entry.filters.is_empty() {
                return Err(
                    "this is a directory, SSL configuration, crt-store keywords and \
                     filters are not allowed"
                        .to_owned(),
                );
            }
        }
        let last = known.entries.iter().map(|entry| entry.line).max();
        let number = if known.is_directory {
            0
        } else {
            last.unwrap_or(0) + 1
        };
        let place = ListLine {
            list: list.into(),
            line: number,
        };
        let before = std::mem::take(&mut files.binds);
        let mut binds = before.clone();
        let mut count = 0;
        for recipe in binds.iter_mut().flatten().flatten() {
            if recipe.uses(Dependency::List(list)) == 0 {
                continue;
            }
            let options = line.options_over(&recipe.words.options);
            let options = options.and_then(|options| {
                if let Some(options) = &options {
                    files.check(options)?;
                }
                Ok(options)
            });
            let options = match options {
                Ok(options) => options,
                Err(why) => {
                    files.binds = before;
                    return Err(why);
                }
            };
            recipe.words.certificates.push(Arc::new(CertificateSource {
                options: options.map(Box::new),
                list: Some(place.clone()),
                ..line.source.clone()
            }));
            count += 1;
        }
        files.binds = binds;
        if let Err(why) = self.rebuild(files, Dependency::List(list)) {
            files.binds = before;
            return Err(why);
        }
        // A certificate that was unused before takes the setting of this line.
        if let Some(stored) = files.certificates.files.get_mut(&name) {
            Arc::make_mut(&mut stored.source).ocsp_update = line.source.ocsp_update;
        }
        if let Some(known) = files.lists.get_mut(list) {
            let mut entry = line.entry;
            entry.line = number;
            known.entries.push(entry);
        }
        Ok((name, count))
    }

    /// Deletes a certificate's line from a list; the line number chooses one of several.
    ///
    /// # Errors
    /// The message for the user. The list is unchanged then.
    pub fn delete_from_list(
        &self,
        list: &str,
        certificate: &str,
        line: Option<u32>,
    ) -> Result<(), String> {
        let mut files = self.files();
        let files = &mut *files;
        let Some(known) = files.lists.get(list) else {
            return Err(format!("crt-list '{list}' does not exist!"));
        };
        match files.certificates.files.get(certificate) {
            None => return Err(format!("certificate '{certificate}' does not exist!")),
            Some(stored) if stored.material.certificate().is_none() => {
                return Err(format!("certificate '{certificate}' is empty!"));
            }
            Some(_) => {}
        }
        let lines = known.entries.iter();
        let lines: Vec<u32> = lines
            .filter(|entry| entry.certificate == certificate)
            .map(|entry| entry.line)
            .collect();
        let all: Vec<_> = lines.iter().map(u32::to_string).collect();
        let all = all.join(", ");
        let found = match line {
            None => lines.first(),
            Some(line) => lines.iter().find(|each| **each == line),
        };
        let found = match found {
            None if lines.is_empty() => {
                return Err(format!(
                    "certificate '{certificate}' can't be found in crt-list '{list}'!"
                ));
            }
            None => {
                return Err(format!(
                    "found a certificate '{certificate}' but the line number is incorrect, please \
                     specify a correct line number preceded by colons ({all})!"
                ));
            }
            Some(_) if line.is_none() && lines.len() > 1 => {
                return Err(format!(
                    "found the certificate '{certificate}' in several entries, please specify a \
                     line number preceded by colons ({all})!"
                ));
            }
            Some(found) => *found,
        };
        let is_it = |source: &CertificateSource| {
            let place = source.list.as_ref();
            source.name == certificate
                && place.is_some_and(|place| &*place.list == list && place.line == found)
        };
        let recipes = files.binds.iter().flatten().flatten();
        // The first certificate of a bind line is its default and cannot be deleted; others that
        // are marked as default can.
        let as_default = recipes.filter(|recipe| {
            let first = recipe.words.certificates.first();
            !recipe.words.strict_sni && first.is_some_and(|first| is_it(first))
        });
        let origins: String = as_default
            .map(|recipe| format!("\t- {}\n", recipe.origin))
            .collect();
        if !origins.is_empty() {
            return Err(format!(
                "certificate '{certificate}' cannot be deleted, it is used as default certificate \
                 by the following frontends:\n{origins}"
            ));
        }
        let before = files.binds.clone();
        for recipe in files.binds.iter_mut().flatten().flatten() {
            recipe.words.certificates.retain(|each| !is_it(each));
        }
        if let Err(why) = self.rebuild(files, Dependency::List(list)) {
            files.binds = before;
            return Err(why);
        }
        if let Some(known) = files.lists.get_mut(list) {
            let entries = &mut known.entries;
            entries.retain(|entry| entry.certificate != certificate || entry.line != found);
        }
        Ok(())
    }
}

/// The error for a certificate with two different `ocsp-update` settings.
pub(in super::super) fn different_update(is_on: bool) -> String {
    let on = |is_on| if is_on { "on" } else { "off" };
    format!(
        "- different parameter 'ocsp-update' : previously '{}' vs '{}'",
        on(!is_on),
        on(is_on)
    )
}
