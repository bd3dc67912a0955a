//! `ottl_condition`: a condition in OTTL is true of a span, or of one of its events.

use tail::settings::ErrorMode;

use super::condition::{self, Context};
use super::{Block, Kind, PolicyKind, Section, Type, opt, texts};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("ottl_condition", Kind::Section(&[&[
        opt("error_mode", Kind::WordAnyCase(&["propagate", "ignore", "silent"]), "propagate", "what becomes of a condition that fails"),
        opt("span", Kind::Texts, "", "conditions of spans; one of them keeps a trace"),
        opt("spanevent", Kind::Texts, "", "conditions of events"),
        opt("span_event", Kind::Any, "", "no option").refused("write 'spanevent'"),
        opt("span_conditions", Kind::Any, "", "no option").refused("write 'span'"),
        opt("span_event_conditions", Kind::Any, "", "no option").refused("write 'spanevent'"),
        opt("conditions", Kind::Any, "", "no option").refused("write 'span' or 'spanevent'"),
    ]]), "", "options of type ottl_condition"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    let conditions = |name: &str, context: Context| {
        let texts = options.whole_texts_at(name);
        for (text, at) in &texts {
            if let Err(reason) = condition::check(text, context) {
                let path = &options.path;
                options
                    .notes
                    .error(*at, format!("{path}::{name}: {reason}"));
            }
        }
        texts.into_iter().map(|(text, _)| text).collect::<Vec<_>>()
    };
    let span = conditions("span", Context::Span);
    let span_event = conditions("spanevent", Context::SpanEvent);
    if span.is_empty() && span_event.is_empty() {
        options.fault("needs a condition in 'span' or 'spanevent'");
    }
    Some(PolicyKind::OttlCondition {
        span,
        span_event,
        error_mode: options.choice(
            "error_mode",
            &[
                ("propagate", ErrorMode::Propagate),
                ("ignore", ErrorMode::Ignore),
                ("silent", ErrorMode::Silent),
            ],
        ),
    })
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::OttlCondition {
        span,
        span_event,
        error_mode,
    } = kind
    {
        match error_mode {
            ErrorMode::Propagate => {}
            ErrorMode::Ignore => block.put("error_mode", "ignore"),
            ErrorMode::Silent => block.put("error_mode", "silent"),
        }
        for (name, conditions) in [("span", span), ("spanevent", span_event)] {
            if !conditions.is_empty() {
                block.put(name, texts(conditions));
            }
        }
    }
}
