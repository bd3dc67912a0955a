use super::*;
use crate::Ids;

const FORMATS: [Format; 4] = [
    Format::W3c,
    Format::B3Single,
    Format::B3Multi,
    Format::Jaeger,
];

type Fields = Vec<(Field, Vec<u8>)>;

fn extracted(format: Format, fields: &Fields) -> (Incoming, String, String) {
    let (mut state, mut baggage) = (Vec::new(), Vec::new());
    let lines = |field: Field, line: &mut dyn FnMut(&[u8])| {
        assert!(format.reads().contains(&field));
        fields
            .iter()
            .filter(|(name, _)| *name == field)
            .for_each(|(_, value)| line(value));
    };
    let incoming = extract(format, lines, &mut state, &mut baggage);
    (
        incoming,
        String::from_utf8(state).unwrap(),
        String::from_utf8(baggage).unwrap(),
    )
}

fn fields(list: &[(Field, &str)]) -> Fields {
    list.iter()
        .map(|(field, value)| (*field, value.as_bytes().to_vec()))
        .collect()
}

#[test]
fn fields_are_listed_in_their_order() {
    for (at, field) in Field::ALL.into_iter().enumerate() {
        assert_eq!(field as usize, at);
    }
}

#[test]
fn what_is_injected_is_extracted() {
    let mut ids = Ids::new([1, 2, 3, 4]);
    for turn in 0..200 {
        let context = SpanContext {
            trace_id: ids.trace_id(),
            span_id: ids.span_id(),
            flags: turn & 1,
            remote: true,
        };
        for format in FORMATS {
            let mut written = Fields::new();
            inject(format, &context, b"a=b", b"c=d;e", |field, value| {
                assert!(format.writes().contains(&field));
                written.push((field, value.to_vec()));
            });
            let (incoming, state, baggage) = extracted(format, &written);
            assert_eq!(incoming, Some(context).into(), "{format:?}");
            assert_eq!(state, if format == Format::W3c { "a=b" } else { "" });
            assert_eq!(baggage, "c=d;e");
        }
    }
}

#[test]
fn a_state_needs_its_one_parent() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let state = [
        (Field::Tracestate, "a=1"),
        (Field::Tracestate, "b=2"),
        (Field::Baggage, "k=v"),
    ];
    let with = |parents: &[&str]| {
        let parents = parents.iter().map(|parent| (Field::Traceparent, *parent));
        extracted(
            Format::W3c,
            &fields(&parents.chain(state).collect::<Vec<_>>()),
        )
    };
    let (incoming, list, baggage) = with(&[parent]);
    assert_eq!(incoming.sampling, Sampling::Accept);
    assert_eq!((list.as_str(), baggage.as_str()), ("a=1,b=2", "k=v"));
    for parents in [&[][..], &["00-x"], &[parent, parent]] {
        let (incoming, list, baggage) = with(parents);
        assert_eq!(incoming, Incoming::default());
        assert_eq!((list.as_str(), baggage.as_str()), ("", "k=v"));
    }
}

#[test]
fn one_field_of_b3_goes_before_many() {
    let many = [
        (Field::B3TraceId, "80f198ee56343ba864fe8b2a57d3eff7"),
        (Field::B3SpanId, " e457b5a2e4d86bd1"),
        (Field::B3Sampled, "1"),
    ];
    for format in [Format::B3Single, Format::B3Multi] {
        assert_eq!(
            extracted(format, &fields(&many)).0.sampling,
            Sampling::Accept
        );
        let with = |value| fields(&[&[(Field::B3, value)], &many[..]].concat());
        let denied = extracted(format, &with("0")).0;
        assert_eq!(
            denied,
            Incoming {
                context: None,
                sampling: Sampling::Deny
            }
        );
        assert!(extracted(format, &with("malformed")).0.context.is_some());
    }
    let long = fields(&[(Field::B3TraceId, &"1".repeat(33)), (Field::B3Sampled, "0")]);
    assert_eq!(
        extracted(Format::B3Multi, &long).0,
        Incoming {
            context: None,
            sampling: Sampling::Deny
        }
    );
}

/// Bytes like those that come, and none of them makes anything panic.
#[test]
fn any_bytes_are_taken() {
    let alphabet = b"00-123abcdefABF:%=,; \tothrvkd@\x00\xff";
    let mut ids = Ids::new([3, 1, 4, 1]);
    for _ in 0..20_000 {
        let len = ids.next_u64() as usize % 80;
        let value: Vec<u8> = (0..len)
            .map(|_| alphabet[ids.next_u64() as usize % alphabet.len()])
            .collect();
        let all: Fields = Field::ALL
            .into_iter()
            .map(|field| (field, value.clone()))
            .collect();
        for format in FORMATS {
            let (incoming, state, baggage) = extracted(format, &all);
            assert!(
                incoming
                    .context
                    .is_none_or(|context| context.is_valid() && context.remote)
            );
            assert!(state.len() <= value.len() && baggage.len() <= value.len());
        }
        let mut out = Vec::new();
        tracestate::set_threshold(&value, Some(1), &mut out);
        baggage::set(&value, b"k", &value, &mut out);
    }
}
