//! Which records count: `include` and `exclude`.

use otlp::scan::{Any, Around, Attributes, Malformed, RESOURCE_ATTRIBUTES};
use regex_automata::meta::Regex;

use super::edit::text::{matched_text, text_of};
use super::edit::{Fields, Kind, List, Value, last_bytes};
use crate::config::components::processors::action::AttributeValue;
use crate::config::components::processors::matching::Matching;
use crate::config::pattern;

/// What a record must have.
#[derive(Debug)]
pub struct Matcher {
    services: Option<Texts>,
    span_names: Option<Texts>,
    span_kinds: Option<Texts>,
    attributes: Vec<Attribute>,
    resources: Vec<Attribute>,
    libraries: Vec<(Texts, Option<Texts>)>,
}

/// One of some texts, or what an expression is found in.
#[derive(Debug)]
pub enum Texts {
    Exact(Vec<Box<[u8]>>),
    Regex(Regex),
}

/// A key, and what its value must be.
pub type Attribute = (Box<[u8]>, Wanted);

/// What an attribute must be.
#[derive(Debug)]
pub enum Wanted {
    Any,
    Exact(AttributeValue),
    Regex(Regex),
}

/// `service.name` where a resource has none, as the Collector calls it.
const NO_SERVICE: &[u8] = b"<nil-service-name>";
/// By number (`trace.proto`, `Span.SpanKind`).
const KINDS: [&str; 6] = [
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];
const SPAN_NAME: u32 = 5 << 3 | 2;
const SPAN_KIND: u32 = 6 << 3;
/// `InstrumentationScope.name`
const SCOPE_NAME: u32 = 1 << 3 | 2;
/// `InstrumentationScope.version`
const SCOPE_VERSION: u32 = 2 << 3 | 2;

impl Texts {
    fn new(texts: &[String], regex: bool) -> Result<Texts, String> {
        Ok(if regex {
            Texts::Regex(pattern::compile_any(texts)?)
        } else {
            Texts::Exact(texts.iter().map(|text| text.as_bytes().into()).collect())
        })
    }

    /// Whether a text is one of them.
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Texts::Exact(texts) => texts.iter().any(|wanted| **wanted == *text),
            Texts::Regex(regex) => regex.is_match(text),
        }
    }
}

/// Compiles texts; none where there are none.
///
/// # Errors
/// Which expression cannot be compiled, and why.
pub fn texts(texts: &[String], regex: bool) -> Result<Option<Texts>, String> {
    let texts = (!texts.is_empty()).then(|| Texts::new(texts, regex));
    texts.transpose()
}

impl Matcher {
    /// Compiles it.
    ///
    /// # Errors
    /// Which expression cannot be compiled, and why.
    pub fn new(settings: &Matching) -> Result<Matcher, String> {
        let regex = settings.regex;
        let texts = |list: &[String]| texts(list, regex);
        let library = |(name, version): &(String, Option<String>)| {
            let one = |text: &String| Texts::new(std::slice::from_ref(text), regex);
            Ok((one(name)?, version.as_ref().map(one).transpose()?))
        };
        Ok(Matcher {
            services: texts(&settings.services)?,
            span_names: texts(&settings.span_names)?,
            span_kinds: texts(&settings.span_kinds)?,
            attributes: wanted(&settings.attributes, regex)?,
            resources: wanted(&settings.resources, regex)?,
            libraries: settings
                .libraries
                .iter()
                .map(library)
                .collect::<Result<_, String>>()?,
        })
    }

    /// Whether a record matches. What is no span has neither name nor kind, and matches none.
    ///
    /// # Errors
    /// It is malformed, or what stands around it.
    pub fn matches(
        &self,
        kind: Kind,
        around: Around<'_>,
        record: &[u8],
        attributes: &List<'_>,
    ) -> Result<bool, Malformed> {
        let resource = Attributes::new(around.resource, RESOURCE_ATTRIBUTES);
        if let Some(services) = &self.services {
            let name = resource.clone().get(b"service.name").map(text_of);
            if !services.matches(name.as_deref().unwrap_or(NO_SERVICE)) {
                return Ok(false);
            }
        }
        if let Some(names) = &self.span_names
            && !(kind == Kind::Span
                && names.matches(last_bytes(record, SPAN_NAME)?.unwrap_or_default()))
        {
            return Ok(false);
        }
        if let Some(kinds) = &self.span_kinds
            && !(kind == Kind::Span && kinds.matches(span_kind(record)?.as_bytes()))
        {
            return Ok(false);
        }
        if !self.libraries.is_empty() && !self.library(around.scope)? {
            return Ok(false);
        }
        let of_resource = |name: &[u8]| resource.clone().get(name);
        let of_record = |name: &[u8]| attributes.get(name);
        Ok(all(&self.resources, of_resource) && all(&self.attributes, of_record))
    }

    fn library(&self, scope: &[u8]) -> Result<bool, Malformed> {
        let name = last_bytes(scope, SCOPE_NAME)?.unwrap_or_default();
        let version = last_bytes(scope, SCOPE_VERSION)?.unwrap_or_default();
        let is_it = |(wanted, of): &(Texts, Option<Texts>)| {
            wanted.matches(name) && of.as_ref().is_none_or(|of| of.matches(version))
        };
        Ok(self.libraries.iter().any(is_it))
    }
}

/// Compiles attributes.
///
/// # Errors
/// Which expression cannot be compiled, and why.
pub fn wanted(
    attributes: &[(String, Option<AttributeValue>)],
    regex: bool,
) -> Result<Vec<Attribute>, String> {
    let of = |(key, value): &(String, Option<AttributeValue>)| {
        let wanted = match value {
            None => Wanted::Any,
            Some(AttributeValue::Text(text)) if regex => Wanted::Regex(pattern::compile(text)?),
            Some(value) => Wanted::Exact(value.clone()),
        };
        Ok((key.as_bytes().into(), wanted))
    };
    attributes.iter().map(of).collect()
}

/// Whether all attributes are there and as they must be.
pub fn all<'v>(wanted: &[Attribute], get: impl Fn(&[u8]) -> Option<Any<'v>>) -> bool {
    wanted.iter().all(|(key, wanted)| {
        get(key).is_some_and(|value| match wanted {
            Wanted::Any => true,
            Wanted::Exact(wanted) => is_same(wanted, value),
            Wanted::Regex(regex) => matched_text(value).is_some_and(|text| regex.is_match(&text)),
        })
    })
}

/// Whether a value is of the same type and the same. The order of a map does not count.
fn is_same(wanted: &AttributeValue, value: Any<'_>) -> bool {
    match (wanted, value) {
        (AttributeValue::Text(wanted), Any::Text(value)) => wanted.as_bytes() == value,
        (AttributeValue::Bool(wanted), Any::Bool(value)) => *wanted == value,
        (AttributeValue::Int(wanted), Any::Int(value)) => *wanted == value,
        (AttributeValue::Double(wanted), Any::Double(value)) => *wanted == value,
        (AttributeValue::List(wanted), Any::Array(array)) => {
            let mut items = Any::items(array);
            let all = wanted.iter().all(|wanted| {
                let item = items.next();
                item.is_some_and(|item| is_same(wanted, item))
            });
            all && items.next().is_none()
        }
        (AttributeValue::Map(wanted), Any::Map(map)) => {
            let entries = Attributes::of_map(map);
            entries.clone().count() == wanted.len()
                && wanted.iter().all(|(key, wanted)| {
                    let value = entries.clone().get(key.as_bytes());
                    value.is_some_and(|value| is_same(wanted, value))
                })
        }
        _ => false,
    }
}

fn span_kind(span: &[u8]) -> Result<&'static str, Malformed> {
    let mut kind = 0;
    for field in Fields::new(span) {
        let field = field?;
        match field.value {
            Value::Varint(value) if field.key == SPAN_KIND => kind = value,
            _ if field.key >> 3 == SPAN_KIND >> 3 => return Err(Malformed::WireType),
            _ => {}
        }
    }
    let name = usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind));
    Ok(name.copied().unwrap_or_default())
}
