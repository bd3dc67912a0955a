//! How each field is sent.

use super::{Encoder, indexed_static, literal};
use crate::h2::hpack::{FieldEncoder, Policy, policy};
use crate::h3::qpack::statics::{
    AUTHORITY, METHOD_CONNECT, METHOD_DELETE, METHOD_GET, METHOD_HEAD, METHOD_OPTIONS, METHOD_POST,
    METHOD_PUT, PATH_ROOT, SCHEME_HTTP, SCHEME_HTTPS, STATUS_200, find, status,
};
use crate::{Method, Name};

impl FieldEncoder for Encoder {
    fn method(&mut self, method: Method, text: &[u8], out: &mut Vec<u8>) {
        let index = match method {
            Method::Get => METHOD_GET,
            Method::Post => METHOD_POST,
            Method::Head => METHOD_HEAD,
            Method::Put => METHOD_PUT,
            Method::Delete => METHOD_DELETE,
            Method::Options => METHOD_OPTIONS,
            Method::Connect => METHOD_CONNECT,
            _ => return self.indexed(Some(METHOD_GET), Name::Other, b":method", text, out),
        };
        indexed_static(index, out);
    }

    fn scheme(&mut self, scheme: &[u8], out: &mut Vec<u8>) {
        match scheme {
            b"http" => indexed_static(SCHEME_HTTP, out),
            b"https" => indexed_static(SCHEME_HTTPS, out),
            _ => self.indexed(Some(SCHEME_HTTP), Name::Other, b":scheme", scheme, out),
        }
    }

    fn authority(&mut self, authority: &[u8], out: &mut Vec<u8>) {
        self.indexed(Some(AUTHORITY), Name::Other, b":authority", authority, out);
    }

    fn path(&mut self, path: &[u8], out: &mut Vec<u8>) {
        match path {
            b"/" => indexed_static(PATH_ROOT, out),
            _ => self.indexed(Some(PATH_ROOT), Name::Other, b":path", path, out),
        }
    }

    fn protocol(&mut self, protocol: &[u8], out: &mut Vec<u8>) {
        self.indexed(None, Name::Other, b":protocol", protocol, out);
    }

    fn status(&mut self, code: u16, out: &mut Vec<u8>) {
        if let Some(index) = status(code) {
            return indexed_static(index, out);
        }
        let digit = |of: u16| b'0' + (code / of % 10) as u8;
        let digits = [digit(100), digit(10), digit(1)];
        self.indexed(Some(STATUS_200), Name::Other, b":status", &digits, out);
    }

    #[inline]
    fn field(&mut self, id: Name, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let found = find(id, value);
        if let Some((index, true)) = found {
            return indexed_static(index, out);
        }
        let index = found.map(|(index, _)| index);
        match policy(id, value) {
            Policy::Table => self.indexed(index, id, name, value, out),
            Policy::Literal => literal(false, index, name, value, out),
            Policy::Never => literal(true, index, name, value, out),
        }
    }
}
