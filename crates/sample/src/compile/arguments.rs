//! Compiles the text between parentheses to the arguments of a table entry.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::Compiler;
use crate::args::{Arg, ArgKind, Args, ListError, MapUse, Spec, Written, split};
use crate::fetch::CheckFn;
use crate::names::names_variable;
use crate::pattern::method::Method;
use crate::pattern::{Columns, How, Output, ValueKinds, Wanted};
use crate::text::{read_int, read_ui};
use syntax::octets::readable;

impl Compiler {
    /// Compiles the argument list at `at`. Returns the arguments and the position after the list.
    pub(super) fn arguments(
        &mut self,
        word: &[u8],
        at: usize,
        spec: Spec,
        check: CheckFn,
    ) -> Result<(Args, usize), ListError> {
        if spec.kinds.is_empty() {
            let list = word.get(at..).unwrap_or_default();
            return match list.strip_prefix(b"(") {
                None => Ok((Args::default(), at)),
                Some(rest) if rest.starts_with(b")") => Ok((Args::default(), at + 2)),
                Some(rest) => {
                    let message = format!("expected ')' before '{}'", readable(rest));
                    Err(ListError::in_arg(0, at + 1, word.len(), message))
                }
            };
        }
        if spec.kinds == [ArgKind::CurrentProxy] {
            let current = self.names.current.map(Arg::Proxy);
            return Ok((current.into_iter().collect(), at));
        }
        let (mut written, end) = split(word, at)?;
        if written.len() == 1 && written[0].text.is_empty() && spec.kinds[0] != ArgKind::Str {
            written.clear();
        }
        // An empty list counts as one empty argument where one is required: `str`, `nbsrv`.
        if written.is_empty() && spec.required > 0 {
            written.push(Written {
                text: Vec::new(),
                start: at,
                end,
            });
        }
        if spec.kinds == [ArgKind::Acls] {
            let arg = self
                .acls_argument(&written)
                .map_err(|message| ListError::check(at, end, message))?;
            return Ok((Box::new([arg]), end));
        }
        let extra = written.get(spec.kinds.len());
        // HAProxy counts this way.
        let last = spec.kinds.len().max(2) - 1;
        let too_many = extra.map(|extra| unexpected(word, last, extra));
        let (early, late) = if spec.kinds.iter().any(|kind| kind.needs_text()) {
            (None, too_many)
        } else {
            // Names are resolved only after the whole list was read.
            (too_many, None)
        };
        early.map_or(Ok(()), Err)?;
        // Faults in the present arguments are reported before missing ones.
        if written.len() < spec.required {
            for (index, (kind, one)) in spec.kinds.iter().zip(&written).enumerate() {
                if !kind.is_read_later() {
                    self.listed_argument(*kind, index, one, &written)?;
                }
            }
            let missing = spec.kinds.get(written.len()).map_or("", |kind| kind.name());
            let message = format!(
                "missing arguments (got {}/{}), type '{missing}' expected",
                written.len(),
                spec.required,
            );
            return Err(ListError::in_arg(written.len(), at, end, message));
        }
        let mut args = Vec::with_capacity(written.len());
        for (index, (kind, one)) in spec.kinds.iter().zip(&written).enumerate() {
            // If the argument must not be empty, an empty optional one ends the list.
            if one.text.is_empty() && kind.needs_text() && index >= spec.required {
                match written.get(index + 1) {
                    None => break,
                    Some(next) => return Err(unexpected(word, index, next)),
                }
            }
            args.push(self.listed_argument(*kind, index, one, &written)?);
        }
        late.map_or(Ok(()), Err)?;
        check(&mut args).map_err(|message| ListError::check(at, end, message))?;
        Ok((args.into_boxed_slice(), end))
    }

    /// Compiles an argument. A fault includes its place in the list.
    fn listed_argument(
        &mut self,
        kind: ArgKind,
        index: usize,
        written: &Written,
        all: &[Written],
    ) -> Result<Arg, ListError> {
        self.argument(kind, index, written, all).map_err(|message| {
            if kind.is_read_later() {
                ListError::check(written.start, written.end, message)
            } else {
                ListError::in_arg(index, written.start, written.end, message)
            }
        })
    }

    fn argument(
        &mut self,
        kind: ArgKind,
        index: usize,
        written: &Written,
        all: &[Written],
    ) -> Result<Arg, String> {
        let text = readable(&written.text).to_string();
        let position = index + 1;
        if text.is_empty() && kind.needs_text() {
            return Err(format!(
                "expected type '{}' at position {position}, but got nothing",
                kind.name()
            ));
        }
        let invalid = || {
            format!(
                "failed to parse '{text}' as type '{}' at position {position}",
                kind.name()
            )
        };
        Ok(match kind {
            ArgKind::Str => Arg::Str(written.text.clone().into_boxed_slice()),
            ArgKind::Int => {
                let (value, used) = read_int(&written.text);
                if used != written.text.len() {
                    return Err(invalid());
                }
                Arg::Int(value)
            }
            ArgKind::Ipv4 => Arg::Ipv4(text.parse().map_err(|_| invalid())?),
            ArgKind::Ipv6 => Arg::Ipv6(text.parse().map_err(|_| invalid())?),
            ArgKind::Mask4 => Arg::Ipv4(mask4(&text).ok_or_else(invalid)?),
            ArgKind::Mask6 => Arg::Ipv6(mask6(&text).ok_or_else(invalid)?),
            ArgKind::Regex => {
                let flags = all.get(2).map_or(&b""[..], |flags| &flags.text);
                regex_argument(&written.text, flags)?
            }
            ArgKind::StrOrVar if !names_variable(&text) => {
                Arg::Str(written.text.clone().into_boxed_slice())
            }
            ArgKind::StrOrVar => Arg::Var(self.names.var(&text)?),
            ArgKind::FieldNumbers => Arg::Numbers(field_numbers(&text).ok_or_else(invalid)?),
            ArgKind::AclOfWhen if !is_acl(&all[0].text) => Arg::Str(Box::default()),
            ArgKind::AclOfWhen => self
                .acls_argument(std::slice::from_ref(written))
                .map_err(|_| format!("ACL '{text}' not found"))?,
            ArgKind::VarOrNothing if text.is_empty() => Arg::Str(Box::default()),
            ArgKind::OtherVar if text.is_empty() => return Err("missing variable name".into()),
            ArgKind::OtherVar | ArgKind::VarOrNothing => {
                let var = self.names.var(&text);
                Arg::Var(var.map_err(|_| format!("failed to register variable name '{text}'"))?)
            }
            ArgKind::TagVar => {
                let var = self.names.var(&text);
                Arg::Var(var.map_err(|what| format!("failed to parse aead_tag : {what}"))?)
            }
            ArgKind::Var => Arg::Var(self.names.var(&text)?),
            ArgKind::IntOrVar => match read_int(&written.text) {
                (value, used) if used == written.text.len() => Arg::Int(value),
                _ => Arg::Var(
                    self.names
                        .var(&text)
                        .map_err(|_| "expects an integer or a variable name".to_owned())?,
                ),
            },
            ArgKind::Frontend => Arg::Proxy(self.names.frontend(&text)?),
            ArgKind::Backend => Arg::Proxy(self.names.backend(&text)?),
            ArgKind::Server => {
                let (backend, server) = self.names.server(&text)?;
                Arg::Server { backend, server }
            }
            ArgKind::Context => Arg::Int(i64::from(self.names.context(&text)?)),
            ArgKind::Userlist => Arg::Userlist(self.names.userlist(&text)?),
            ArgKind::Table => Arg::Table(self.names.table(&text)?),
            ArgKind::Map(method, output) => self.map_argument(&written.text, method, output)?,
            ArgKind::Acls | ArgKind::CurrentProxy => return Err(invalid()),
        })
    }

    fn map_argument(&mut self, name: &[u8], method: Method, output: Output) -> Result<Arg, String> {
        let wanted = Wanted {
            columns: Columns::KeysAndValues,
            how: How {
                method,
                ignore_case: false,
                strict_addresses: method == Method::Ip,
            },
            values: ValueKinds {
                int: output == Output::Int,
                ip: output == Output::Ip,
            },
        };
        let lookup = self.references.lookup(name, wanted, &self.source)?;
        Ok(Arg::Map(Box::new(MapUse { lookup, output })))
    }

    fn acls_argument(&mut self, written: &[Written]) -> Result<Arg, String> {
        let words: Vec<&[u8]> = written.iter().map(|one| &*one.text).collect();
        let names_none =
            |word: &[u8]| word.iter().all(|b| *b == b'!') || word.iter().any(|b| b"{|".contains(b));
        if words.iter().any(|word| names_none(word)) {
            return Err(format!("ACL '{}' not found", readable(words[0])));
        }
        let acls = self.names.acls.clone();
        // The user of the whole expression checks the place of these ACLs.
        crate::acl::compile::condition(self, &acls, &words, false, crate::Place::ALL)
            .map(Arg::Condition)
            .map_err(|error| match error.message.strip_prefix("no such ACL : ") {
                Some(name) => format!("ACL {name} not found"),
                None => error.message,
            })
    }
}

/// The fault for an extra argument after the one at `index`.
fn unexpected(word: &[u8], index: usize, extra: &Written) -> ListError {
    let rest = readable(&word[extra.start.saturating_sub(1)..]);
    let message = format!("expected ')' before '{rest}'");
    ListError::in_arg(index, extra.start, extra.end, message)
}

fn regex_argument(pattern: &[u8], flags: &[u8]) -> Result<Arg, String> {
    if let Some(other) = flags.iter().find(|flag| !b"ig".contains(flag)) {
        return Err(format!(
            "invalid regex flag '{}', only 'i' and 'g' are supported",
            char::from(*other)
        ));
    }
    let regex = crate::regex::compile_bytes(pattern, flags.contains(&b'i'))?;
    Ok(Arg::Regex {
        regex: Box::new(regex),
        global: flags.contains(&b'g'),
    })
}

/// Whether the condition of `when` names an ACL.
fn is_acl(condition: &[u8]) -> bool {
    condition.strip_prefix(b"!").unwrap_or(condition) == b"acl"
}

/// Field numbers separated by dots. As in HAProxy, an empty number is 0, except that the last one
/// must not be empty.
fn field_numbers(text: &str) -> Option<Box<[u32]>> {
    if text.ends_with('.') {
        return None;
    }
    let number = |digits: &str| {
        let digits = digits.as_bytes();
        digits
            .iter()
            .all(u8::is_ascii_digit)
            .then(|| read_ui(digits))
    };
    text.split('.').map(number).collect()
}

/// An IPv4 mask: a length or an address with ones before zeros.
pub(crate) fn mask4(text: &str) -> Option<Ipv4Addr> {
    match text.parse::<u32>() {
        Ok(bits) if bits <= 32 => {
            Some(Ipv4Addr::from(u32::MAX.checked_shl(32 - bits).unwrap_or(0)))
        }
        Ok(_) => None,
        Err(_) => text.parse().ok(),
    }
}

/// An IPv6 mask: a length or an address.
pub(crate) fn mask6(text: &str) -> Option<Ipv6Addr> {
    match text.parse::<u32>() {
        Ok(bits) if bits <= 128 => Some(Ipv6Addr::from(
            u128::MAX.checked_shl(128 - bits).unwrap_or(0),
        )),
        Ok(_) => None,
        Err(_) => text.parse().ok(),
    }
}
