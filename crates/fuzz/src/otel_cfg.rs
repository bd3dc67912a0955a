//! The language of a filter's file.

use config::build::Settings;
use config::condition::BuildInfo;
use config::diagnostic::{Diagnostics, Rendering};
use config::environment::Environment;
use config::load::{LoadOptions, load_with};
use config::model::Config;
use config::reader::Input;
use config::tree::Span;
use telemetry::program::{Event, Program};

/// Proxies of both modes with the filter, and rules that run its groups.
const CONFIG: &str = "
global
    log stdout format raw local0
defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
frontend web
    bind 127.0.0.1:80
    acl of-proxy path /a
    filter opentelemetry id f config otel.cfg
    http-request otel-group f g if { path /g }
    http-response otel-group f g
    default_backend app
backend app
    server one 127.0.0.1:81
listen raw
    mode tcp
    bind 127.0.0.1:82
    filter opentelemetry id t config otel.cfg f
    server one 127.0.0.1:83
";

const SETTINGS: &str = "
exporters: { e: { type: memory }, o: { type: ostream } }
processors: { p: { type: single } }
signals:
  traces: { default: { scope_name: s, exporters: e, processors: p } }
  logs: { default: { scope_name: s, exporters: o, processors: p } }
  metrics: { default: { scope_name: s, exporters: e } }
";

/// Whatever a filter's file is, it is a program or errors within its lines; a program's numbers
/// lead to what it has, and the same comes of it each time.
pub fn otel_cfg(data: &[u8]) {
    // Files of patterns are none of this, nor are tables of millions of keys.
    let has = |word: &[u8]| data.windows(word.len()).any(|window| window == word);
    if has(b"-f") || has(b"map") || has(b"00000") {
        return;
    }
    let result = read(data);
    match (&result, read(data)) {
        (Ok((one, _)), Ok((other, _))) => assert_eq!(shown(one), shown(&other)),
        (Err(_), Err(_)) => {}
        _ => panic!("it is accepted only now and then"),
    }
    let (config, diagnostics) = match result {
        Ok((config, diagnostics)) => (Some(config), diagnostics),
        Err(diagnostics) => (None, diagnostics),
    };
    assert!(config.is_some() || diagnostics.alerts() > 0);
    for item in diagnostics.iter() {
        assert!(!item.message.is_empty());
        assert!(item.span.as_ref().is_none_or(within), "{item:?}");
    }
    let how = Rendering {
        pid: 1,
        diag: true,
        quiet: false,
    };
    diagnostics.render(&how);
    for filter in config.iter().flat_map(|config| &config.otel) {
        program_holds(&filter.program);
    }
}

/// Loads a configuration whose filters' file is this.
///
/// # Errors
/// What is wrong with it.
pub fn read(data: &[u8]) -> Result<(Config, Diagnostics), Diagnostics> {
    let build = BuildInfo::default();
    let options = LoadOptions {
        build: &build,
        settings: Settings::default(),
        zero_warning: false,
    };
    let input = Input {
        name: "haproxy.cfg".into(),
        text: CONFIG.into(),
    };
    let read_file = |name: &str| match name {
        "otel.cfg" => Ok(data.to_vec()),
        "otel.yml" => Ok(SETTINGS.into()),
        _ => Err("it is not there".to_owned()),
    };
    let mut environment = Environment::new();
    environment.set("SET", "one two");
    load_with(&[input], options, &mut environment, &read_file)
}

fn shown(config: &Config) -> String {
    format!("{:?}", config.otel)
}

fn within(span: &Span) -> bool {
    let (start, end) = (span.start as usize, span.end as usize);
    let text = span.excerpt();
    // What is missing stands one column after the line.
    let missing = start <= text.len() && end == text.len() + 1;
    start <= end && (missing || text.get(start..end).is_some())
}

fn program_holds(program: &Program) {
    let of = |number: usize, len: usize| assert!(number < len, "{number} of {len}");
    assert_eq!(program.span_fields.len(), program.spans.len());
    for (number, scope) in program.scopes.iter().enumerate() {
        if let Some(event) = scope.event {
            let bound = program.scopes_of(event).contains(&(number as u32));
            assert!(!bound || program.events & event.bit() != 0);
        }
        for line in &scope.spans {
            of(line.name.into(), program.spans.len());
            for key in &line.attributes {
                of(key.key.into(), program.texts.len());
            }
            for event in &line.events {
                of(event.name.into(), program.texts.len());
            }
        }
        for extract in &scope.extracts {
            of(extract.context.into(), program.contexts.len());
        }
        for update in &scope.updates {
            of(update.instrument as usize, program.instruments.len());
        }
        for log in &scope.logs {
            assert!((1..=24).contains(&log.severity));
        }
        for span in &scope.finish.spans {
            of((*span).into(), program.spans.len());
        }
        for context in &scope.finish.contexts {
            of((*context).into(), program.contexts.len());
        }
    }
    for event in Event::ALL {
        for scope in program.scopes_of(*event) {
            of(*scope as usize, program.scopes.len());
        }
    }
    for scope in program.groups.iter().flat_map(|group| &group.scopes) {
        of(*scope as usize, program.scopes.len());
    }
    let ranks = program.policies.iter().map(|policy| policy.rule.rank());
    assert!(ranks.is_sorted(), "{:?}", program.policies);
}
