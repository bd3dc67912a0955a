//! A fleet of samplers behind one topic, of which one dies again and again.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::broker::Broker;
use super::sink::Sink;
use super::{PARTS, SPANS, duration, front, member, post, request};
use crate::common::collector::Running;
use crate::common::{before_the_next_look, eventually, now};

const MEMBERS: usize = 3;
/// Traces of a request.
const TRACES: u64 = 50;
/// Between two requests.
const STEP: Duration = Duration::from_millis(50);
/// Between two deaths, in a long run.
const DEATHS: Duration = Duration::from_secs(10);

/// What a sampler does that keeps what has failed.
pub fn sampler(sink: &Sink, wait: &str) -> String {
    format!(
        "processors:
  tail_sampling:
    decision_wait: {wait}
    policies: [ {{ name: errors, type: status_code, status_code: {{ status_codes: [ERROR] }} }} ]
exporters: {{ otlphttp: {{ endpoint: 'http://{}', compression: none }} }}
service:
  pipelines: {{ traces: {{ receivers: [kafka], processors: [tail_sampling], exporters: [otlphttp] }} }}",
        sink.at
    )
}

/// All that was acknowledged is decided as whole traces, and delivered where it is to be kept.
pub fn members_may_die(broker: &Broker) {
    let sink = Sink::start();
    let (_front, mut client) = front(&broker.at, "fleet", "");
    let config = member(&broker.at, "fleet", "", &sampler(&sink, "3s"));
    // The topic is there before anybody reads it.
    assert!(post(&mut client, "", &request(0..1, 0)));
    let mut members: Vec<Running> = (0..MEMBERS).map(|_| Running::start(&config)).collect();
    members
        .iter()
        .for_each(|one| drop(one.line("partitions are assigned")));
    let (begin, mut deaths) = (now(), 0);
    let mut next_death = begin + duration().min(DEATHS) * 2 / 3;
    let mut sent = Sent::default();
    while begin.elapsed() < duration() {
        sent.step(|traces, part| post(&mut client, "", &request(traces, part)));
        if now() >= next_death {
            members[deaths % MEMBERS].signal("KILL");
            members[deaths % MEMBERS] = Running::start(&config);
            deaths += 1;
            next_death += DEATHS;
        }
        let until = begin + STEP * u32::try_from(sent.steps).expect("a few");
        while now() < until {
            before_the_next_look();
        }
    }
    while !sent.is_complete() {
        sent.step_without_more(|traces, part| post(&mut client, "", &request(traces, part)));
    }
    let kept: BTreeSet<u64> = sent.traces().filter(|trace| trace % 5 == 0).collect();
    let is_whole = |trace: &u64| {
        let all = sink.all();
        all.spans
            .get(trace)
            .is_some_and(|spans| spans.len() == usize::from(SPANS))
    };
    let whole = || kept.iter().filter(|trace| is_whole(trace)).count();
    if whole() < kept.len() {
        eventually("all kept traces", || (whole() == kept.len()).then_some(()));
    }
    let all = sink.all();
    for (trace, spans) in &all.spans {
        assert!(
            kept.contains(trace),
            "{trace} was not to be kept: {spans:?}"
        );
    }
    assert!(deaths > 0);
    tell(&sent, deaths, kept.len(), all.repeated(), begin);
}

#[expect(clippy::print_stderr, reason = "the numbers of a long run")]
fn tell(sent: &Sent, deaths: usize, kept: usize, repeated: u64, begin: Instant) {
    let traces = (sent.groups * TRACES) as usize;
    let spans = traces * usize::from(SPANS);
    let seconds = begin.elapsed().as_secs_f64();
    let delivered = kept * usize::from(SPANS);
    eprintln!(
        "{MEMBERS} members, {deaths} killed in {seconds:.0} s: {spans} spans of {traces} traces acknowledged, \
         {delivered} spans of {kept} kept traces delivered, 0 lost; {repeated} spans delivered again"
    );
}

/// Groups of traces, whose parts are sent in steps one after the other.
#[derive(Default)]
struct Sent {
    steps: u64,
    groups: u64,
}

impl Sent {
    /// Begins a group, and sends the next parts of those before. Nothing is sent twice: what is not
    /// acknowledged fails.
    fn step(&mut self, send: impl FnMut(std::ops::Range<u64>, u8) -> bool) {
        self.groups += 1;
        self.step_without_more(send);
    }

    fn step_without_more(&mut self, mut send: impl FnMut(std::ops::Range<u64>, u8) -> bool) {
        for part in 0..PARTS {
            let group = self.steps.checked_sub(u64::from(part));
            if let Some(group) = group.filter(|group| *group < self.groups) {
                let first = 1 + group * TRACES;
                assert!(send(first..first + TRACES, part), "group {group}");
            }
        }
        self.steps += 1;
    }

    fn is_complete(&self) -> bool {
        self.steps >= self.groups + u64::from(PARTS) - 1
    }

    fn traces(&self) -> std::ops::Range<u64> {
        1..1 + self.groups * TRACES
    }
}
