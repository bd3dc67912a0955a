//! Header fields that are sent along.

use crate::config::options::Section;
use crate::config::source::shortened;

/// Header fields: names and values. The values may be secrets and are told by no message.
pub type Headers = Vec<(String, String)>;

/// The pairs of an option as header fields (RFC 9110 section 5.5). Errors are noted.
pub(crate) fn headers(section: &Section<'_>, name: &str) -> Headers {
    let pairs = section.pairs(name);
    for (index, (field, value)) in pairs.iter().enumerate() {
        let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if field.is_empty() || !field.bytes().all(token) {
            let message = format!("'{}' is no name of a field", shortened(field));
            section.error(name, &message);
        }
        let control = |byte: u8| byte < b' ' && byte != b'\t' || byte == 0x7f;
        if value.bytes().any(control) {
            let message = format!("the value of '{field}' has a control character");
            section.error(name, &message);
        }
        if pairs[..index].iter().any(|(other, _)| other == field) {
            section.error(name, &format!("'{field}' is there twice"));
        }
    }
    pairs
}
