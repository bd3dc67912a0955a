//! The measured configurations, and the levels of each.

/// The id of the filter, and its section in its file.
const FILTER: &str = "bench";

/// Proxies in series, each with a filter.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The name in tables and options.
    pub name: &'static str,
    /// The proxies; the first one is the client's.
    pub tiers: &'static [Tier],
}

/// One proxy of a [`Config`].
#[derive(Clone, Copy, Debug)]
pub struct Tier {
    /// The name of its files.
    pub name: &'static str,
    /// The file of its filter; `{{settings}}` and `{{level}}` are placeholders.
    pub template: &'static str,
    /// Spans of a plain request.
    pub spans: u64,
    /// Log records of a plain request.
    pub logs: u64,
    /// Its rules run groups.
    pub has_groups: bool,
}

/// The amount of tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// The name in tables and options.
    pub name: &'static str,
    /// Lines of the instrumentation of the first proxy; None: it has no filter.
    first: Option<&'static str>,
    /// Lines for the following proxies, which use the received decision. If the share is a number,
    /// the first proxy decides.
    others: Option<&'static str>,
    /// The share of traced requests.
    pub share: Share,
}

/// Which requests are traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All.
    All,
    /// Some, by a random number or the result.
    Some,
    /// None.
    None,
}

/// Every configuration.
pub const CONFIGS: &[Config] = &[
    Config {
        name: "sa",
        tiers: &[Tier {
            name: "sa",
            template: include_str!("../../templates/tracing/sa.cfg"),
            spans: 18,
            logs: 2,
            has_groups: true,
        }],
    },
    Config {
        name: "cmp",
        tiers: &[Tier {
            name: "cmp",
            template: include_str!("../../templates/tracing/cmp.cfg"),
            spans: 9,
            logs: 0,
            has_groups: false,
        }],
    },
    Config {
        name: "ctx",
        tiers: &[Tier {
            name: "ctx",
            template: include_str!("../../templates/tracing/ctx.cfg"),
            spans: 18,
            logs: 0,
            has_groups: true,
        }],
    },
    Config {
        name: "fe-be",
        tiers: &[
            Tier {
                name: "fe",
                template: include_str!("../../templates/tracing/fe.cfg"),
                spans: 9,
                logs: 0,
                has_groups: false,
            },
            Tier {
                name: "be",
                template: include_str!("../../templates/tracing/be.cfg"),
                spans: 8,
                logs: 0,
                has_groups: false,
            },
        ],
    },
];

/// The level with which the others are compared.
pub const OFF: &str = "off";

/// Policies that decide at the end of a request; the first two keep hardly any request of the load.
const OUTCOME: &str = "rate-limit 100
        sampling errors status 500-599
        sampling slow duration 250ms
        sampling base probability 1";

/// Every level, the highest first.
pub const LEVELS: &[Level] = &[
    rate("100", "rate-limit 100", Share::All),
    rate("75", "rate-limit 75", Share::Some),
    rate("50", "rate-limit 50", Share::Some),
    rate("25", "rate-limit 25", Share::Some),
    rate("10", "rate-limit 10", Share::Some),
    rate("2.5", "rate-limit 2.5", Share::Some),
    rate("0", "rate-limit 0", Share::None),
    both("outcome", Some(OUTCOME), Share::Some),
    both("disabled", Some("option disabled"), Share::None),
    both(OFF, None, Share::None),
];

const fn rate(name: &'static str, line: &'static str, share: Share) -> Level {
    Level {
        name,
        first: Some(line),
        others: Some("rate-limit 100"),
        share,
    }
}

const fn both(name: &'static str, lines: Option<&'static str>, share: Share) -> Level {
    Level {
        name,
        first: lines,
        others: lines,
        share,
    }
}

impl Config {
    /// Spans of a plain request that all its proxies trace.
    pub fn spans(&self) -> u64 {
        self.tiers.iter().map(|tier| tier.spans).sum()
    }

    /// Log records of such a request.
    pub fn logs(&self) -> u64 {
        self.tiers.iter().map(|tier| tier.logs).sum()
    }
}

impl Level {
    /// The lines of the proxy at index `place` in a series; None: no filter.
    pub fn lines(&self, place: usize) -> Option<&'static str> {
        if place == 0 { self.first } else { self.others }
    }
}

impl Tier {
    /// The lines of its frontend, with the filter's file `file`.
    pub fn frontend(&self, file: &std::path::Path) -> String {
        let groups = if self.has_groups {
            format!(
                "\n    http-response otel-group {FILTER} answered if answered\
                 \n    http-after-response otel-group {FILTER} failed if !answered"
            )
        } else {
            String::new()
        };
        format!(
            "    acl answered status 100:399\n    filter opentelemetry id {FILTER} config \"{}\"{groups}",
            file.display()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Spans and log records that a template promises for a request that a server answers in time.
    fn promised(template: &str) -> (u64, u64) {
        let scopes = template.split("    otel-scope ").skip(1);
        let bound = scopes.filter(|scope| {
            scope.contains("otel-event ")
                && !scope.contains("on-idle-timeout")
                && !scope.contains("on-server-unavailable")
        });
        let mut spans = BTreeSet::new();
        let mut logs = 0;
        for line in bound.flat_map(str::lines) {
            let mut words = line.trim().splitn(2, ' ');
            match words.next() {
                Some("span") => {
                    spans.extend(words.next().and_then(|rest| rest.split('"').nth(1)));
                }
                Some("log-record") => logs += 1,
                _ => {}
            }
        }
        (spans.len() as u64, logs)
    }

    #[test]
    fn templates_hold_what_their_entries_say() {
        for tier in CONFIGS.iter().flat_map(|config| config.tiers) {
            assert_eq!(
                promised(tier.template),
                (tier.spans, tier.logs),
                "{}",
                tier.name
            );
            assert_eq!(tier.template.contains("otel-group"), tier.has_groups);
            assert!(tier.template.contains(&format!("[{FILTER}]")));
            for place in ["{{settings}}", "{{level}}"] {
                assert_eq!(tier.template.matches(place).count(), 1, "{}", tier.name);
            }
        }
    }

    #[test]
    fn every_scope_is_used() {
        for tier in CONFIGS.iter().flat_map(|config| config.tiers) {
            let lines = tier.template.lines().map(str::trim);
            let named: Vec<&str> = lines
                .clone()
                .filter_map(|line| line.strip_prefix("scopes "))
                .flat_map(str::split_whitespace)
                .collect();
            let defined: Vec<&str> = lines
                .filter_map(|line| line.strip_prefix("otel-scope "))
                .collect();
            let sorted = |list: &[&str]| {
                list.iter()
                    .map(ToString::to_string)
                    .collect::<BTreeSet<_>>()
            };
            assert_eq!(sorted(&named), sorted(&defined), "{}", tier.name);
            assert_eq!(named.len(), defined.len(), "{}", tier.name);
        }
    }

    #[test]
    fn names_are_unique() {
        let configs: BTreeSet<_> = CONFIGS.iter().map(|config| config.name).collect();
        let levels: BTreeSet<_> = LEVELS.iter().map(|level| level.name).collect();
        assert_eq!((configs.len(), levels.len()), (CONFIGS.len(), LEVELS.len()));
    }
}
