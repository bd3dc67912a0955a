//! Schedules checks. Each check has a task, which sleeps, checks, reports the outcome, and repeats.
//! First checks are spread over the shortest interval, as in HAProxy.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use config::model::BackendCheck;
use proxy::{CheckOutcome, Checker};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::target::Target;
use crate::{Control, agent, external, ocsp, run, warm_up};

/// Shorter intervals do not affect how first checks are spread.
const SPREAD_MIN: Duration = Duration::from_secs(1);

/// A check of a server: the indexes of its backend and server, and the kind of check.
type Key = (usize, usize, Checker);

/// Starts and ends tasks as servers come and go, until the process stops.
pub(crate) async fn all(control: Rc<Control>) {
    let warmer = tokio::task::spawn_local(warm_up::run(Rc::clone(&control)));
    let updater = tokio::task::spawn_local(ocsp::run(Rc::clone(&control)));
    let mut tasks: HashMap<Key, (Rc<Target>, JoinHandle<()>)> = HashMap::new();
    let mut is_first = true;
    loop {
        let targets = targets(&control);
        tasks.retain(|key, (target, task)| {
            let goes_on = targets.get(key).is_some_and(|now| now.is_same(target));
            if !goes_on {
                task.abort();
            }
            goes_on
        });
        let mut new: Vec<_> = targets
            .into_iter()
            .filter(|(key, _)| !tasks.contains_key(key))
            .collect();
        new.sort_by_key(|((backend, place, checker), _)| {
            (*backend, *place, *checker == Checker::Agent)
        });
        let spread = is_first.then(|| Spread::new(&control, &new));
        for (position, (key, target)) in new.into_iter().enumerate() {
            let after = match &spread {
                Some(spread) => spread.of(&control, position, target.plan(&control).interval),
                None => Duration::ZERO,
            };
            let target = Rc::new(target);
            let task = watch(Rc::clone(&control), Rc::clone(&target), after);
            tasks.insert(key, (target, tokio::task::spawn_local(task)));
        }
        is_first = false;
        tokio::select! {
            () = control.bells.changes.notified() => {}
            () = control.bells.stop.notified() => break,
        }
    }
    control.stopping.set(true);
    warmer.abort();
    updater.abort();
    tasks.values().for_each(|(_, task)| task.abort());
}

/// Every configured check.
fn targets(control: &Control) -> HashMap<Key, Target> {
    let tables = control.shared.server_tables();
    let proxies = control.runtime_config.config.proxies.iter().enumerate();
    let mut targets = HashMap::new();
    let backends = proxies.filter(|(_, proxy)| proxy.is_backend && !proxy.disabled);
    for (backend, _) in backends {
        for (place, record) in tables.servers(backend) {
            for checker in [Checker::Health, Checker::Agent] {
                if let Some(target) = Target::new(control, backend, place, record, checker) {
                    targets.insert((backend, place, checker), target);
                }
            }
        }
    }
    targets
}

/// How first checks are spread.
struct Spread {
    shortest: Duration,
    count: u32,
}

impl Spread {
    fn new(control: &Control, targets: &[(Key, Target)]) -> Spread {
        let intervals = targets
            .iter()
            .map(|(_, target)| target.plan(control).interval);
        Spread {
            shortest: intervals
                .filter(|interval| *interval >= SPREAD_MIN)
                .min()
                .unwrap_or_default(),
            count: targets.len() as u32,
        }
    }

    /// The delay before the first check of the target at a position.
    fn of(&self, control: &Control, position: usize, interval: Duration) -> Duration {
        let tune = &control.runtime_config.config.global.checks;
        let whole = spread(control, self.shortest.max(interval));
        let whole = tune.max_spread.map_or(whole, |max| whole.min(max));
        whole * position as u32 / self.count.max(1)
    }
}

/// A time, changed by the random part of `spread-checks`.
fn spread(control: &Control, time: Duration) -> Duration {
    let percent = control.runtime_config.config.global.checks.spread_percent;
    if percent == 0 {
        return time;
    }
    let part = time * percent / 100;
    let random = control.onlooker.random() >> 32;
    let swing = u64::try_from(part.as_micros()).unwrap_or(u64::MAX) * 2;
    let shift = (u128::from(swing) * u128::from(random)) >> 32;
    (time + part).saturating_sub(Duration::from_micros(shift as u64))
}

/// Checks a server repeatedly.
async fn watch(control: Rc<Control>, target: Rc<Target>, after: Duration) {
    let bell = control.bells.of(target.backend, target.place);
    let mut due = Instant::now() + after;
    loop {
        tokio::select! {
            () = sleep_until(due) => {}
            () = bell.notified() => {
                due = due.min(Instant::now() + target.plan(&control).interval);
                continue;
            }
        }
        if !target.plan(&control).runs {
            due = Instant::now() + target.plan(&control).interval;
            continue;
        }
        let place = match &control.places {
            Some(places) => places.acquire().await.ok(),
            None => None,
        };
        let under_way = UnderWay::begin(&control, &target);
        let outcome = check(&control, &target).await;
        drop(under_way);
        if let Some(outcome) = outcome {
            let woken =
                control
                    .shared
                    .check_ended(target.backend, target.place, target.checker, outcome);
            control.wake(&woken);
        }
        drop(place);
        due = Instant::now() + spread(&control, target.plan(&control).interval);
    }
}

/// A running check, which statistics show until this value is dropped, even if its task is
/// cancelled.
struct UnderWay<'a> {
    control: &'a Control,
    target: &'a Target,
}

impl<'a> UnderWay<'a> {
    fn begin(control: &'a Control, target: &'a Target) -> UnderWay<'a> {
        let under_way = UnderWay { control, target };
        under_way.tell(true);
        under_way
    }

    fn tell(&self, is_running: bool) {
        let target = self.target;
        let shared = &self.control.shared;
        shared.set_check_running(target.backend, target.place, target.checker, is_running);
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.tell(false);
    }
}

/// Runs one check; none if its outcome no longer counts.
async fn check(control: &Control, target: &Target) -> Option<CheckOutcome> {
    let outcome = match (target.checker, &target.check) {
        (Checker::Agent, _) => return agent::check(control, target).await,
        (Checker::Health, BackendCheck::Script(script)) => {
            run::script(control, target, script).await.outcome
        }
        (Checker::Health, BackendCheck::External(program)) => {
            external::check(control, target, program).await
        }
    };
    // A server that was put into maintenance meanwhile keeps its state.
    target.plan(control).runs.then_some(outcome)
}
